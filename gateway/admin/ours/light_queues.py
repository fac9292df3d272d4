"""The light queues of every door, as their clients call them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response

from core.broker import Broker
from core.lmq.queue_name import AMQP, MQTT, parse_queue_name
from gateway.admin.login import Looker
from gateway.admin.management.failures import not_found
from gateway.admin.management.listing import Asked, Item, Kind, answer_list
from gateway.admin.ours.reading import read_one
from gateway.admin.paths import PathName
from gateway.admin.view import AdminView, View
from gateway.inventory import QueueEntry, text_of

LIGHT_QUEUES = APIRouter()
DoorName = Literal["amqp", "mqtt", "rocketmq"]
Placed = tuple[str, QueueEntry]


@LIGHT_QUEUES.get("/queues")
async def list_light_queues(
    view: View, looker: Looker, asked: Asked, door: Annotated[DoorName | None, Query()] = None
) -> Response:
    """The light queues of all doors, or of one: AMQP queues, MQTT filters, queues of RocketMQ's topics."""
    del looker
    return await answer_list(asked, KIND, _walk(view, door))


@LIGHT_QUEUES.get("/queues/{light_queue}")
async def show_light_queue(view: View, looker: Looker, light_queue: PathName) -> Item:
    """One light queue by its name in the log, with the moments of its oldest and newest message."""
    del looker
    broker = view.broker
    queue_ref = get_light_queue(broker, light_queue)
    first, end = broker.min_offset(queue_ref), broker.max_offset(queue_ref)
    moments: Item = {}
    for name, offset in (("oldest_at_ms", first), ("newest_at_ms", end - 1)):
        batch = await read_one(broker, queue_ref, offset) if first <= offset < end else None
        moments[name] = None if batch is None else batch.store_ms[0]
    door, name, vhost = name_of(light_queue.encode())
    told = {"name": name, "door": door, "vhost": vhost, "light_queue": light_queue}
    return {**told, "first_offset": first, "next_offset": end, "kept": end - first, **moments, **_counts(view, told)}


def _counts(view: AdminView, told: Item) -> Item:
    vhost = view.vhosts.find(told["vhost"]) if told["door"] == "amqp" else None
    queue = vhost.find(told["name"]) if vhost is not None else None
    readers = view.broker.reader_count(view.broker.find_queue(told["light_queue"].encode()))
    if queue is None:
        return {"readers": readers}
    return {
        "readers": queue.reader_count(),
        "messages_ready": queue.pop.ready_count,
        "messages_unacknowledged": queue.pop.unacked_count,
    }


def get_light_queue(broker: Broker, light_queue: str) -> int:
    """Return the number of a light queue.

    Raises:
        HTTPException: 404.
    """
    queue_ref = broker.find_queue(light_queue.encode())
    if queue_ref < 0:
        raise not_found(f"no light queue '{light_queue}'")
    return queue_ref


def name_of(light_queue: bytes) -> tuple[str, str, str]:
    """Return the door that a light queue is of, and its name and virtual host as clients of that door call them.

    A long name is told by its digits alone, which only its definition can tell more of.
    """
    parsed = parse_queue_name(light_queue)
    if parsed is not None and parsed[0] == MQTT:
        return "mqtt", text_of(parsed[1][0]), ""
    if parsed is not None and parsed[0] == AMQP:
        return "amqp", text_of(parsed[1][1]), text_of(parsed[1][0])
    kind = light_queue.split(b"%")[2] if light_queue.startswith(b"%LMQ%") else b"rocketmq"
    return text_of(kind), text_of(light_queue), ""


def _walk(view: AdminView, only: str | None) -> Iterator[Placed | None]:
    for name, door in view.doors.items():
        if only in {None, name}:
            for entry in door.inventory().queues():
                yield None if entry is None else (name, entry)


def _tell(placed: Placed) -> Item:
    door, entry = placed
    return {
        "name": entry.name,
        "door": door,
        "vhost": entry.vhost,
        "light_queue": entry.light_queue,
        "first_offset": entry.min_offset,
        "next_offset": entry.max_offset,
        "kept": entry.max_offset - entry.min_offset,
        "readers": entry.readers,
        "messages_ready": entry.ready,
        "messages_unacknowledged": entry.unacked,
    }


KIND: Kind[Placed] = Kind(
    name=lambda placed: placed[1].name,
    describe=_tell,
    figures={
        "kept": lambda placed: placed[1].max_offset - placed[1].min_offset,
        "readers": lambda placed: placed[1].readers,
        "messages_ready": lambda placed: placed[1].ready,
    },
)
