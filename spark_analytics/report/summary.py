"""What the report says, as plain numbers, out of the job's tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.store.log_survey import LOST_SET, RECORD, RESTORED_SET, Stretch
from spark_analytics.schema import INDEX_ENTRY_BYTES

JSON_VERSION = 1
_TOP_ROWS = 20  # chosen: what a page shows without scrolling far
_CHANGED_ROWS = 10  # chosen: what a page shows without scrolling far
_STRETCHES_TOLD = 100  # chosen: damage beyond that is told by its sums
_CHANGED_MESSAGES_MIN = 5  # in each half, or a single message would look like a jump

Row = dict[str, Any]


@dataclass(frozen=True)
class LogExtent:
    """Which part of the log was there to read; moments are milliseconds, 0 for an empty log."""

    segment_count: int
    start: int
    end: int
    log_bytes: int
    first_store_ms: int
    last_store_ms: int
    missing: Sequence[Stretch] = ()  # what was written, and is not there


@dataclass(frozen=True)
class Damage:
    """One stretch that was passed over; or, without an end, a dispatch set that cost `messages` their queues."""

    what: str
    start: int
    end: int | None
    messages: int


@dataclass(frozen=True)
class Made:
    """How a report was made."""

    data_dir: str
    spark_version: str
    window_ms: int
    duration_s: float
    skips_bad_records: bool = False


@dataclass(frozen=True)
class Summary:
    """All that the page and the JSON tell."""

    totals: Row
    fanout_histogram: list[tuple[int, int]]  # (fan-out, messages), ascending
    windows: list[Row]
    protocols: list[Row]
    top_devices: list[Row]
    top_topics: list[Row]
    top_queues: list[Row]
    changed_devices: list[Row]
    device_dispatches: list[int]  # of every device, descending, thinned out to be drawn
    quality: Row
    extent: LogExtent
    made: Made


def summarise(  # noqa: PLR0917 - one path a table
    facts_path: Path,
    devices_path: Path,
    topics_path: Path,
    queues_path: Path,
    extent: LogExtent,
    made: Made,
    damage: Sequence[Damage] = (),
) -> Summary:
    """Return the numbers of a report from the tables at the paths."""
    facts = _with_dispatches(pq.read_table(facts_path))
    devices = pq.read_table(devices_path)
    topics = pq.read_table(topics_path)
    queues = pq.read_table(queues_path)
    histogram = _histogram(facts)
    totals = _totals(facts, devices, histogram) | {
        "devices": devices.num_rows,
        "topics": topics.num_rows,
        "queues": queues.num_rows,
    }
    return Summary(
        totals=totals,
        fanout_histogram=histogram,
        windows=_windows(facts),
        protocols=_protocols(facts),
        top_devices=_top(devices, "dispatches", "device"),
        top_topics=_top(topics, "dispatches", "topic"),
        top_queues=_top(queues, "messages", "queue"),
        changed_devices=_changed_devices(facts),
        device_dispatches=_thinned(devices["dispatches"]),
        quality=_quality(facts, totals, extent) | _left_out(damage, extent),
        extent=extent,
        made=made,
    )


def write_json(summary: Summary, path: Path) -> None:
    """Write `summary` as JSON."""
    told = {"version": JSON_VERSION} | asdict(summary)
    path.write_text(json.dumps(told, indent=1, default=_json_value) + "\n", encoding="utf-8")


def _json_value(value: object) -> str:
    assert isinstance(value, datetime)  # all that JSON does not know here
    return value.isoformat()


def nearest_rank(histogram: list[tuple[int, int]], percent: int) -> int:
    """Return the value of (value, count), ascending, that `percent` of the counts do not pass; 0 of nothing."""
    wanted = sum(count for _, count in histogram) * percent
    seen = 0
    for value, count in histogram:
        seen += count
        if seen * 100 >= wanted:
            return value
    return 0


def _with_dispatches(facts: pa.Table) -> pa.Table:
    dispatches = pc.multiply(pc.cast(facts["fanout"], pa.int64()), facts["messages"])
    return facts.append_column("dispatches", dispatches)


def _sum(column: pa.ChunkedArray) -> int:
    return pc.sum(column).as_py() or 0


def _histogram(facts: pa.Table) -> list[tuple[int, int]]:
    summed = facts.group_by("fanout").aggregate([("messages", "sum")]).sort_by("fanout")
    return list(zip(summed["fanout"].to_pylist(), summed["messages_sum"].to_pylist(), strict=True))


def _totals(facts: pa.Table, devices: pa.Table, histogram: list[tuple[int, int]]) -> Row:
    messages, dispatches = _sum(facts["messages"]), _sum(facts["dispatches"])
    stored, copied = _sum(devices["stored_once_bytes"]), _sum(devices["copied_bytes"])
    return {
        "messages": messages,
        "dispatches": dispatches,
        "fanout_mean": dispatches / messages if messages else 0.0,
        "fanout_p50": nearest_rank(histogram, 50),
        "fanout_p95": nearest_rank(histogram, 95),
        "fanout_p99": nearest_rank(histogram, 99),
        "fanout_max": histogram[-1][0] if histogram else 0,
        "record_bytes": _sum(facts["record_bytes"]),
        "body_bytes": _sum(facts["body_bytes"]),
        "dispatch_bytes": _sum(facts["dispatch_bytes"]),
        "index_bytes": INDEX_ENTRY_BYTES * (dispatches + messages),
        "stored_once_bytes": stored,
        "copied_bytes": copied,
        "saved_bytes": copied - stored,
        "copied_ratio": copied / stored if stored else 0.0,
    }


def _windows(facts: pa.Table) -> list[Row]:
    sums = facts.group_by(["window_start", "fanout"]).aggregate([("messages", "sum")])
    histograms: dict[Any, list[tuple[int, int]]] = {}
    for row in sums.sort_by("fanout").to_pylist():
        histograms.setdefault(row["window_start"], []).append((row["fanout"], row["messages_sum"]))
    return [
        {
            "window_start": start,
            "messages": sum(count for _, count in histogram),
            "dispatches": sum(fanout * count for fanout, count in histogram),
            "fanout_p50": nearest_rank(histogram, 50),
            "fanout_p95": nearest_rank(histogram, 95),
        }
        for start, histogram in sorted(histograms.items())
    ]


def _protocols(facts: pa.Table) -> list[Row]:
    summed = facts.group_by("protocol").aggregate([("messages", "sum"), ("dispatches", "sum"), ("record_bytes", "sum")])
    plain = summed.rename_columns([name.removesuffix("_sum") for name in summed.column_names])
    rows: list[Row] = plain.sort_by([("messages", "descending"), ("protocol", "ascending")]).to_pylist()
    return rows


def _top(table: pa.Table, by: str, name: str) -> list[Row]:
    """Return the first rows by `by`, each with its share of all and the share up to it."""
    total = _sum(table[by])
    order = [(by, "descending"), (name, "ascending")]
    rows: list[Row] = table.sort_by(order).slice(0, _TOP_ROWS).to_pylist()
    so_far = 0
    for row in rows:
        so_far += row[by]
        row["share"] = row[by] / total if total else 0.0
        row["cumulative_share"] = so_far / total if total else 0.0
    return rows


def _changed_devices(facts: pa.Table) -> list[Row]:
    """Return the devices whose mean fan-out differs most between the two halves of the windows."""
    starts = sorted(set(facts["window_start"].to_pylist()))
    if len(starts) < 2:  # noqa: PLR2004 - there are no two halves
        return []
    middle = pa.scalar(starts[len(starts) // 2], facts["window_start"].type)
    is_late = pc.greater_equal(facts["window_start"], middle)
    early = _mean_by_device(facts.filter(pc.invert(is_late)))
    late = _mean_by_device(facts.filter(is_late))
    rows: list[Row] = [
        {"device": device, "before": early[device], "after": late[device]}
        for device in early.keys() & late.keys()
        if early[device] != late[device]
    ]
    rows.sort(key=lambda row: (-abs(row["after"] - row["before"]), row["device"] or ""))
    return rows[:_CHANGED_ROWS]


def _mean_by_device(facts: pa.Table) -> dict[str | None, float]:
    summed = facts.group_by("device").aggregate([("messages", "sum"), ("dispatches", "sum")])
    columns = (summed[name].to_pylist() for name in ("device", "messages_sum", "dispatches_sum"))
    return {
        device: dispatches / messages
        for device, messages, dispatches in zip(*columns, strict=True)
        if messages >= _CHANGED_MESSAGES_MIN
    }


def _thinned(dispatches: pa.ChunkedArray) -> list[int]:
    counts = np.sort(np.asarray(dispatches.combine_chunks(), np.int64))[::-1]
    if len(counts) <= 400:  # noqa: PLR2004 - points enough for a curve on paper
        return [int(count) for count in counts]
    places = np.unique(np.linspace(0, len(counts) - 1, 400).astype(int))
    return [int(count) for count in counts[places]]


def _quality(facts: pa.Table, totals: Row, extent: LogExtent) -> Row:
    no_queue = facts.filter(pc.equal(facts["fanout"], 0))
    no_device = facts.filter(pc.is_null(facts["device"]))
    return {
        "messages_to_no_queue": _sum(no_queue["messages"]),
        "messages_without_device": _sum(no_device["messages"]),
        "messages_with_wrong_clock": _sum(facts["skewed"]),
        "other_log_bytes": max(0, extent.log_bytes - totals["record_bytes"]),
    }


def _left_out(damage: Sequence[Damage], extent: LogExtent) -> Row:
    """Return what of the log the report does not tell, and where it is; a set that was restored costs nothing."""
    stretches = [Stretch(one.start, one.end or one.start, one.what) for one in damage if one.what == RECORD]
    stretches = sorted([*stretches, *extent.missing])
    lost = [one for one in damage if one.what == LOST_SET and one.messages]
    return {
        "skipped_stretches": len(stretches),
        "skipped_bytes": sum(stretch.end - stretch.start for stretch in stretches),
        "skipped": [stretch._asdict() for stretch in stretches[:_STRETCHES_TOLD]],
        "messages_with_lost_queues": sum(one.messages for one in lost),
        "lost_sets": sorted({one.start for one in lost})[:_STRETCHES_TOLD],
        "restored_sets": len({one.start for one in damage if one.what == RESTORED_SET}),
    }
