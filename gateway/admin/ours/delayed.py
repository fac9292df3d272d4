"""Messages that wait for their moment, of every door: which they are, and taking one back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Annotated, Literal, NamedTuple

from fastapi import Query, Response

from core.errors import LmqError
from core.message import StoredBatch
from core.properties import CANCEL, WAITING_AT, WAITING_FOR, decode_properties
from core.schedule.near_slot import REAL_TOPIC
from core.schedule.slots import read_due
from core.schedule.taking_back import Waiting, identity_of
from gateway.admin.asking import open_queue, read_on
from gateway.admin.login import Administrator, Member
from gateway.admin.management.failures import bad_request, busy, not_found
from gateway.admin.management.listing import Item
from gateway.admin.ours.delayed_targets import Target, find_target
from gateway.admin.ours.reading import read_one
from gateway.admin.routes import Routes
from gateway.admin.steps import Steps
from gateway.admin.stored import StoredRecord
from gateway.admin.view import AdminView, View
from gateway.inventory import text_of

DELAYED = Routes()
LOOKED_AT_MAX = 20_000  # for one answer; `next` goes on from there
COUNT_MAX = 500  # the API's largest page
BATCH_COUNT = 64  # read together, which takes some 15 us each to be told
BYTES_MAX = 1 << 20  # of one read, where messages are large
DIGITS_MAX = 18  # any number of so many fits into 64 bits
DoorName = Literal["amqp", "mqtt", "rocketmq"]


class Found(NamedTuple):
    """A message that waits, as callers are told of it that may read from its target `where`."""

    told: Item
    where: Target


@DELAYED.get("/delayed")
async def list_delayed(
    view: View,
    member: Member,
    count: Annotated[int, Query(ge=1, le=COUNT_MAX)] = 100,
    after: str | None = None,
    door: DoorName | None = None,
    name: str = "",
) -> Item:
    """Messages that wait, about in the order in which they are due: by the minute, far off ones by the day.

    `name` is a part of where they go. `next` is to be asked for as `after`; it is null at the end.
    Those are left out that the caller may not read where they go; an administrator may read all.
    """
    timer = view.broker.timer
    start = (-1, 0) if after is None else _place_of(after)
    found: list[Item] = []
    looked_at = 0
    batch, steps = StoredBatch(BATCH_COUNT), Steps()
    for waiting in _from(await _waiting(view), start[0]):
        offset = max(waiting.first, start[1] if waiting.queue_id == start[0] else 0)
        while offset < waiting.end:
            if await read_on(view.broker, waiting.queue_ref, offset, batch, BYTES_MAX) <= 0:
                break
            for i in range(batch.count):
                offset = batch.queue_offset[i] + 1
                seen = _look(view, waiting.queue_id, batch, i)
                looked_at += 1
                if seen is not None and _is_asked_for(seen.told, door, name) and seen.where.may_read(view, member):
                    found.append(seen.told)
                if len(found) >= count or looked_at >= LOOKED_AT_MAX:
                    return {"items": found, "next": f"{waiting.queue_id}-{offset}", "waiting": timer.pending_count}
            await steps.rest()
    return {"items": found, "next": None, "waiting": timer.pending_count}


@DELAYED.get("/delayed/{waiting_id}")
async def show_delayed(view: View, member: Member, waiting_id: str) -> Item:
    """One message that waits, for an administrator or a caller that may read where it goes."""
    found, _ = await _get(view, waiting_id)
    where = found.where
    member.check(f"read access to message '{waiting_id}'", is_allowed=where.may_read(view, member))
    return found.told


@DELAYED.delete("/delayed/{waiting_id}", status_code=204)
async def cancel_delayed(view: View, administrator: Administrator, waiting_id: str) -> Response:
    """Take a message back: nobody gets it."""
    del administrator
    found, identity = await _get(view, waiting_id)
    ticket = view.broker.timer.take_back(identity, found.told["due_at_ms"], view.begin_read(0))
    if ticket < 0:
        raise busy("too many messages of this minute or day were taken back")
    stored: asyncio.Future[LmqError | None] = asyncio.get_running_loop().create_future()
    view.broker.when_stored(ticket, lambda error: None if stored.done() else stored.set_result(error))
    error = await stored
    if error is not None:
        raise busy(f"it is not stored that the message is taken back: {error}")
    return Response(status_code=204)


async def _waiting(view: AdminView) -> list[Waiting]:
    """Return the queues in which something waits, the first due first; it is known where they end."""
    timer, steps = view.broker.timer, Steps()
    for waiting in timer.waiting():
        await open_queue(view.broker, waiting.queue_ref)
        await steps.rest()
    return timer.waiting()


def _from(places: list[Waiting], queue_id: int) -> Iterator[Waiting]:
    """Give the queues from one on, all of them where it is not there any more."""
    numbers = [place.queue_id for place in places]
    yield from places[numbers.index(queue_id) if queue_id in numbers else 0 :]


def _is_asked_for(told: Item, door: str | None, name: str) -> bool:
    return door in {None, told["door"]} and name in told["to"]


async def _get(view: AdminView, waiting_id: str) -> tuple[Found, bytes]:
    """Return a waiting message and what it is known by.

    Raises:
        HTTPException: 404: None waits there.
    """
    queue_id, offset = _place_of(waiting_id)
    waiting = next((place for place in await _waiting(view) if place.queue_id == queue_id), None)
    if waiting is not None and waiting.first <= offset < waiting.end:
        batch = await read_one(view.broker, waiting.queue_ref, offset)
        found = None if batch is None else _look(view, queue_id, batch, 0)
        if batch is not None and found is not None:
            return found, identity_of(batch, 0)
    raise not_found(f"no message '{waiting_id}' waits; it may have gone out")


def _place_of(waiting_id: str) -> tuple[int, int]:
    queue, dash, offset = waiting_id.partition("-")
    if not (dash and all(part.isascii() and part.isdigit() and len(part) <= DIGITS_MAX for part in (queue, offset))):
        raise bad_request(f"'{waiting_id}' is not an id from the list, such as 17-4")
    return int(queue), int(offset)


def _look(view: AdminView, queue_id: int, batch: StoredBatch, i: int) -> Found | None:
    """Return a message that waits; None where it waits no more, or is none."""
    text = bytes(batch.buf[batch.properties_start[i] : batch.properties_end[i]])
    said = decode_properties(text)
    due_ms = read_due(text)
    if CANCEL in said or not view.broker.timer.is_waiting(due_ms, batch, i):
        return None
    record = bytes(batch.buf[batch.record_start[i] : batch.record_end[i]])
    told = StoredRecord(record, batch, i).tell()
    for name in (WAITING_FOR, WAITING_AT, REAL_TOPIC):
        told["properties"].pop(text_of(name), None)
    where = find_target(said)
    told |= {"id": f"{queue_id}-{batch.queue_offset[i]}", "to": where.text, "due_at_ms": due_ms}
    return Found(told, where)
