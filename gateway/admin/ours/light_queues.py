"""The light queues of every door, as their clients call them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response

from core.broker import Broker
from core.lmq.queue_name import AMQP, MQTT, parse_queue_name
from gateway.admin.asking import open_queue
from gateway.admin.login import Looker
from gateway.admin.management.failures import not_found
from gateway.admin.management.listing import Asked, Item, Kind, answer_kept
from gateway.admin.management.places import Scope, find_scope, find_vhosts
from gateway.admin.ours.light_columns import LightColumns, Placed
from gateway.admin.ours.reading import read_one
from gateway.admin.paths import PathName
from gateway.admin.queue_ends import find_ends, find_ends_of
from gateway.admin.rosters.part import Part
from gateway.admin.rosters.queue_parts import AmqpPart, FiltersPart, TopicsPart, told_name
from gateway.admin.rosters.roster import Roster
from gateway.admin.view import AdminView, View
from gateway.amqp.inventory import count_messages
from gateway.amqp.queues import VirtualHost
from gateway.inventory import text_of

LIGHT_QUEUES = APIRouter()
DoorName = Literal["amqp", "mqtt", "rocketmq"]


@LIGHT_QUEUES.get("/queues")
async def list_light_queues(
    view: View,
    looker: Looker,
    asked: Asked,
    door: Annotated[DoorName | None, Query()] = None,
    vhost: Annotated[str | None, Query(max_length=255)] = None,
) -> Response:
    """The light queues of all doors, or of one: AMQP queues, MQTT filters, queues of RocketMQ's topics.

    Of a virtual host they are its AMQP queues. A caller that does not see all is told of AMQP queues in virtual hosts
    that it may enter.
    """
    scope = find_scope(view, looker, vhost)
    roster = view.rosters.get(("light", door, scope), lambda: LightRoster(view, door, scope))
    return await answer_kept(asked, _kind_of(view, roster.columns), roster)


@LIGHT_QUEUES.get("/queues/{light_queue}")
async def show_light_queue(view: View, looker: Looker, light_queue: PathName) -> Item:
    """One light queue by its name in the log, with the moments of its oldest and newest message.

    Also one of an AMQP queue that is deleted: its messages are there until they are let go of.
    """
    broker = view.broker
    door, name, vhost = name_of(light_queue.encode())
    looker.check_sees(light_queue, is_told=looker.sees_all or (door == "amqp" and looker.may_see_vhost(vhost)))
    queue_ref = get_light_queue(broker, light_queue)
    await open_queue(broker, queue_ref)
    host = view.vhosts.find(vhost) if door == "amqp" else None
    queue = host.find(name) if host is not None else None
    placed: Placed = (door, queue_ref) if host is None or queue is None else (host, queue)
    told = {**_tell(broker, placed), **_tell_pace(view, placed)}
    return {**told, "name": name, "vhost": vhost, **await _moments_of(broker, queue_ref)}


async def _moments_of(broker: Broker, queue_ref: int) -> Item:
    """Return the moments of the first and the last message that are kept, consumed or not."""
    first, end = broker.min_offset(queue_ref), broker.max_offset(queue_ref)
    moments: Item = {}
    for name, offset in (("oldest_at_ms", first), ("newest_at_ms", end - 1)):
        batch = await read_one(broker, queue_ref, offset) if first <= offset < end else None
        moments[name] = None if batch is None else batch.store_ms[0]
    return moments


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


class LightRoster(Roster[VirtualHost | str, Placed]):
    """The light queues of one door, or of all."""

    def __init__(self, view: AdminView, door: str | None, scope: Scope) -> None:
        super().__init__()
        self._view = view
        self._door = door
        self._scope = scope
        self.columns = LightColumns(view)

    def sources(self) -> Iterable[VirtualHost | str]:
        """Return AMQP's virtual hosts, and the names of the other doors."""
        if self._door in {None, "amqp"}:
            yield from find_vhosts(self._view, self._scope)
        for door in ("mqtt", "rocketmq"):
            if self._door in {None, door} and self._scope is None:
                yield door

    def open(self, source: VirtualHost | str) -> Part[Placed]:
        """Return the light queues of a source."""
        if isinstance(source, VirtualHost):
            return AmqpPart(source, self._view.vhosts.rows_of(source), self.columns.find)
        if source == "mqtt":
            return FiltersPart(self._view.broker, source, self.columns.quick, self.columns.used)
        return TopicsPart(self._view.broker, source, self._view.rocketmq.inventory().queue_refs)


def _kind_of(view: AdminView, columns: LightColumns) -> Kind[Placed]:
    broker = view.broker

    def tell(placed: Placed) -> Item:
        return {**_tell(broker, placed), **_tell_pace(view, placed)}

    def kept(placed: Placed) -> int:
        first, end = ends_of(broker, placed)
        return end - first

    return Kind(
        name=lambda placed: _name_of(broker, placed),
        describe=tell,
        figures={
            "kept": kept,
            "next_offset": lambda placed: ends_of(broker, placed)[1],
            "readers": lambda placed: _readers_of(broker, placed),
            "messages_ready": lambda placed: _counts_of(broker, placed)[0],
            "messages_unacknowledged": lambda placed: _counts_of(broker, placed)[1],
            "door": lambda placed: placed[0] if isinstance(placed[0], str) else "amqp",
            "vhost": lambda placed: "" if isinstance(placed[0], str) else placed[0].name,
        },
        find_key=columns.find_key,
    )


def ends_of(broker: Broker, placed: Placed) -> tuple[int, int]:
    """Return the first offset that is kept of a light queue, and the next one to be given."""
    queue_ref = _ref_of(broker, placed)
    return (broker.min_offset(queue_ref), broker.max_offset(queue_ref)) if queue_ref >= 0 else (0, 0)


def _ref_of(broker: Broker, placed: Placed) -> int:
    return placed[1] if isinstance(placed[1], int) else broker.find_queue(placed[1].light_name)


def _name_of(broker: Broker, placed: Placed) -> str:
    return told_name(broker.queue_key(placed[1])) if isinstance(placed[1], int) else placed[1].name


def _readers_of(broker: Broker, placed: Placed) -> int:
    return broker.reader_count(placed[1]) if isinstance(placed[1], int) else placed[1].reader_count()


def _counts_of(broker: Broker, placed: Placed) -> tuple[int | None, int | None]:
    """Return how many messages are ready and with consumers; None where a queue does not keep count."""
    place, queue = placed
    return (None, None) if isinstance(place, str) or isinstance(queue, int) else count_messages(broker, place, queue)


def _tell(broker: Broker, placed: Placed) -> Item:
    place, queue = placed
    first, end = ends_of(broker, placed)
    ready, unacked = _counts_of(broker, placed)
    return {
        "name": _name_of(broker, placed),
        "door": place if isinstance(place, str) else "amqp",
        "vhost": "" if isinstance(place, str) else place.name,
        "light_queue": text_of(broker.queue_key(queue) if isinstance(queue, int) else queue.light_name),
        "first_offset": first,
        "next_offset": end,
        "kept": end - first,
        "readers": _readers_of(broker, placed),
        "messages_ready": ready,
        "messages_unacknowledged": unacked,
    }


def _tell_pace(view: AdminView, placed: Placed) -> Item:
    """Return what moves: messages a second in, out and once more, where that is known, and the moments of the ends."""
    place, queue = placed
    rate_out: float | None = None
    rate_again: float | None = None
    if isinstance(place, str) or isinstance(queue, int):
        queue_ref = _ref_of(view.broker, placed)
        ends, rate_in = find_ends(view.broker, queue_ref), view.activity.rate_into(queue_ref)
    else:
        ends, rates = find_ends_of(view.broker, queue), view.activity.rates_of(place, queue)
        rate_in, rate_out, rate_again = rates.given, round(rates.left, 1), round(rates.again, 1)
    return {
        "rate_in": round(rate_in, 1),
        "rate_out": rate_out,
        "rate_again": rate_again,
        "body_bytes_mean": round(ends.body_bytes),
        "oldest_at_ms": ends.oldest_at_ms,
        "newest_at_ms": ends.newest_at_ms,
    }
