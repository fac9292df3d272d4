"""Queues by the moment at which their first message outlives its time and becomes a dead letter; which may be there."""

from __future__ import annotations

import heapq

from core.broker import Broker
from core.lmq.expiry import is_expired
from core.message import AWAY, StoredBatch
from gateway.amqp.queue_ties import Expiring
from gateway.amqp.shared_queue import SharedQueue


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


def may_be_expired(broker: Broker, queue: SharedQueue, offset: int, stored: StoredBatch, now_ms: int) -> bool:
    """Return whether the message of a queue there is expired, or on its way; what `stored` holds is lost."""
    if queue.terms.priority_max > 0 or queue.is_stream:
        return True  # it looks itself: at each level, or at nothing but age
    queue_ref = broker.intern_queue(queue.light_name)
    if offset >= broker.max_offset(queue_ref):
        return False
    found = broker.read(queue_ref, offset, stored, 1, 1)
    is_due = found == AWAY or (found > 0 and is_expired(stored, 0, now_ms, queue.limit_ms))
    stored.clear()
    return is_due
