"""What AMQP queues have in the columns that their lists are sorted by, told of many queues at once.

To tell all of a queue takes some 20 us, and of a million queues one column only is asked for. So there are three kinds
of columns: those that messages do not change, those that are 0 until a first message came, and rates, which only few
queues have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

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


class Pacing(NamedTuple):
    """A column of messages a second; told some light queues, and where it asks for them their queues.

    Most queues do not move, and to touch a million of them costs 50 ms.
    """

    tell: Callable[[Callable[[], Sequence[SharedQueue]], Sequence[int]], Sequence[float]]


QueueColumn = Standing | Flowing | Pacing
FindColumn = Callable[[str], QueueColumn | None]


def key_of(column: QueueColumn) -> Key:
    """Return what says of one queue what it has in a column."""
    if isinstance(column, Standing):
        return lambda place: column.tell([place[1]])[0]
    if isinstance(column, Flowing):
        return lambda place: column.tell(*place)
    return lambda place: column.tell(lambda: [place[1]], [place[0].broker.find_queue(place[1].light_name)])[0]
