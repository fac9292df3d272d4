"""Messages as they come, with the queues that each went to: read from the log behind their publishing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, Field

from core.broker import Broker
from core.lmq.queue_name import is_light
from core.message import StoredBatch
from gateway.admin.asking import read_on
from gateway.admin.login import Administrator
from gateway.admin.management.failures import bad_request
from gateway.admin.management.listing import Item
from gateway.admin.ours.light_queues import name_of
from gateway.admin.ours.reading import find_queues
from gateway.admin.routes import Routes
from gateway.admin.steps import Steps
from gateway.admin.stored import Address, StoredRecord
from gateway.admin.view import AdminView, View
from gateway.auth.topic_patterns import covers
from gateway.rocketmq.topic_table import queue_key

TRACING = Routes()
TOLD_MAX = 200  # messages in one answer, after which it is ended; chosen: nobody reads more in a moment
BATCH_COUNT = 100  # read together, of which each may name a hundred thousand queues
LOOKED_AT_MAX = 5_000  # for one answer; chosen: a tenth of BEHIND_MAX, so that ten answers catch up
BEHIND_MAX = 50_000  # messages; a reader that asks more seldom misses some
QUEUES_MAX = 20  # told of one message, the others by their number; chosen: what a row can show
BYTES_MAX = 1 << 20  # of one read, where messages are large
Wanted = Callable[[Address], bool]


class TraceQuestion(BaseModel, frozen=True):
    """What is traced: topics that match a filter, from an offset on; without one only the end is told.

    What came by an exchange other than amq.topic has no topic: it is told where all is asked for (`#`), or where
    `exchange` names it; the filter is a pattern of routing keys then, as in `orders.*` or `orders.#`.
    """

    filter: Annotated[str, Field(min_length=1, max_length=4_096)] = "#"
    exchange: Annotated[str | None, Field(max_length=255)] = None
    offset: Annotated[int | None, Field(ge=0, le=2**62)] = None


@TRACING.get("/trace")
async def trace(view: View, administrator: Administrator, asked: Annotated[TraceQuestion, Query()]) -> Item:
    """What was published by MQTT and AMQP since the last answer, which says the offset to ask with next.

    `skipped` are messages that were not looked at, since there were too many. A topic of RocketMQ is refused: each
    queue of the topic counts its own offsets, and a trace follows one.
    """
    del administrator
    broker = view.broker
    if asked.exchange is None:
        _check_traced(view, asked.filter)
    queue_ref = broker.find_queue(queue_key(broker.parent_topic, 0))
    end = broker.max_offset(queue_ref) if queue_ref >= 0 else 0
    if asked.offset is None or queue_ref < 0:
        return {"next_offset": end, "skipped": 0, "items": []}
    offset = max(asked.offset, broker.min_offset(queue_ref), end - BEHIND_MAX)
    skipped, until = offset - min(asked.offset, offset), offset + LOOKED_AT_MAX
    is_wanted = _topics_of(asked.filter) if asked.exchange is None else _keys_of(asked.exchange, asked.filter)
    found: list[tuple[bytes, Item]] = []
    batch, steps = StoredBatch(BATCH_COUNT), Steps()
    while offset < min(end, until) and len(found) < TOLD_MAX:
        if await read_on(broker, queue_ref, offset, batch, BYTES_MAX) <= 0:
            break
        offset = batch.next_offset
        found += _pick(batch, is_wanted)
        await steps.rest()
    items = [{**told, **_tell_queues(broker, await find_queues(broker, record))} for record, told in found]
    return {"next_offset": offset, "skipped": skipped, "items": items}


def _check_traced(view: AdminView, topic_filter: str) -> None:
    name = topic_filter.encode()
    if not is_light(name) and name != view.broker.parent_topic and view.rocketmq.topics.find(name) is not None:
        raise bad_request(
            f"'{topic_filter}' is a topic of RocketMQ, and messages sent there are not traced: 'lmq subscribe --door "
            f"rocketmq {topic_filter}' shows them; an MQTT topic of that name is traced by '{topic_filter}/#'"
        )


def _topics_of(topic_filter: str) -> Wanted:
    levels = topic_filter.encode().split(b"/")
    if topic_filter == "#":
        return lambda address: address.exchange is not None or covers(levels, address.topic.split(b"/"), wide=False)
    return lambda address: address.exchange is None and covers(levels, address.topic.split(b"/"), wide=False)


def _keys_of(exchange: str, pattern: str) -> Wanted:
    name, words = exchange.encode(), [b"+" if word == b"*" else word for word in pattern.encode().split(b".")]
    return lambda address: address.exchange == name and covers(words, address.key.split(b"."), wide=False)


def _pick(batch: StoredBatch, is_wanted: Wanted) -> list[tuple[bytes, Item]]:
    """Return the record of each message that is wanted, and what is told of it."""
    picked: list[tuple[bytes, Item]] = []
    for i in range(batch.count):
        if is_wanted(Address.at(batch, i)):
            record = bytes(batch.buf[batch.record_start[i] : batch.record_end[i]])
            picked.append((record, StoredRecord(record, batch, i).tell()))
    return picked


def _tell_queues(broker: Broker, queues: list[tuple[bytes, int]]) -> Item:
    shown = queues[:QUEUES_MAX]
    names = [dict(zip(("door", "name", "vhost"), name_of(broker, queue), strict=True)) for queue, _ in shown]
    return {"queue_count": len(queues), "queues": names}
