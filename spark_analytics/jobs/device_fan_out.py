"""The fan-out report: what each device published, how many light queues it went to, and what that costs on disk.

Spark turns the log into Parquet tables; the page and `report.json` are made from those alone.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from core.store.reader import StoreReader
from spark_analytics.facts import (
    FACT_SOURCE_COLUMNS,
    describe_devices,
    describe_queues,
    describe_topics,
    make_facts,
)
from spark_analytics.options import OptionError
from spark_analytics.report.page import write_page
from spark_analytics.report.summary import LogExtent, Made, summarise, write_json
from spark_analytics.session import open_session

_WINDOWS_MAX = 90  # points in the page's time series
_WINDOW_LENGTHS_S = (1, 2, 5, 10, 30, 60, 300, 900, 3_600, 10_800, 21_600, 86_400, 604_800)
_MS = 1_000


_PYTHON_ERROR = re.compile(r"^(?:[\w.]*\.)?\w+Error: (.+)$", re.MULTILINE)
_JAVA_ERROR = re.compile(r"^(?:: )?[\w.$]+Exception: (.+)$", re.MULTILINE)


class ReportFailedError(RuntimeError):
    """Spark could not make the tables; the text is what a task said last, in one line."""

    def __init__(self, error: Exception) -> None:
        said = str(error)
        found = _PYTHON_ERROR.findall(said)[-1:] or _JAVA_ERROR.findall(said)[:1] or said.splitlines()[:1]
        super().__init__("".join(found) or type(error).__name__)


@dataclass(frozen=True)
class ReportPaths:
    """Where a report lies: the page, the same numbers as JSON, and the tables as Parquet."""

    page: Path
    json: Path
    facts: Path
    devices: Path
    topics: Path
    queues: Path


def report_paths(out_dir: Path) -> ReportPaths:
    """Return where a report in `out_dir` has its parts."""
    tables = {name: out_dir / f"{name}.parquet" for name in ("facts", "devices", "topics", "queues")}
    return ReportPaths(page=out_dir / "index.html", json=out_dir / "report.json", **tables)


def run(data_dir: Path | str, out_dir: Path | str, *, skip_bad_records: bool = False) -> ReportPaths:
    """Make the report of the log in `data_dir`, which a gateway may be writing; replace what is in `out_dir`.

    Raises:
        OptionError: `data_dir` is no folder.
        StoreError: It is no data folder.
        ReportFailedError: A record is damaged and may not be skipped, or Spark failed.
        JavaNotFoundError: There is no Java for Spark.
    """
    started = time.monotonic()
    paths = report_paths(Path(out_dir))
    Path(out_dir).mkdir(parents=True, exist_ok=True)
    extent = read_extent(Path(data_dir))
    window_ms = choose_window_ms(extent.first_store_ms, extent.last_store_ms)
    try:
        session = open_session("lmq fan-out report")
        _write_tables(session, _source_options(data_dir, skip_bad_records), window_ms, paths)
    except (PySparkException, Py4JError) as error:
        raise ReportFailedError(error) from error
    made = Made(
        data_dir=str(data_dir),
        spark_version=session.version,
        window_ms=window_ms,
        duration_s=round(time.monotonic() - started, 1),
        skips_bad_records=skip_bad_records,
    )
    summary = summarise(paths.facts, paths.devices, paths.topics, paths.queues, extent, made)
    write_json(summary, paths.json)
    write_page(summary, paths.page)
    return paths


def read_extent(data_dir: Path) -> LogExtent:
    """Return which part of the log there is now.

    Raises:
        OptionError: `data_dir` is no folder.
    """
    if not data_dir.is_dir():
        raise OptionError("path", f"{data_dir} is no folder")
    segments = [found for found in StoreReader.open(data_dir).segments() if found.end > found.base]
    if not segments:
        return LogExtent(0, 0, 0, 0, 0, 0)
    return LogExtent(
        segment_count=len(segments),
        start=segments[0].base,
        end=segments[-1].end,
        log_bytes=sum(segment.end - segment.base for segment in segments),
        first_store_ms=segments[0].first_store_ms,
        last_store_ms=segments[-1].last_store_ms,
    )


def choose_window_ms(first_ms: int, last_ms: int) -> int:
    """Return the shortest usual window that cuts the time range into few enough parts to draw."""
    for seconds in _WINDOW_LENGTHS_S:
        if (last_ms - first_ms) // (seconds * _MS) < _WINDOWS_MAX:
            return seconds * _MS
    return _WINDOW_LENGTHS_S[-1] * _MS


def _source_options(data_dir: Path | str, skip_bad_records: bool) -> dict[str, str]:  # noqa: FBT001
    action = "skip" if skip_bad_records else "fail"
    return {"path": str(Path(data_dir).resolve()), "onBadRecord": action}


def _write_tables(session: SparkSession, options: dict[str, str], window_ms: int, paths: ReportPaths) -> None:
    source = session.read.format("lmq").options(**options)
    messages = source.option("columns", FACT_SOURCE_COLUMNS).load()
    _write(make_facts(messages, window_ms), paths.facts)
    _write(describe_devices(session.read.parquet(str(paths.facts))), paths.devices)
    dispatches = session.read.format("lmq").options(**options).option("view", "dispatches").load()
    dispatches.persist()
    _write(describe_topics(dispatches), paths.topics)
    _write(describe_queues(dispatches), paths.queues)
    dispatches.unpersist()


def _write(table: DataFrame, path: Path) -> None:
    table.write.mode("overwrite").option("compression", "zstd").parquet(str(path))
