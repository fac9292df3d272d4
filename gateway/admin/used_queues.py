"""The AMQP queues that have messages or readers, as totals go through them.

Queues of which it is known what lies in them, as nobody uses them, are added up by the thousand; of those only the
deepest and the oldest are described. The others are described one by one.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappush, heappushpop, nlargest, nsmallest

from core.broker import Broker
from gateway.admin.rosters.held_figures import Held, HeldFigures
from gateway.admin.totals import DEEPEST_COUNT, OLDEST_COUNT, QueueSum
from gateway.amqp.inventory import describe_queue
from gateway.amqp.queue_figures import BLOCK
from gateway.amqp.queues import VirtualHost
from gateway.amqp.shared_queue import SharedQueue
from gateway.inventory import QueueEntry

_NOTHING = array("q", bytes(8 * BLOCK))


class UsedQueues:
    """A walk over them, once.

    Args:
        broker: Where they are.
        vhosts: Says which virtual hosts there are.
    """

    def __init__(self, broker: Broker, vhosts: Callable[[], Iterable[VirtualHost]]) -> None:
        self._broker = broker
        self._vhosts = vhosts
        self._deepest: list[int] = []  # a heap of the depths that are the most so far
        self._oldest: list[int] = []  # the same of moments, negative

    def __iter__(self) -> Iterator[QueueEntry | QueueSum | None]:
        """Give them; None is a step in vain."""
        for vhost in list(self._vhosts()):
            yield from vhost.rows.take_in()
            held, count = HeldFigures(vhost), len(vhost.rows)
            for first in range(0, count, BLOCK):
                yield from self._look(vhost, held, first, min(first + BLOCK, count))
                yield None

    def _look(
        self, vhost: VirtualHost, held: HeldFigures, first: int, end: int
    ) -> Iterator[QueueEntry | QueueSum | None]:  # fmt: skip
        queues = vhost.rows.queues[first:end]
        known, unknown = held.glance(first, end)
        in_use = [number - first for number in vhost.rows.find_in_use(first, end)]
        single = sorted({*unknown, *in_use}) if unknown and in_use else unknown or in_use
        found = self._add_up(vhost, queues, known, single)  # before others have a turn, in which queues may change
        if found is not None:
            yield found
        for at in single:
            if _is_used(queues[at], known.next_offsets[at]):
                yield describe_queue(self._broker, vhost, queues[at])

    def _add_up(
        self, vhost: VirtualHost, queues: Sequence[SharedQueue], known: Held, single: Sequence[int]
    ) -> QueueSum | None:  # fmt: skip
        if known.ready == _NOTHING[: len(queues)]:
            return None
        ready, oldest_ms = array("q", known.ready), array("q", known.oldest_ms)
        for at in single:
            ready[at] = oldest_ms[at] = 0
        total = sum(ready)
        if not total:
            return None
        first = sorted({*self._find_deepest(ready), *self._find_oldest(oldest_ms)})
        described = ((describe_queue(self._broker, vhost, queues[at]), oldest_ms[at]) for at in first)
        return QueueSum(vhost.name, total, tuple(described))

    def _find_deepest(self, ready: array[int]) -> list[int]:
        """Return the places of queues that may be among the deepest of all."""
        if len(self._deepest) == DEEPEST_COUNT and max(ready) <= self._deepest[0]:
            return []
        return [
            at
            for depth, at in nlargest(DEEPEST_COUNT, zip(ready, range(len(ready)), strict=True))
            if depth and _keep(self._deepest, depth, DEEPEST_COUNT)
        ]

    def _find_oldest(self, oldest_ms: array[int]) -> list[int]:
        """Return the places of queues whose first message may be among the oldest of all."""
        if len(self._oldest) == OLDEST_COUNT and min(filter(None, oldest_ms), default=0) >= -self._oldest[0]:
            return []
        there = ((moment, at) for at, moment in enumerate(oldest_ms) if moment)
        return [at for moment, at in nsmallest(OLDEST_COUNT, there) if _keep(self._oldest, -moment, OLDEST_COUNT)]


def _keep(heap: list[int], rank: int, count: int) -> bool:
    """Note a rank where it is among the first `count`; return whether it is."""
    if len(heap) < count:
        heappush(heap, rank)
        return True
    return heappushpop(heap, rank) < rank


def _is_used(queue: SharedQueue, next_offset: int) -> bool:
    """Return whether a queue is read, or something may be in it."""
    if queue.is_deleted:
        return False
    if queue.consumers or queue.streams or queue.terms.priority_max:
        return True
    if queue.opened is not None:
        return queue.opened.ready_count + queue.opened.unacked_count > 0
    return next_offset > queue.first_offset
