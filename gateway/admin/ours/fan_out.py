"""How far messages fan out: in how many light queues the newest ones are, and the report that Spark made."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Annotated

from fastapi import Query
from fastapi.responses import HTMLResponse

from core.message import StoredBatch
from gateway.admin.asking import read_on
from gateway.admin.login import Caller, Looker
from gateway.admin.management.failures import not_found
from gateway.admin.management.listing import Item
from gateway.admin.ours.reading import find_queues
from gateway.admin.routes import Routes
from gateway.admin.steps import Steps
from gateway.admin.stored import Address
from gateway.admin.view import View
from gateway.rocketmq.topic_table import queue_key

FAN_OUT = Routes()
MESSAGES_MAX = 10_000  # chosen: all of them are looked at for one answer
BATCH_COUNT = 100  # read together, of which each may name a hundred thousand queues
BYTES_MAX = 1 << 20  # of one read, where messages are large
PAGE = "index.html"
PAGE_BYTES_MAX = 32 << 20  # of a report, which is read into memory; chosen
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"  # it has no script
TOPICS_MAX = 100  # told, the widest first; chosen: what a page can show


class _Topic:
    """What was seen of one topic, or of one exchange and routing key."""

    __slots__ = ("body_bytes", "entries", "messages", "widest")

    def __init__(self) -> None:
        self.messages = self.entries = self.widest = self.body_bytes = 0

    def note(self, entries: int, body_bytes: int) -> None:
        """Take one message in."""
        self.messages += 1
        self.entries += entries
        self.widest = max(self.widest, entries)
        self.body_bytes += body_bytes


@FAN_OUT.get("/fan-out")
async def show_fan_out(
    view: View, looker: Looker, messages: Annotated[int, Query(ge=1, le=MESSAGES_MAX)] = 1_000
) -> Item:
    """The newest messages by MQTT and AMQP: in how many light queues each is, and what a copy in each had cost.

    `widths` has for each power of two the messages that are in so many light queues or more, and fewer than twice that.
    What was published to is told to administrators and monitors, to others the topics that they may subscribe to.
    """
    broker = view.broker
    queue_ref = broker.find_queue(queue_key(broker.parent_topic, 0))
    seen: dict[Address, _Topic] = {}
    widths: Counter[int] = Counter()
    copied_bytes = first_at_ms = last_at_ms = 0
    end = broker.max_offset(queue_ref) if queue_ref >= 0 else 0
    offset = max(broker.min_offset(queue_ref), end - messages) if queue_ref >= 0 else 0
    batch, steps = StoredBatch(BATCH_COUNT), Steps()
    while offset < end and await read_on(broker, queue_ref, offset, batch, BYTES_MAX) > 0:
        first_at_ms, last_at_ms = first_at_ms or batch.store_ms[0], batch.store_ms[batch.count - 1]
        offset = batch.next_offset
        for address, body_bytes, record in _copy(batch):
            entries = len(await find_queues(broker, record))
            seen.setdefault(address, _Topic()).note(entries, body_bytes)
            widths[1 << max(entries.bit_length() - 1, 0) if entries else 0] += 1
            copied_bytes += entries * body_bytes
            await steps.rest()
    told = [one for one in seen.items() if _may_see(looker, one[0])]
    widest = sorted(told, key=lambda item: item[1].entries, reverse=True)[:TOPICS_MAX]
    return {
        "messages": sum(topic.messages for topic in seen.values()),
        "span_ms": last_at_ms - first_at_ms,
        "entries": sum(topic.entries for topic in seen.values()),
        "body_bytes": sum(topic.body_bytes for topic in seen.values()),
        "copied_bytes": copied_bytes,
        "widths": [{"from": width, "messages": count} for width, count in sorted(widths.items())],
        "topic_count": len(told),
        "topics": [_tell(*one) for one in widest],
        "has_report": looker.sees_all and bool(view.settings().admin.fan_out_report),
    }


def _may_see(looker: Caller, address: Address) -> bool:
    return looker.sees_all if address.exchange is not None else looker.may_see_topic(address.topic)


def _copy(batch: StoredBatch) -> list[tuple[Address, int, bytes]]:
    """Return address, length of the body and record of each message."""
    return [
        (
            Address.at(batch, i),
            batch.body_end[i] - batch.body_start[i],
            bytes(batch.buf[batch.record_start[i] : batch.record_end[i]]),
        )
        for i in range(batch.count)
    ]


def _tell(address: Address, seen: _Topic) -> Item:
    return {
        **address.tell(),
        "messages": seen.messages,
        "entries": seen.entries,
        "widest": seen.widest,
        "body_bytes": seen.body_bytes,
    }


@FAN_OUT.get("/fan-out/report", response_class=HTMLResponse)
async def show_report(view: View, looker: Looker) -> HTMLResponse:
    """The page that Spark wrote last into the folder of `admin.fan_out_report`."""
    looker.check_sees("the report", is_told=looker.sees_all)
    folder = view.settings().admin.fan_out_report
    if not folder:
        raise not_found("admin.fan_out_report names no folder")
    try:
        page = await asyncio.to_thread(_read, Path(folder) / PAGE)
    except OSError as error:
        raise not_found(f"no report: {error.strerror}") from error
    return HTMLResponse(page, headers={"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff"})


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(PAGE_BYTES_MAX)
