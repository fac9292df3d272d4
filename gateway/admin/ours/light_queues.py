"""The light queues of every door, as their clients call them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, NamedTuple

from fastapi import Query, Response

from core.broker import Broker
from gateway.admin.activity import STANDING
from gateway.admin.asking import open_queue
from gateway.admin.login import Looker
from gateway.admin.management.failures import not_found
from gateway.admin.management.listing import Asked, Item, Kind, answer_kept, encode
from gateway.admin.management.places import Scope, find_scope, find_vhosts
from gateway.admin.ours.light_columns import LightColumns, Placed
from gateway.admin.ours.reading import read_one
from gateway.admin.paths import PathName
from gateway.admin.queue_ends import NO_ENDS, Ends, find_ends, find_ends_of
from gateway.admin.rosters.part import Part
from gateway.admin.rosters.queue_parts import AmqpPart, FiltersPart, TopicsPart, told_name
from gateway.admin.rosters.roster import Roster
from gateway.admin.routes import Routes
from gateway.admin.view import AdminView, View
from gateway.amqp.inventory import count_messages
from gateway.amqp.queues import VirtualHost
from gateway.inventory import text_of

LIGHT_QUEUES = Routes()
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
    door, name, vhost = name_of(broker, light_queue.encode())
    looker.check_sees(light_queue, is_told=looker.sees_all or (door == "amqp" and looker.may_see_vhost(vhost)))
    queue_ref = get_light_queue(broker, light_queue)
    await open_queue(broker, queue_ref)
    host = view.vhosts.find(vhost) if door == "amqp" else None
    queue = host.find(name) if host is not None else None
    is_own = queue is not None and queue.light_name == light_queue.encode()  # not what is beside it
    placed: Placed = (host, queue) if host is not None and queue is not None and is_own else (door, queue_ref)
    told = tell_figures(broker, placed, find_figures(view, placed))
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


def name_of(broker: Broker, light_queue: bytes) -> tuple[str, str, str]:
    """Return the door that a light queue is of, and its name and virtual host as clients of that door call them."""
    called = broker.long_names.find(light_queue)
    if called is not None:
        return called.kind.decode(), text_of(called.name), text_of(called.vhost)
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
            return AmqpPart(source, self.columns.find)
        if source == "mqtt":
            return FiltersPart(self._view.broker, source, self.columns.quick, self.columns.used)
        return TopicsPart(self._view.broker, source, self._view.rocketmq.inventory().queue_refs)


def _kind_of(view: AdminView, columns: LightColumns) -> Kind[Placed]:
    broker = view.broker

    def tell(placed: Placed) -> Item:
        return tell_figures(broker, placed, find_figures(view, placed))

    def write(placed: Placed) -> bytes:
        figures = find_figures(view, placed)
        return view.rosters.rows.get(
            ("light", placed[1]), figures, lambda: encode(tell_figures(broker, placed, figures))
        )

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
        write=write,
    )


def ends_of(broker: Broker, placed: Placed) -> tuple[int, int]:
    """Return the first offset that is kept of a light queue, and the next one to be given."""
    queue_ref = _ref_of(broker, placed)
    return (broker.min_offset(queue_ref), broker.max_offset(queue_ref)) if queue_ref >= 0 else (0, 0)


def _ref_of(broker: Broker, placed: Placed) -> int:
    return placed[1] if isinstance(placed[1], int) else broker.find_queue(placed[1].light_name)


def _name_of(broker: Broker, placed: Placed) -> str:
    return told_name(broker.queue_key(placed[1]), broker.long_names) if isinstance(placed[1], int) else placed[1].name


def _readers_of(broker: Broker, placed: Placed) -> int:
    return broker.reader_count(placed[1]) if isinstance(placed[1], int) else placed[1].reader_count()


def _counts_of(broker: Broker, placed: Placed) -> tuple[int | None, int | None]:
    """Return how many messages are ready and with consumers; None where a queue does not keep count."""
    place, queue = placed
    return (None, None) if isinstance(place, str) or isinstance(queue, int) else count_messages(broker, place, queue)


class Figures(NamedTuple):
    """What of a light queue may change; None: its door does not keep count of it, or it was not looked at yet."""

    first: int  # offset that is kept
    end: int  # the next offset
    readers: int
    ready: int | None
    unacked: int | None
    rate_in: float  # messages a second
    rate_out: float | None
    rate_again: float | None
    ends: Ends


def find_figures(view: AdminView, placed: Placed) -> Figures:
    """Return the figures of a light queue as they are now."""
    broker, activity = view.broker, view.activity
    place, queue = placed
    queue_ref = _ref_of(broker, placed)
    first, end = (broker.min_offset(queue_ref), broker.max_offset(queue_ref)) if queue_ref >= 0 else (0, 0)
    if isinstance(place, str) or isinstance(queue, int):
        rate_in, readers = round(activity.rate_into(queue_ref), 1), _readers_of(broker, placed)
        ends = find_ends(broker, queue_ref) if end > first else NO_ENDS
        return Figures(first, end, readers, None, None, rate_in, None, None, ends)
    ready = unacked = 0
    ends = NO_ENDS
    if end > first or queue.terms.priority_max:
        ready, unacked = count_messages(broker, place, queue)
        ends = find_ends_of(broker, place, queue)
    rates = activity.rates_of(place, queue, queue_ref)
    readers = queue.reader_count()
    if rates is STANDING:
        return Figures(first, end, readers, ready, unacked, 0.0, 0.0, 0.0, ends)
    left, again = (round(rates.left, 1), round(rates.again, 1)) if rates.is_known else (None, None)
    return Figures(first, end, readers, ready, unacked, round(rates.given, 1), left, again, ends)


def tell_figures(broker: Broker, placed: Placed, figures: Figures) -> Item:
    """Return a light queue as the API tells it, with figures of a moment; all else of it stays as it is."""
    place, queue = placed
    return {
        "name": _name_of(broker, placed),
        "door": place if isinstance(place, str) else "amqp",
        "vhost": "" if isinstance(place, str) else place.name,
        "light_queue": text_of(broker.queue_key(queue) if isinstance(queue, int) else queue.light_name),
        "first_offset": figures.first,
        "next_offset": figures.end,
        "kept": figures.end - figures.first,
        "readers": figures.readers,
        "messages_ready": figures.ready,
        "messages_unacknowledged": figures.unacked,
        "rate_in": figures.rate_in,
        "rate_out": figures.rate_out,
        "rate_again": figures.rate_again,
        "body_bytes_mean": round(figures.ends.body_bytes),
        "oldest_at_ms": figures.ends.oldest_at_ms,
        "newest_at_ms": figures.ends.newest_at_ms,
    }
