"""Queues by the moment at which their first message outlives its time and becomes a dead letter."""

from __future__ import annotations

import heapq

from gateway.amqp.queue_ties import Expiring


class HeadExpiries:
    """The queues that asked to be called; one that asks again is called for both moments."""

    def __init__(self) -> None:
        self._due: list[tuple[int, int, Expiring]] = []  # a heap
        self._count = 0

    def file(self, at_ms: int, queue: Expiring) -> None:
        """Have `on_expiry` called at a moment, or a little later."""
        self._count += 1
        heapq.heappush(self._due, (at_ms, self._count, queue))

    def run(self, now_ms: int) -> None:
        """Call those whose moment has come."""
        while self._due and self._due[0][0] <= now_ms:
            at_ms, _, queue = heapq.heappop(self._due)
            queue.on_expiry(at_ms)
