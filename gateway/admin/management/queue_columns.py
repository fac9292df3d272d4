"""The columns that AMQP's queues are sorted by, by RabbitMQ's names: all fields of a queue but its node and place.

Nothing stands before the first message: a moment is 0 there. Of what stands in an object, such as
`arguments.x-max-length`, nothing comes before numbers, and those before words. A rate that is not known yet stands
where it would if nothing had left the queue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter, mul
from typing import Any

from gateway.admin.management.argument_values import told_value
from gateway.admin.management.listing import dig, rank
from gateway.admin.rosters.queue_columns import AmqpPlace, Flowing, Holding, Pacing, QueueColumn, Standing, key_of
from gateway.admin.view import AdminView
from gateway.amqp.argument_rules import CLASSIC
from gateway.amqp.policies import Policy
from gateway.amqp.queue_arguments import type_of
from gateway.amqp.queues import VirtualHost
from gateway.amqp.shared_queue import SharedQueue

RATES: Mapping[str, Callable[[Any], float]] = {
    "messages_details.rate": lambda rates: rates.ready + rates.unacked,
    "messages_ready_details.rate": attrgetter("ready"),
    "messages_unacknowledged_details.rate": attrgetter("unacked"),
    "message_stats.publish_details.rate": attrgetter("given"),
    "message_stats.deliver_get_details.rate": attrgetter("delivered"),
    "message_stats.redeliver_details.rate": attrgetter("again"),
    "message_stats.ack_details.rate": attrgetter("left"),
}
STANDING: Mapping[str, Callable[[Sequence[SharedQueue]], Sequence[Any]]] = {
    "type": lambda queues: [type_of(queue.arguments) if queue.arguments else CLASSIC for queue in queues],
    "durable": lambda queues: [queue.is_durable for queue in queues],
    "auto_delete": lambda queues: [queue.is_auto_delete for queue in queues],
    "exclusive": lambda queues: [queue.owner is not None for queue in queues],
    "consumers": lambda queues: [queue.reader_count() for queue in queues],
    "policy": lambda queues: [_name_of(queue.ruling.policy) for queue in queues],
    "operator_policy": lambda queues: [_name_of(queue.ruling.operator) for queue in queues],
    "lmq.light_queue": lambda queues: [queue.light_name for queue in queues],  # in the order of their texts
}
OLDEST = Holding(lambda held: held.oldest_ms, is_seen=True)
NEWEST = Holding(lambda held: held.newest_ms, is_seen=True)
NOTHING = rank(None)


class QueueColumns:
    """Finds columns of AMQP's queues.

    Args:
        view: What the API sees.
    """

    def __init__(self, view: AdminView) -> None:
        self._broker = view.broker
        self._columns: dict[str, QueueColumn] = {
            **{name: Standing(tell) for name, tell in STANDING.items()},
            **{name: Pacing(partial(view.activity.rates_of_many, figure)) for name, figure in RATES.items()},
            "message_bytes": Holding(lambda held: list(map(mul, held.messages(), held.body_bytes)), is_seen=True),
            "message_bytes_ready": Holding(lambda held: list(map(mul, held.ready, held.body_bytes)), is_seen=True),
            "message_bytes_unacknowledged": Holding(
                lambda held: list(map(mul, held.unacked, held.body_bytes)), is_seen=True
            ),
            "message_stats.publish": Holding(lambda held: held.given, is_offset=True),
            "message_stats.deliver_get": Holding(lambda held: held.delivered()),
            "message_stats.redeliver": Holding(lambda held: held.again),
            "message_stats.ack": Holding(lambda held: held.left(), is_offset=True),
            "messages_persistent": Holding(lambda held: held.messages(), is_offset=True),
            "head_message_timestamp": OLDEST,
            "idle_since": NEWEST,
            "lmq.first_offset": Flowing(self._first_of, is_offset=True),
            "lmq.next_offset": Flowing(lambda _, queue: self._end_of(queue), is_offset=True),
            "lmq.oldest_at_ms": OLDEST,
            "lmq.newest_at_ms": NEWEST,
        }

    def find(self, name: str) -> QueueColumn | None:
        """Return a column; None where no queue has it, or another place tells what it has."""
        found = self._columns.get(name)
        if found is None and "." in name:
            outer, *path = name.split(".")
            if outer == "arguments":
                return Standing(partial(_tell_arguments, ".".join(path)))
            if outer == "effective_policy_definition":
                return Standing(partial(_tell_ruled, path))
        return found

    def find_key(self, name: str) -> Callable[[AmqpPlace], Any] | None:
        """Return a function that gives the value of a column for one queue, None as `find`."""
        found = self.find(name)
        return None if found is None else key_of(found)

    def _first_of(self, _: VirtualHost, queue: SharedQueue) -> int:
        ref = self._broker.find_queue(queue.light_name)
        return max(self._broker.min_offset(ref) if ref >= 0 else 0, queue.first_offset)

    def _end_of(self, queue: SharedQueue) -> int:
        ref = self._broker.find_queue(queue.light_name)
        return self._broker.max_offset(ref) if ref >= 0 else 0


def _tell_arguments(name: str, queues: Sequence[SharedQueue]) -> Sequence[Any]:
    return [
        NOTHING if name not in queue.arguments else rank(told_value(queue.arguments[name].value)) for queue in queues
    ]


def _tell_ruled(path: Sequence[str], queues: Sequence[SharedQueue]) -> Sequence[Any]:
    return [NOTHING if not queue.ruling.definition else rank(dig(queue.ruling.definition, path)) for queue in queues]


def _name_of(policy: Policy | None) -> str:
    return "" if policy is None else policy.name
