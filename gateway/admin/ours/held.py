"""What keeps old messages in the log: queues and sessions that have not consumed them yet, the oldest first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, NamedTuple

from fastapi import Query, Response

from core.message import StoredBatch
from gateway.admin.login import Monitor
from gateway.admin.management.listing import Asked, Beside, Item, Kind, answer_list
from gateway.admin.ours.light_queues import name_of
from gateway.admin.ours.reading import read_one
from gateway.admin.routes import Routes
from gateway.admin.steps import Steps, walk
from gateway.admin.view import AdminView, View
from gateway.inventory import text_of

HELD = Routes()
COUNT_MAX = 500  # the API's largest page
LOOKED_AT_MAX = 20_000  # whose first message is read: each may be a page that is not in memory


class Holding(NamedTuple):
    """Something that waits for messages of a light queue."""

    kind: str
    name: str
    vhost: str
    queue_ref: int
    offset: int  # the first that it has not done


Found = tuple[int, int, Holding]  # where that message is in the log, when it was stored


@HELD.get("/held")
async def list_held(
    view: View, monitor: Monitor, asked: Asked, count: Annotated[int, Query(ge=1, le=COUNT_MAX)] = 100
) -> Response:
    """Queues and sessions whose first message that is not done is the oldest, so that the log keeps it for them.

    `place` is where that message is in the log: in the segment file with the greatest name that is not above it.
    Of more than 20,000 of them the rest is not looked at, and counted in `not_looked_at`. `count` is for an answer that
    is no page.
    """
    del monitor
    steps, looked_at, missed = Steps(), 0, 0
    found: list[Found] = []
    async for holding in walk(_holdings(view)):
        if looked_at == LOOKED_AT_MAX:
            missed += 1
            continue
        looked_at += 1
        first = await _read_first(view, holding)
        if first is not None:
            found.append((first.physical_offset[0], first.store_ms[0], holding))
        await steps.rest()
    facts = {"log_bytes": view.broker.figures().log_bytes, "not_looked_at": missed}
    return await answer_list(asked.sorted_by("place"), _kind_of(view), found, Beside(facts, count_max=count))


def _kind_of(view: AdminView) -> Kind[Found]:
    return Kind(
        name=lambda one: one[2].name,
        describe=lambda one: _tell(view, *one),
        figures={
            "place": lambda one: one[0],
            "stored_at_ms": lambda one: one[1],
            "kind": lambda one: one[2].kind,
            "vhost": lambda one: one[2].vhost,
        },
    )


def _holdings(view: AdminView) -> Iterator[Holding | None]:
    for entry in view.amqp.inventory().queues():
        if entry is None or not entry.first_waiting:
            yield None
            continue
        for queue_ref, offset in entry.first_waiting:
            yield Holding("queue", entry.name, entry.vhost, queue_ref, offset)
    inventory = view.mqtt.inventory()
    for found in inventory.filters():
        one = None if found is None else inventory.describe_subscription(*found)
        if found is None or one is None or one.next_offset >= one.max_offset:
            yield None
            continue
        yield Holding(
            "session", text_of(found[0]), "", view.broker.find_queue(one.light_queue.encode()), one.next_offset
        )


async def _read_first(view: AdminView, holding: Holding) -> StoredBatch | None:
    if holding.queue_ref < 0:
        return None
    offset = max(holding.offset, view.broker.min_offset(holding.queue_ref))
    return await read_one(view.broker, holding.queue_ref, offset)


def _tell(view: AdminView, place: int, stored_ms: int, holding: Holding) -> Item:
    broker = view.broker
    light_queue = broker.queue_key(holding.queue_ref)
    return {
        "kind": holding.kind,
        "name": holding.name,
        "vhost": holding.vhost,
        "queue": name_of(broker, light_queue)[1],
        "light_queue": text_of(light_queue),
        "offset": holding.offset,
        "waiting": broker.max_offset(holding.queue_ref) - holding.offset,
        "place": place,
        "stored_at_ms": stored_ms,
    }
