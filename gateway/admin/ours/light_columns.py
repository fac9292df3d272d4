"""The columns that light queues of all doors are sorted by, but those that the list itself tells at once.

What a door does not tell of its queues is -1; a moment or a length is 0 before the first message.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import Any

from gateway.admin.queue_ends import find_ends
from gateway.admin.rosters.queue_columns import Flowing, Holding, Pacing, QueueColumn, Standing, key_of
from gateway.admin.rosters.queue_parts import Tell, subtract
from gateway.admin.view import AdminView
from gateway.amqp.inventory import count_messages
from gateway.amqp.queues import VirtualHost
from gateway.amqp.shared_queue import SharedQueue

Placed = tuple[VirtualHost | str, SharedQueue | int]  # an AMQP queue in its host, or a door and a light queue
ENDS: Mapping[str, Callable[[Any], float]] = {
    "oldest_at_ms": lambda ends: ends.oldest_at_ms or 0,
    "newest_at_ms": lambda ends: ends.newest_at_ms or 0,
    "body_bytes_mean": attrgetter("body_bytes"),
}
SEEN = {
    "oldest_at_ms": Holding(lambda held: held.oldest_ms, is_seen=True),
    "newest_at_ms": Holding(lambda held: held.newest_ms, is_seen=True),
    "body_bytes_mean": Holding(lambda held: held.body_bytes, is_seen=True),
}
RATES: Mapping[str, Callable[[Any], float]] = {
    "rate_in": attrgetter("given"),
    "rate_out": attrgetter("left"),
    "rate_again": attrgetter("again"),
}
UNTOLD = ("messages_ready", "messages_unacknowledged", "rate_out", "rate_again")  # of queues that are not AMQP's


class LightColumns:
    """Finds columns of light queues.

    Args:
        view: What the API sees.
    """

    def __init__(self, view: AdminView) -> None:
        self._broker = broker = view.broker
        self._amqp: dict[str, QueueColumn] = {
            **{name: Pacing(partial(view.activity.rates_of_many, figure)) for name, figure in RATES.items()},
            **SEEN,
            "readers": Standing(lambda queues: [queue.reader_count() for queue in queues]),
            "light_queue": Standing(
                lambda queues: [queue.light_name for queue in queues]
            ),  # in the order of their texts
            "first_offset": Flowing(self._first_of, is_offset=True),
        }
        self.used: dict[str, Callable[[int], float]] = {
            name: partial(self._end_of_light, figure) for name, figure in ENDS.items()
        }
        """What light queues have that are not AMQP's; one to which no message ever came has 0."""
        self.quick: dict[str, Tell] = {
            "readers": broker.reader_counts,
            "next_offset": partial(_read_offsets, broker.engine.next_offsets),
            "first_offset": partial(_read_offsets, broker.engine.first_offsets),
            "kept": self._count_kept,
            "rate_in": view.activity.rates_into,
            "door": lambda first, end: ["mqtt"] * (end - first),
            "vhost": lambda first, end: [""] * (end - first),
            "light_queue": lambda first, end: [broker.queue_key(ref) for ref in range(first, end)],
            **dict.fromkeys(UNTOLD, lambda first, end: [-1] * (end - first)),
        }
        """What MQTT's filters have from one number to before another."""

    def find(self, name: str) -> QueueColumn | None:
        """Return a column of AMQP's queues; None where none has it, or the list itself tells it."""
        return self._amqp.get(name)

    def find_key(self, name: str) -> Callable[[Placed], Any] | None:
        """Return a function that gives the value of a column for one light queue, None as `find`."""
        column, quick, used = self._amqp.get(name), self.quick.get(name), self.used.get(name)
        if column is None and name in UNTOLD:
            which = UNTOLD.index(name)
            column = Flowing(lambda *place: count_messages(self._broker, *place)[which])
        if column is None:
            return None
        of_queue = key_of(column)

        def tell(placed: Placed) -> Any:  # noqa: ANN401 - whatever a column has
            place, queue = placed
            if not isinstance(place, str) and not isinstance(queue, int):
                return of_queue((place, queue))
            assert isinstance(queue, int)
            if used is not None:
                return used(queue)
            return None if quick is None else quick(queue, queue + 1)[0]

        return tell

    def _end_of_light(self, figure: Callable[[Any], float], queue_ref: int) -> float:
        return figure(find_ends(self._broker, queue_ref))

    def _count_kept(self, first: int, end: int) -> array[int]:
        engine = self._broker.engine
        return subtract(_read_offsets(engine.next_offsets, first, end), _read_offsets(engine.first_offsets, first, end))

    def _first_of(self, _: VirtualHost, queue: SharedQueue) -> int:
        ref = self._broker.find_queue(queue.light_name)
        return self._broker.min_offset(ref) if ref >= 0 else 0


def _read_offsets(read: Callable[[int, array[int]], int], first: int, end: int) -> array[int]:
    offsets = array("q", bytes(8 * (end - first)))
    read(first, offsets)
    return offsets
