"""A report's tables without Spark, and a summary of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from core.store.log_survey import Stretch
from spark_analytics.report.summary import Damage, LogExtent, Made, Summary, summarise
from tests.support.fan_out_oracle import Sent, count_devices, count_queues, count_topics

_MOMENT = pa.timestamp("us", tz="UTC")
_FACTS = pa.schema(
    [
        ("window_start", _MOMENT),
        ("device", pa.string()),
        ("protocol", pa.string()),
        ("fanout", pa.int32()),
        ("messages", pa.int64()),
        ("record_bytes", pa.int64()),
        ("body_bytes", pa.int64()),
        ("dispatch_bytes", pa.int64()),
        ("skewed", pa.int64()),
    ]
)


def made_summary(
    messages: list[Sent],
    folder: Path,
    window_ms: int = 1000,
    *,
    missing: Sequence[Stretch] = (),
    damage: Sequence[Damage] = (),
) -> Summary:
    """Write the tables of `messages` to `folder`, and sum them up."""
    tables = {
        "facts": pa.Table.from_pylist([_fact(sent, window_ms) for sent in messages], _FACTS),
        "devices": _devices(messages),
        "topics": _topics(messages),
        "queues": _queues(messages),
    }
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet")
    size = sum(sent.record_bytes for sent in messages)
    first, last = (messages[0].stored_ms, messages[-1].stored_ms) if messages else (0, 0)
    extent = LogExtent(1 if messages else 0, 0, size + 100, size + 100, first, last, missing)
    paths = [folder / f"{name}.parquet" for name in ("facts", "devices", "topics", "queues")]
    return summarise(*paths, extent, Made("data", "4.3.0", window_ms, 1.5), damage)


def _fact(sent: Sent, window_ms: int) -> dict[str, object]:
    born_ms = sent.stored_ms if sent.born_ms is None else sent.born_ms
    return {
        "window_start": sent.stored_ms // window_ms * window_ms * 1000,
        "device": sent.device,
        "protocol": sent.protocol,
        "fanout": len(sent.queues),
        "messages": 1,
        "record_bytes": sent.record_bytes,
        "body_bytes": sent.body_bytes,
        "dispatch_bytes": sent.dispatch_bytes,
        "skewed": int(abs(sent.stored_ms - born_ms) > 60_000),
    }


def _devices(messages: list[Sent]) -> pa.Table:
    counted = ("messages", "dispatches", "fanout_p50", "fanout_p95", "fanout_max", "stored_once_bytes", "copied_bytes")
    names = [("device", pa.string()), ("fanout_mean", pa.float64()), *((name, pa.int64()) for name in counted)]
    rows = [{"device": device} | row for device, row in count_devices(messages).items()]
    return pa.Table.from_pylist(rows, pa.schema(names))


def _topics(messages: list[Sent]) -> pa.Table:
    names = [("topic", pa.string())] + [
        (name, pa.int64()) for name in ("messages", "dispatches", "record_bytes", "fanout_max")
    ]
    rows = [
        {"topic": topic, "messages": count, "dispatches": dispatches, "record_bytes": 1, "fanout_max": 1}
        for topic, (count, dispatches) in count_topics(messages).items()
    ]
    return pa.Table.from_pylist(rows, pa.schema(names))


def _queues(messages: list[Sent]) -> pa.Table:
    names = [("queue", pa.string()), ("messages", pa.int64()), ("copied_bytes", pa.int64()), ("last_stored", _MOMENT)]
    rows = [
        {"queue": queue, "messages": count, "copied_bytes": size, "last_stored": 0}
        for queue, (count, size) in count_queues(messages).items()
    ]
    return pa.Table.from_pylist(rows, pa.schema(names))
