"""The Python data source `lmq`: a data folder's log as a Spark table.

`spark.read.format("lmq").option("path", DATA_DIR).load()`. Only options and log ranges travel to the executors, which
open the folder for themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from core.store.reader import StoreReader
from spark_analytics.batch_reader import read_batches
from spark_analytics.options import OptionError, ReadOptions, StreamRefusedError, parse_options
from spark_analytics.partitions import LogRange, plan_read
from spark_analytics.schema import columns_of, spark_ddl
from spark_analytics.streams import FORMAT, refuse_streams


class LogPartition(InputPartition):
    """One part of the log, for one task."""

    def __init__(self, part: LogRange) -> None:
        super().__init__(part)
        self.part = part


class LmqDataSource(DataSource):
    """The format `lmq`."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format; Spark asks at the registration, and from then on streams are refused."""
        refuse_streams()
        return FORMAT

    def schema(self) -> str:
        """Return the columns that the options ask for."""
        return spark_ddl(columns_of(parse_options(self.options)))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of `schema`: the options' columns, or those that the caller named by a schema."""
        options = parse_options(self.options)
        return LogReader(replace(options, columns=tuple(schema.fieldNames())))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 - Spark's names
        """Refuse to stream, where nobody has before: in a process that did not call `open_session`."""
        raise StreamRefusedError


class LogReader(DataSourceReader):
    """Plans the parts of a log, and reads each in its own task."""

    def __init__(self, options: ReadOptions) -> None:
        columns_of(options)
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """Return the parts of the log, up to what is confirmed now."""
        if not Path(self._options.path).is_dir():
            raise OptionError("path", f"{self._options.path} is not a folder")
        return [LogPartition(part) for part in plan_read(StoreReader.open(Path(self._options.path)), self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of one part; nothing for the empty partition that Spark makes where there is none."""
        if not isinstance(partition, LogPartition):
            return iter(())
        return read_batches(self._options, partition.part)
