"""What AMQP queues have in the columns that their lists are sorted by, told of many queues at once.

To tell all of a queue takes some 20 us, and of a million queues one column only is asked for. So there are four kinds
of columns: those that messages do not change, those that follow from what lies in a queue, others that are 0 until a
first message came, and rates, which only few queues have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gateway.admin.rosters.held_figures import Held, HeldFigures
from gateway.amqp.queues import VirtualHost
from gateway.amqp.shared_queue import SharedQueue

AmqpPlace = tuple[VirtualHost, SharedQueue]
Key = Callable[[AmqpPlace], Any]


class Standing(NamedTuple):
    """A column that messages do not change."""

    tell: Callable[[Sequence[SharedQueue]], Sequence[Any]]


class Flowing(NamedTuple):
    """A column of numbers from 0 on, which a queue has 0 in that no message ever came to."""

    tell: Callable[[VirtualHost, SharedQueue], float]
    is_offset: bool = False  # none passes the next offset of its light queue


class Holding(NamedTuple):
    """A column that follows from what lies in a queue: 0 where nothing ever came to it."""

    tell: Callable[[Held], Sequence[float]]
    is_seen: bool = False  # the messages are looked at, besides that they are counted
    is_offset: bool = False  # as of `Flowing`


class Pacing(NamedTuple):
    """A column of messages a second; told some light queues, and where it asks for them their queues.

    Most queues do not move, and to touch a million of them costs 50 ms.
    """

    tell: Callable[[Callable[[], Sequence[SharedQueue]], Sequence[int]], Sequence[float]]


QueueColumn = Standing | Flowing | Holding | Pacing
FindColumn = Callable[[str], QueueColumn | None]


def key_of(column: QueueColumn) -> Key:
    """Return what says of one queue what it has in a column."""
    if isinstance(column, Standing):
        return lambda place: column.tell([place[1]])[0]
    if isinstance(column, Flowing):
        return lambda place: column.tell(*place)
    if isinstance(column, Holding):
        return lambda place: _tell_held(column, *place)
    return lambda place: column.tell(lambda: [place[1]], [place[0].broker.find_queue(place[1].light_name)])[0]


def _tell_held(column: Holding, vhost: VirtualHost, queue: SharedQueue) -> float:
    return column.tell(HeldFigures(vhost).read_one(queue, is_seen=column.is_seen))[0]
