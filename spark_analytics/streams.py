"""The format `lmq` is read in batches: `readStream` is refused when it is loaded, and not when the query starts.

Spark asks a Python source whether it can stream only in a process of its own, when the query runs already.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StructType

from spark_analytics.options import StreamRefusedError

FORMAT = "lmq"
_FORMAT_ATTRIBUTE = "lmq_format"  # what `format` was called with last

_spark_format = DataStreamReader.format
_spark_load = DataStreamReader.load


def refuse_streams() -> None:
    """Let `readStream.format("lmq").load()` raise StreamRefusedError in this process; a second call does nothing."""
    setattr(DataStreamReader, "format", _format)  # noqa: B010 - Spark has no other place to say it
    setattr(DataStreamReader, "load", _load)  # noqa: B010 - as above


def _format(reader: DataStreamReader, source: str) -> DataStreamReader:
    setattr(reader, _FORMAT_ATTRIBUTE, source)
    return _spark_format(reader, source)


def _load(
    reader: DataStreamReader,
    path: str | None = None,
    format: str | None = None,  # noqa: A002 - Spark's name
    schema: StructType | str | None = None,
    **options: bool | float | str | None,
) -> DataFrame:
    if str(format or getattr(reader, _FORMAT_ATTRIBUTE, "")).lower() == FORMAT:
        raise StreamRefusedError
    return _spark_load(reader, path, format, schema, **options)
