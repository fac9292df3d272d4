"""AMQP's queues."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import NamedTuple

from fastapi import Response

from gateway.admin.activity import Rates
from gateway.admin.login import Looker
from gateway.admin.management.argument_values import told_arguments
from gateway.admin.management.channels import tell_consumer
from gateway.admin.management.listing import Asked, Item, Kind, Question, answer_kept, encode, tell_rate
from gateway.admin.management.names import NODE
from gateway.admin.management.places import Scope, find_scope, find_vhosts, get_queue, see_vhost
from gateway.admin.management.queue_columns import QueueColumns
from gateway.admin.paths import PathName
from gateway.admin.queue_ends import NO_ENDS, Ends, find_ends_of
from gateway.admin.rosters.queue_parts import AmqpPart
from gateway.admin.rosters.roster import Roster
from gateway.admin.routes import Routes
from gateway.admin.steps import walk
from gateway.admin.view import AdminView, View
from gateway.amqp.argument_rules import QUEUE_TYPE
from gateway.amqp.consumer import Consumer
from gateway.amqp.inventory import count_again, count_given, count_messages
from gateway.amqp.policies import Policy, Ruling
from gateway.amqp.queue_arguments import type_of
from gateway.amqp.queues import VirtualHost
from gateway.amqp.shared_queue import SharedQueue
from gateway.inventory import text_of

QUEUES = Routes()
CONSUMERS_MAX = 100  # told of one queue; chosen: what a page can show
Placed = tuple[VirtualHost, SharedQueue]
Paces = tuple[Item, Item]  # rates of what a queue holds, and of what left it
NO_PACES: Paces = {}, {}


@QUEUES.get("/queues")
async def list_queues(view: View, looker: Looker, asked: Asked) -> Response:
    """The queues of all virtual hosts."""
    return await _list(view, find_scope(view, looker, None), asked)


@QUEUES.get("/queues/{vhost}")
async def list_queues_in(view: View, looker: Looker, asked: Asked, vhost: PathName) -> Response:
    """The queues of one virtual host."""
    return await _list(view, find_scope(view, looker, vhost), asked)


@QUEUES.get("/queues/{vhost}/{name}")
async def show_queue(view: View, looker: Looker, asked: Asked, vhost: PathName, name: PathName) -> Item:
    """One queue, with its consumers: a hundred at most in `consumer_details`."""
    place = see_vhost(view, looker, vhost)
    queue = get_queue(place, name)
    consumers = await _find_consumers(view, queue) if queue.reader_count() else []
    return asked.pick({**tell_queue(view, place, queue), "consumer_details": consumers})


async def _find_consumers(view: AdminView, queue: SharedQueue) -> list[Item]:
    inventory = view.amqp.inventory()
    found: list[Item] = []
    own = (one if one is not None and one[1].queue is queue else None for one in inventory.open_consumers())
    async for one in walk(own):
        entry = inventory.describe_consumer(one)
        if entry is not None:
            found.append(tell_consumer(entry))
        if len(found) >= min(queue.reader_count(), CONSUMERS_MAX):
            break
    return found


async def _list(view: AdminView, scope: Scope, asked: Question) -> Response:
    broker = view.broker
    roster = view.rosters.get(("amqp", scope), lambda: AmqpRoster(view, scope))
    kind: Kind[Placed] = Kind(
        name=lambda placed: placed[1].name,
        describe=lambda placed: tell_queue(view, *placed),
        write=lambda placed: _write_row(view, *placed),
        figures={
            "vhost": lambda placed: placed[0].name,
            "type": lambda placed: type_of(placed[1].arguments),
            "policy": lambda placed: _name_of(placed[1].ruling.policy),
            "messages": lambda placed: sum(count_messages(broker, *placed)),
            "messages_ready": lambda placed: count_messages(broker, *placed)[0],
            "messages_unacknowledged": lambda placed: count_messages(broker, *placed)[1],
            "consumers": lambda placed: placed[1].reader_count(),
        },
        find_key=roster.columns.find_key,
    )
    return await answer_kept(asked, kind, roster)


class AmqpRoster(Roster[VirtualHost, Placed]):
    """The queues of some virtual hosts, or of all."""

    def __init__(self, view: AdminView, scope: Scope) -> None:
        super().__init__()
        self._view = view
        self._scope = scope
        self.columns = QueueColumns(view)

    def sources(self) -> Iterable[VirtualHost]:
        """Return the virtual hosts."""
        return find_vhosts(self._view, self._scope)

    def open(self, source: VirtualHost) -> AmqpPart:
        """Return the queues of a virtual host."""
        return AmqpPart(source, self.columns.find)


def _write_row(view: AdminView, vhost: VirtualHost, queue: SharedQueue) -> bytes:
    figures = find_figures(view, vhost, queue)
    return view.rosters.rows.get(queue, figures, lambda: encode(tell_figures(vhost, queue, figures)))


class Figures(NamedTuple):
    """What of a queue may change."""

    first: int  # offset that is kept
    end: int  # the next offset
    ready: int
    unacked: int
    given: int  # messages that ever came
    again: int
    rates: Rates
    ends: Ends
    first_offset: int  # of this queue, where an earlier one had its name
    readers: int
    exclusive_tag: str | None
    single_active_tag: str | None
    ruling: Ruling


def find_figures(view: AdminView, vhost: VirtualHost, queue: SharedQueue) -> Figures:
    """Return the figures of a queue as they are now."""
    broker, activity = view.broker, view.activity
    queue_ref = broker.find_queue(queue.light_name)
    first, end = (broker.min_offset(queue_ref), broker.max_offset(queue_ref)) if queue_ref >= 0 else (0, 0)
    ready = unacked = 0
    ends = NO_ENDS
    if end > first or queue.terms.priority_max:
        ready, unacked = count_messages(broker, vhost, queue)
        ends = find_ends_of(broker, vhost, queue)
    exclusive_tag, single_active_tag = _sole_consumer(queue) if queue.consumers else (None, None)
    return Figures(
        first,
        end,
        ready,
        unacked,
        count_given(broker, queue, queue_ref),
        count_again(queue),
        activity.rates_of(vhost, queue, queue_ref),
        ends,
        queue.first_offset,
        queue.reader_count(),
        exclusive_tag,
        single_active_tag,
        queue.ruling,
    )


def tell_queue(view: AdminView, vhost: VirtualHost, queue: SharedQueue) -> Item:
    """Return a queue as the API tells it."""
    return tell_figures(vhost, queue, find_figures(view, vhost, queue))


def tell_figures(vhost: VirtualHost, queue: SharedQueue, figures: Figures) -> Item:
    """Return a queue as the API tells it, with figures of a moment; all else of a queue stays as it is."""
    ready, unacked, ends, rates, ruling = figures.ready, figures.unacked, figures.ends, figures.rates, figures.ruling
    held, given, again = ready + unacked, figures.given, figures.again
    paces = _tell_paces(rates) if rates.is_known else NO_PACES
    arguments = told_arguments(queue.arguments) if queue.arguments else {}
    return {
        "name": queue.name,
        "vhost": vhost.name,
        "type": arguments.get(QUEUE_TYPE, "classic"),
        "durable": queue.is_durable,
        "auto_delete": queue.is_auto_delete,
        "exclusive": queue.owner is not None,
        "arguments": arguments,
        "node": NODE,
        "state": "running",
        "messages": held,
        "messages_ready": ready,
        "messages_unacknowledged": unacked,
        **paces[0],
        "message_bytes": round(ends.body_bytes * held) if held else 0,
        "message_bytes_ready": round(ends.body_bytes * ready) if ready else 0,
        "message_bytes_unacknowledged": round(ends.body_bytes * unacked) if unacked else 0,
        "message_stats": {
            "publish": given,
            "publish_details": tell_rate(rates.given),
            "deliver_get": max(given - ready, 0) + again,
            "redeliver": again,
            "ack": max(given - held, 0),
            **paces[1],
        },
        "head_message_timestamp": None if ends.oldest_at_ms is None else ends.oldest_at_ms // 1_000,
        "idle_since": None if ends.newest_at_ms is None else _told_moment(ends.newest_at_ms),
        "messages_persistent": held,
        "messages_ram": 0,
        "consumers": figures.readers,
        "policy": _name_of(ruling.policy),
        "operator_policy": _name_of(ruling.operator),
        "effective_policy_definition": ruling.definition,
        "exclusive_consumer_tag": figures.exclusive_tag,
        "single_active_consumer_tag": figures.single_active_tag,
        "lmq": {
            "light_queue": text_of(queue.light_name),
            "first_offset": max(figures.first, figures.first_offset),
            "next_offset": figures.end,
            "oldest_at_ms": ends.oldest_at_ms,
            "newest_at_ms": ends.newest_at_ms,
        },
    }


def _tell_paces(rates: Rates) -> Paces:
    """Return the rates of what a queue holds, and of what left it."""
    return {
        "messages_details": tell_rate(rates.ready + rates.unacked),
        "messages_ready_details": tell_rate(rates.ready),
        "messages_unacknowledged_details": tell_rate(rates.unacked),
    }, {
        "deliver_get_details": tell_rate(rates.delivered),
        "redeliver_details": tell_rate(rates.again),
        "ack_details": tell_rate(rates.left),
    }


def _sole_consumer(queue: SharedQueue) -> tuple[str | None, str | None]:
    """Return the tag of the consumer that gets everything, by either rule."""
    first = queue.consumers[0]
    if not isinstance(first, Consumer):
        return None, None
    return first.tag if first.exclusive else None, first.tag if queue.terms.is_single_active else None


def _told_moment(at_ms: int) -> str:
    """Return a moment as RabbitMQ writes it; since then nothing came."""
    return dt.datetime.fromtimestamp(at_ms / 1_000, dt.UTC).isoformat(timespec="milliseconds")


def _name_of(policy: Policy | None) -> str | None:
    return None if policy is None else policy.name
