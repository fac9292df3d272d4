"""Where a message went: its light queues, and how far each reader is with it. Nothing is written for it beforehand.

The record says which light queues it is in; what became of it there is what the places of readers and the state of
shared queues say now, what ended without an acknowledgement since the start, and dead letters in the log.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from fastapi import HTTPException, Query
from pydantic import BaseModel, Field

from core.broker import Broker
from core.lmq.queue_name import LIGHT_PREFIX
from core.message import StoredBatch
from core.stage import Stage
from gateway.admin.asking import ask, open_queue, read_on
from gateway.admin.fields import tell_fields
from gateway.admin.login import Administrator, Looker
from gateway.admin.management.failures import bad_request
from gateway.admin.ours.light_queues import name_of
from gateway.admin.ours.sessions import tell_session
from gateway.admin.outcomes import Outcomes, letter_of
from gateway.admin.paths import PathName
from gateway.admin.routes import Routes
from gateway.admin.steps import walk
from gateway.admin.stored import StoredRecord
from gateway.admin.view import AdminView, View
from gateway.amqp.queue_pops import GROUP
from gateway.door import Door
from gateway.inventory import FateEntry, SubscriptionEntry, text_of
from gateway.rocketmq.topic_table import queue_key

LINEAGE = Routes(prefix="/api/lmq", tags=("lmq",))
COUNT_MAX = 200  # chosen: each message is followed to up to QUEUES_MAX queues
OFFSET_MAX = (1 << 63) - 1  # a signed number of 64 bits
QUEUES_MAX = 100  # told of a message at once; chosen: what a page can show
READERS_MAX = 100  # told of a queue by name, all others by their number; chosen: what a page can show
LOOKED_AT_MAX = 4_096  # messages of the same millisecond among which one is looked for: more than are stored in one
FIRST_COUNT = 64  # of the messages of that millisecond, read together; mostly the first one is it
_OFFSET_ID = re.compile(r"[0-9A-Fa-f]{32}|[0-9A-Fa-f]{56}")  # RocketMQ's: address, port, place
_PLACE = re.compile(r"[0-9]{1,19}")
Item = dict[str, Any]


class Stretch(BaseModel, frozen=True):
    """Part of a queue: from an offset, a moment or the first message that is not done, else its end."""

    queue: Annotated[str, Field(min_length=1, max_length=512)]
    offset: Annotated[int | None, Field(ge=0, le=OFFSET_MAX)] = None
    at_ms: Annotated[int | None, Field(ge=0, le=OFFSET_MAX)] = None
    undone: bool = False  # from the first message on that is not done, of an AMQP queue
    count: Annotated[int, Field(ge=1, le=COUNT_MAX)] = 20


@LINEAGE.get("/messages")
async def list_messages(view: View, administrator: Administrator, asked: Annotated[Stretch, Query()]) -> Item:
    """Messages as a queue of the log has them, from an offset or a moment on, else the newest; none is consumed.

    `queue` is a light queue, or the queue of a topic: `TOPIC/NUMBER`. Of an AMQP queue `undone` begins with the first
    message that is not done; `stage` says how far a message is, as for one message, and `given` how often consumers
    got one that is not done. They are null elsewhere. 400: `undone` of another queue. 404: no such queue.
    """
    del administrator
    broker = view.broker
    queue_ref = broker.find_queue(asked.queue.encode())
    if queue_ref < 0:
        raise HTTPException(404, {"error": "Object Not Found", "reason": f"no queue '{asked.queue}' in the log"})
    await open_queue(broker, queue_ref)
    start, end = broker.min_offset(queue_ref), broker.max_offset(queue_ref)
    _open_amqp(view, asked.queue.encode())
    pop = broker.pop.find(asked.queue.encode(), GROUP)
    if asked.undone and pop is None:
        raise bad_request(f"'{asked.queue}' is not an AMQP queue: which of its messages are done is unknown")
    offset = pop.floor if asked.undone and pop is not None else asked.offset
    if asked.at_ms is not None:
        at_ms = asked.at_ms
        offset = await ask(lambda then: broker.find_offset(queue_ref, at_ms, then))
    batch = StoredBatch(asked.count)
    await read_on(broker, queue_ref, max(start, end - asked.count if offset is None else offset), batch)
    items = [{**_tell_stored(batch, i), **_tell_stage(broker, asked.queue, batch, i)} for i in range(batch.count)]
    return {"min_offset": start, "max_offset": end, "next_offset": batch.next_offset, "items": items}


def _open_amqp(view: AdminView, light_queue: bytes) -> None:
    """Know how far the consumers of an AMQP queue are, also where nobody has consumed from it; harmless for others."""
    _, name, vhost = name_of(view.broker, light_queue)
    host = view.vhosts.find(vhost)
    queue = None if host is None else host.find(name)
    if host is not None and queue is not None and queue.light_name == light_queue and not queue.is_deleted:
        host.open(queue)
        if queue.is_open:
            _ = queue.pop  # known from here on


def _tell_stage(broker: Broker, light_queue: str, batch: StoredBatch, i: int) -> Item:
    """Return how far the consumers of an AMQP queue are with a message of a batch."""
    pop, offset = broker.pop.find(light_queue.encode(), GROUP), batch.queue_offset[i]
    if pop is None:
        return {"stage": None, "given": None}
    stage = pop.stage(offset)
    return {"stage": stage.value, "given": None if stage is Stage.DONE else pop.attempt(offset)}


def _tell_stored(batch: StoredBatch, i: int) -> Item:
    record = bytes(batch.buf[batch.record_start[i] : batch.record_end[i]])
    return {"offset": batch.queue_offset[i], **StoredRecord(record, batch, i).tell()}


@LINEAGE.get("/messages/{message_id}")
async def show_message(
    view: View,
    administrator: Administrator,
    message_id: PathName,
    first: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> Item:
    """A message, and where it went: of its light queues those from `first` on, a hundred at most.

    `message_id` is what other answers call `id`, or an offset message id of RocketMQ. `kind` of a reader is `session`,
    `queue`, `group`, or `reader` (a consumer of an AMQP stream); `stage` is `waits`, `taken`, `given back` or `done`.
    `outcome` says what done means (acknowledged, sent, expired, rejected, dropped, purged, a dead letter), `from_ms`
    and `until_ms` between which moments it was so (0: not known), `by` what has or had it (`by_is_sure`: just that
    one), `letter` the dead letter, `became` the message that a half message was committed as. `letter_of` is the
    message that this one is a dead letter of.
    `fields` are the properties, headers and user properties in the words of the publisher's door, in order.
    404: the log has no such message, or no longer.
    """
    del administrator
    place = _place_of(message_id)
    record = await ask(lambda then: view.broker.find_record(place, then)) if place is not None else None
    one = StoredBatch(1)
    if record is None or not view.broker.read_record(record, one):
        raise HTTPException(404, {"error": "Object Not Found", "reason": "no such message is kept"})
    stored = StoredRecord(record, one, 0)
    dispatched = await ask(lambda then: view.broker.engine.find_dispatch(record, then))
    places = [*_own_place(view.broker, stored), *dispatched]
    outcomes = Outcomes(view, stored)
    encoded = bytes(one.buf[one.properties_start[0] : one.properties_end[0]])
    origin = letter_of(encoded)
    return {
        **stored.tell(),
        "fields": [field._asdict() for field in tell_fields(encoded)],
        "letter_of": None if origin is None else str(origin),
        "queue_count": len(places),
        "queues": [await _tell_queue(view, stored, outcomes, *each) for each in places[first : first + QUEUES_MAX]],
    }


def _place_of(message_id: str) -> int | None:
    if _OFFSET_ID.fullmatch(message_id):
        place = int(message_id[-16:], 16)
    elif _PLACE.fullmatch(message_id):
        place = int(message_id)
    else:
        return None
    return place if place <= OFFSET_MAX else None


def _own_place(broker: Broker, stored: StoredRecord) -> Iterator[tuple[bytes, int]]:
    """Give the queue of the topic that a message of RocketMQ was sent to; others are in the parent topic's one."""
    if stored.is_rocketmq and stored.topic != broker.parent_topic:
        yield queue_key(stored.topic, stored.queue_id), stored.queue_offset


async def _tell_queue(
    view: AdminView, stored: StoredRecord, outcomes: Outcomes, light_queue: bytes, offset: int
) -> Item:
    queue_ref = view.broker.find_queue(light_queue)
    if offset < 0 and queue_ref >= 0:
        offset = await _find_offset(view.broker, queue_ref, stored)
    readers: list[Item] = []
    stages: Counter[str] = Counter()
    async for fate in walk(_fates(view.doors.values(), light_queue, offset) if offset >= 0 else ()):
        if stored.place < fate.first_place:
            continue
        stages[fate.stage.value] += 1
        if len(readers) < READERS_MAX:
            readers.append({**_tell_fate(fate), **await outcomes.tell(fate)})
    return {
        **dict(zip(("door", "name", "vhost"), name_of(view.broker, light_queue), strict=True)),
        "light_queue": text_of(light_queue),
        "is_light": light_queue.startswith(LIGHT_PREFIX),
        "offset": offset if offset >= 0 else None,
        "is_kept": queue_ref >= 0 and view.broker.min_offset(queue_ref) <= offset,
        "stages": dict(stages),
        "readers": readers,
    }


def _fates(doors: Iterable[Door], light_queue: bytes, offset: int) -> Iterator[FateEntry | None]:
    for door in doors:
        yield from door.inventory().fates(light_queue, offset)


def _tell_fate(fate: FateEntry) -> Item:
    return {"kind": fate.kind, "reader": fate.reader, "stage": fate.stage.value, "note": fate.note}


async def _find_offset(broker: Broker, queue_ref: int, stored: StoredRecord) -> int:
    """Return the offset of a message in a queue, by its time and place; -1 where it is not found."""
    offset = await ask(lambda then: broker.find_offset(queue_ref, stored.store_ms, then))
    batch = StoredBatch(FIRST_COUNT)
    looked_at = 0
    while offset >= 0 and looked_at < LOOKED_AT_MAX:
        count = await read_on(broker, queue_ref, offset, batch)
        for i in range(count):
            if batch.physical_offset[i] == stored.place:
                return batch.queue_offset[i]
        if not count or batch.physical_offset[count - 1] > stored.place:
            return -1
        looked_at += count
        offset = batch.next_offset
        await asyncio.sleep(0)
    return -1


@LINEAGE.get("/devices/{client}")
async def show_device(view: View, looker: Looker, client: PathName) -> Item:
    """An MQTT client's session, and what it was meant to get and has not yet.

    Each of its subscriptions says what waits and is in flight.

    404: no such session, or that of another user, for one that is told of its own alone.
    """
    for door in view.doors.values():
        session = door.inventory().find_session(client)
        if session is not None and looker.may_see_user(session.user):
            owed = [_tell_owed(entry) async for entry in walk(door.inventory().subscriptions(client) or iter(()))]
            return {
                **tell_session(session),
                "waiting": sum(one["waiting"] for one in owed),
                "subscriptions": owed,
            }
    raise HTTPException(404, {"error": "Object Not Found", "reason": f"no session of client '{client}'"})


def _tell_owed(entry: SubscriptionEntry) -> Item:
    return {**entry._asdict(), "waiting": max(entry.max_offset - entry.next_offset, 0)}
