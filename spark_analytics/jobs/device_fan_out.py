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

from core.errors import DataFolderUnusableError
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
from spark_analytics.report.summary import Damage, LogExtent, Made, summarise, write_json
from spark_analytics.schema import DISPATCH_COLUMNS
from spark_analytics.session import open_session

_WINDOWS_MAX = 90  # points in the page's time series; chosen: a curve as wide as the page shows no more
# What readers of clocks and calendars are used to; the first that needs no more than _WINDOWS_MAX windows is taken.
_WINDOW_LENGTHS_S = (1, 2, 5, 10, 30, 60, 300, 900, 3_600, 10_800, 21_600, 86_400, 604_800)
_MS = 1_000  # of a second


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
        StoreError: It is no data folder, or part of its log is missing and may not be skipped.
        ReportFailedError: A record is damaged and may not be skipped, or Spark failed.
        JavaNotFoundError: There is no Java for Spark.
    """
    started = time.monotonic()
    paths = report_paths(Path(out_dir))
    Path(out_dir).mkdir(parents=True, exist_ok=True)
    extent = read_extent(Path(data_dir))
    if extent.missing and not skip_bad_records:
        raise DataFolderUnusableError(str(data_dir), str(extent.missing[0]))
    window_ms = choose_window_ms(extent.first_store_ms, extent.last_store_ms)
    try:
        session = open_session("lmq fan-out report")
        options = _source_options(data_dir, extent, skip_bad_records)
        damage = _write_tables(session, options, window_ms, paths)
    except (PySparkException, Py4JError) as error:
        raise ReportFailedError(error) from error
    made = Made(
        data_dir=str(data_dir),
        spark_version=session.version,
        window_ms=window_ms,
        duration_s=round(time.monotonic() - started, 1),
        skips_bad_records=skip_bad_records,
    )
    summary = summarise(paths.facts, paths.devices, paths.topics, paths.queues, extent, made, damage)
    write_json(summary, paths.json)
    write_page(summary, paths.page)
    return paths


def read_extent(data_dir: Path) -> LogExtent:
    """Return which part of the log there is now: the snapshot that all tables of a report are made of.

    Raises:
        OptionError: `data_dir` is no folder.
    """
    if not data_dir.is_dir():
        raise OptionError("path", f"{data_dir} is not a folder")
    survey = StoreReader.open(data_dir).survey()
    segments = [found for found in survey.segments if found.end > found.base]
    if not segments:
        return LogExtent(0, 0, 0, 0, 0, 0, survey.missing)
    return LogExtent(
        segment_count=len(segments),
        start=segments[0].base,
        end=segments[-1].end,
        log_bytes=sum(segment.end - segment.base for segment in segments),
        first_store_ms=segments[0].first_store_ms,
        last_store_ms=segments[-1].last_store_ms,
        missing=survey.missing,
    )


def choose_window_ms(first_ms: int, last_ms: int) -> int:
    """Return the shortest usual window that cuts the time range into few enough parts to draw."""
    for seconds in _WINDOW_LENGTHS_S:
        if (last_ms - first_ms) // (seconds * _MS) < _WINDOWS_MAX:
            return seconds * _MS
    return _WINDOW_LENGTHS_S[-1] * _MS


def _source_options(data_dir: Path | str, extent: LogExtent, skip_bad_records: bool) -> dict[str, str]:  # noqa: FBT001
    return {
        "path": str(Path(data_dir).resolve()),
        "onBadRecord": "skip" if skip_bad_records else "fail",
        "startingOffset": str(extent.start),
        "endingOffset": str(extent.end),
    }


def _write_tables(session: SparkSession, options: dict[str, str], window_ms: int, paths: ReportPaths) -> list[Damage]:
    """Write the tables, all of the same part of the log; return what of it was damaged."""
    source = session.read.format("lmq").options(**options)
    messages = source.option("columns", FACT_SOURCE_COLUMNS).load()
    _write(make_facts(messages, window_ms), paths.facts)
    _write(describe_devices(session.read.parquet(str(paths.facts))), paths.devices)
    columns = ",".join(column.name for column in DISPATCH_COLUMNS)
    rows = session.read.format("lmq").options(**options).option("view", "dispatches").option("columns", columns).load()
    rows.persist()
    dispatches = rows.where("damage IS NULL")
    _write(describe_topics(dispatches), paths.topics)
    _write(describe_queues(dispatches), paths.queues)
    told = rows.where("damage IS NOT NULL").groupBy("damage", "damaged_from", "damaged_until").sum("messages").collect()
    rows.unpersist()
    return [Damage(what, start, end, messages or 0) for what, start, end, messages in told]


def _write(table: DataFrame, path: Path) -> None:
    table.write.mode("overwrite").option("compression", "zstd").parquet(str(path))
