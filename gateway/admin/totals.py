"""What all doors have together: messages in AMQP's queues, and the deepest of these; channels, subscriptions.

It is found out by a walk in steps, at most every few seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from heapq import heappush, heapreplace
from time import monotonic
from typing import NamedTuple

from gateway.admin.steps import walk
from gateway.inventory import QueueEntry

FRESH_S = 5.0  # as often as RabbitMQ's own console asks
DEEPEST_COUNT = 10


class Totals(NamedTuple):
    """Figures of all queues together; `deepest` are those with most messages, the deepest first."""

    queues: int = 0
    ready: int = 0
    unacked: int = 0
    readers: int = 0
    channels: int = 0
    subscriptions: int = 0
    deepest: tuple[QueueEntry, ...] = ()


class TotalsKeeper:
    """Counts when it is asked, unless that was just done; all that ask meanwhile wait for one walk.

    Args:
        queues: Begins a walk over the queues.
        channels: Begins a walk over the connections, which gives the number of channels of each.
        subscriptions: Begins a walk over the sessions, which gives the number of subscriptions of each.
    """

    def __init__(
        self,
        queues: Callable[[], Iterator[QueueEntry | None]],
        channels: Callable[[], Iterator[int]],
        subscriptions: Callable[[], Iterator[int]],
    ) -> None:
        self._queues = queues
        self._channels = channels
        self._subscriptions = subscriptions
        self.latest = Totals()
        self._at_s = -FRESH_S
        self._lock = asyncio.Lock()

    async def find(self) -> Totals:
        """Return the figures, of some seconds ago at most."""
        async with self._lock:
            if monotonic() - self._at_s >= FRESH_S:
                self.latest = await self._count()
                self._at_s = monotonic()
        return self.latest

    async def _count(self) -> Totals:
        queues = ready = unacked = readers = 0
        deepest: list[tuple[int, int, QueueEntry]] = []
        async for entry in walk(self._queues()):
            queues += 1
            ready += entry.ready or 0
            unacked += entry.unacked or 0
            readers += entry.readers
            _note_depth(deepest, queues, entry)
        return Totals(
            queues,
            ready,
            unacked,
            readers,
            await _add_up(self._channels()),
            await _add_up(self._subscriptions()),
            tuple(entry for _, _, entry in sorted(deepest, reverse=True)),
        )


def depth_of(entry: QueueEntry) -> int:
    """Return how many messages a queue has, those of consumers too."""
    return (entry.ready or 0) + (entry.unacked or 0)


def _note_depth(deepest: list[tuple[int, int, QueueEntry]], number: int, entry: QueueEntry) -> None:
    depth = depth_of(entry)
    if depth and len(deepest) < DEEPEST_COUNT:
        heappush(deepest, (depth, -number, entry))
    elif depth and depth > deepest[0][0]:
        heapreplace(deepest, (depth, -number, entry))


async def _add_up(counts: Iterator[int]) -> int:
    total = 0
    async for count in walk(counts):
        total += count
    return total
