"""The columns that AMQP's queues are sorted by, by RabbitMQ's names: all fields of a queue but its node and place.

Nothing stands before the first message: a moment is 0 there. Of what stands in an object, such as
`arguments.x-max-length`, nothing comes before numbers, and those before words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from gateway.admin.management.argument_values import told_value
from gateway.admin.management.listing import dig, rank
from gateway.admin.queue_ends import find_ends_of
from gateway.admin.rosters.queue_columns import AmqpPlace, Flowing, Pacing, QueueColumn, Standing, key_of
from gateway.admin.view import AdminView
from gateway.amqp.argument_rules import CLASSIC
from gateway.amqp.inventory import count_messages
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
NOTHING = rank(None)


class QueueColumns:
    """Finds columns of AMQP's queues.

    Args:
        view: What the API sees.
    """

    def __init__(self, view: AdminView) -> None:
        self._broker = view.broker
        self._activity = view.activity
        self._columns: dict[str, QueueColumn] = {
            **{name: Standing(tell) for name, tell in STANDING.items()},
            **{name: Pacing(partial(view.activity.rates_of_many, figure)) for name, figure in RATES.items()},
            "message_bytes": Flowing(lambda *place: self._bytes_of(sum(self._counts_of(*place)), place[1])),
            "message_bytes_ready": Flowing(lambda *place: self._bytes_of(self._counts_of(*place)[0], place[1])),
            "message_bytes_unacknowledged": Flowing(
                lambda *place: self._bytes_of(self._counts_of(*place)[1], place[1])
            ),
            "message_stats.publish": Flowing(lambda _, queue: self._given_to(queue), is_offset=True),
            "message_stats.deliver_get": Flowing(self._count_delivered),
            "message_stats.redeliver": Flowing(lambda _, queue: view.activity.given_again(queue)),
            "message_stats.ack": Flowing(self._count_left, is_offset=True),
            "messages_persistent": Flowing(lambda *place: sum(self._counts_of(*place)), is_offset=True),
            "head_message_timestamp": Flowing(self._oldest_of),
            "idle_since": Flowing(self._newest_of),
            "lmq.first_offset": Flowing(self._first_of, is_offset=True),
            "lmq.next_offset": Flowing(lambda _, queue: self._end_of(queue), is_offset=True),
            "lmq.oldest_at_ms": Flowing(self._oldest_of),
            "lmq.newest_at_ms": Flowing(self._newest_of),
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

    def _counts_of(self, vhost: VirtualHost, queue: SharedQueue) -> tuple[int, int]:
        return count_messages(self._broker, vhost, queue)

    def _bytes_of(self, count: int, queue: SharedQueue) -> float:
        return count * find_ends_of(self._broker, queue).body_bytes if count else 0

    def _given_to(self, queue: SharedQueue) -> int:
        return self._activity.given_to(queue, self._broker.find_queue(queue.light_name))

    def _count_delivered(self, vhost: VirtualHost, queue: SharedQueue) -> int:
        ready, _ = self._counts_of(vhost, queue)
        return max(self._given_to(queue) - ready, 0) + self._activity.given_again(queue)

    def _count_left(self, vhost: VirtualHost, queue: SharedQueue) -> int:
        held = sum(self._counts_of(vhost, queue))
        return max(self._given_to(queue) - held, 0)

    def _oldest_of(self, vhost: VirtualHost, queue: SharedQueue) -> int:
        self._counts_of(vhost, queue)  # opens one that holds messages
        return find_ends_of(self._broker, queue).oldest_at_ms or 0

    def _newest_of(self, vhost: VirtualHost, queue: SharedQueue) -> int:
        self._counts_of(vhost, queue)
        return find_ends_of(self._broker, queue).newest_at_ms or 0

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
