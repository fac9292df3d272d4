"""How many messages all queues of AMQP have together, and how many channels there are.

They are found out by a walk in steps, at most every few seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from time import monotonic
from typing import NamedTuple

from gateway.admin.steps import walk
from gateway.inventory import QueueEntry

FRESH_S = 5.0  # as often as RabbitMQ's own console asks


class Totals(NamedTuple):
    """Figures of all queues together."""

    queues: int = 0
    ready: int = 0
    unacked: int = 0
    readers: int = 0
    channels: int = 0


class TotalsKeeper:
    """Counts when it is asked, unless that was just done; all that ask meanwhile wait for one walk.

    Args:
        queues: Begins a walk over the queues.
        channels: Begins a walk over the connections, which gives the number of channels of each.
    """

    def __init__(
        self, queues: Callable[[], Iterator[QueueEntry | None]], channels: Callable[[], Iterator[int]]
    ) -> None:
        self._queues = queues
        self._channels = channels
        self._totals = Totals()
        self._at_s = -FRESH_S
        self._lock = asyncio.Lock()

    async def find(self) -> Totals:
        """Return the figures, of some seconds ago at most."""
        async with self._lock:
            if monotonic() - self._at_s >= FRESH_S:
                self._totals = await self._count()
                self._at_s = monotonic()
        return self._totals

    async def _count(self) -> Totals:
        queues = ready = unacked = readers = 0
        async for entry in walk(self._queues()):
            queues += 1
            ready += entry.ready or 0
            unacked += entry.unacked or 0
            readers += entry.readers
        channels = 0
        async for count in walk(self._channels()):
            channels += count
        return Totals(queues, ready, unacked, readers, channels)
