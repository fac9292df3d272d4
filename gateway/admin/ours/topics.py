"""Topics that were published to lately, found in the newest messages: nothing is counted while they are published."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response

from core.message import StoredBatch
from gateway.admin.asking import read_on
from gateway.admin.login import Looker
from gateway.admin.management.listing import Asked, Beside, Item, Kind, answer_list
from gateway.admin.routes import Routes
from gateway.admin.steps import Steps
from gateway.admin.stored import Address
from gateway.admin.view import View
from gateway.inventory import text_of
from gateway.rocketmq.topic_table import queue_key

TOPICS = Routes()
MESSAGES_MAX = 50_000  # chosen: all of them are looked at for one answer
BATCH_COUNT = 512  # read together: 38 KiB of columns
BYTES_MAX = 1 << 20  # of records that are read in one go
TOPICS_MAX = 2_000  # told; those with fewer messages are only counted


class _Seen:
    """What was seen of one topic."""

    __slots__ = ("body_bytes", "count", "last_at_ms")

    def __init__(self) -> None:
        self.count = 0
        self.body_bytes = 0
        self.last_at_ms = 0


@TOPICS.get("/topics")
async def list_topics(
    view: View, looker: Looker, asked: Asked, messages: Annotated[int, Query(ge=1, le=MESSAGES_MAX)] = 5_000
) -> Response:
    """Topics of the newest messages that came by MQTT and AMQP, the busiest first, and the time that these span.

    `by_exchange` are those of `messages` that were published to another exchange than amq.topic: to no topic. One that
    is neither administrator nor monitor is told those topics that it may subscribe to. Without a page they are
    `topics`, of a page `items`.
    """
    broker = view.broker
    queue_ref = broker.find_queue(queue_key(broker.parent_topic, 0))
    seen: dict[bytes, _Seen] = {}
    count = others = first_at_ms = last_at_ms = 0
    if queue_ref >= 0:
        end = broker.max_offset(queue_ref)
        offset = max(broker.min_offset(queue_ref), end - messages)
        batch, steps = StoredBatch(BATCH_COUNT), Steps()
        while offset < end and await read_on(broker, queue_ref, offset, batch, BYTES_MAX) > 0:
            first_at_ms = first_at_ms or batch.store_ms[0]
            last_at_ms = batch.store_ms[batch.count - 1]
            count += batch.count
            others += _note(batch, seen)
            offset = batch.next_offset
            await steps.rest()
    seen = {topic: one for topic, one in seen.items() if looker.may_see_topic(topic)}
    facts = {
        "messages": count,
        "by_exchange": others,
        "span_ms": last_at_ms - first_at_ms,
        "topic_count": len(seen),
    }
    busiest = asked.sorted_by("count", reverse=True)
    return await answer_list(busiest, KIND, list(seen.items()), Beside(facts, "topics", TOPICS_MAX))


def _note(batch: StoredBatch, seen: dict[bytes, _Seen]) -> int:
    """Take in the messages of a batch that were published to topics; return how many were not."""
    others = 0
    for i in range(batch.count):
        address = Address.at(batch, i)
        if address.exchange is not None:
            others += 1
            continue
        topic = address.topic
        known = seen.get(topic)
        if known is None:
            known = seen[topic] = _Seen()
        known.count += 1
        known.body_bytes += batch.body_end[i] - batch.body_start[i]
        known.last_at_ms = batch.store_ms[i]
    return others


def _tell(topic: bytes, seen: _Seen) -> Item:
    return {
        "topic": text_of(topic),
        "count": seen.count,
        "body_bytes": seen.body_bytes,
        "last_at_ms": seen.last_at_ms,
    }


KIND: Kind[tuple[bytes, _Seen]] = Kind(
    name=lambda one: text_of(one[0]),
    describe=lambda one: _tell(*one),
    figures={
        "count": lambda one: one[1].count,
        "body_bytes": lambda one: one[1].body_bytes,
        "last_at_ms": lambda one: one[1].last_at_ms,
    },
)
