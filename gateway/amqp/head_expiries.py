"""Queues by the moment at which their first message outlives its time and becomes a dead letter; which may be there."""

from __future__ import annotations

import heapq

from core.broker import Broker
from core.lmq.expiry import expires_at
from core.lmq.waiters import Reader
from core.message import AWAY, StoredBatch
from gateway.amqp.queue_ties import Expiring
from gateway.amqp.shared_queue import SharedQueue

NEVER = -1
UNKNOWN = 1 << 62  # later than any moment
CALLED_A_TURN = 1_024  # queues, a microsecond or two each


class HeadExpiries(Reader):
    """The queues that asked to be called; one that asks again is called for both moments.

    Args:
        broker: Gives the turns; its timer rings at the moments.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._due: list[tuple[int, int, Expiring]] = []  # a heap
        self._count = 0
        broker.timer.followers.append(self)

    def file(self, at_ms: int, queue: Expiring) -> None:
        """Have `on_expiry` called at a moment, or a little later."""
        self._count += 1
        if not self._due or at_ms < self._due[0][0]:
            self._broker.timer.wake_at(at_ms)
        heapq.heappush(self._due, (at_ms, self._count, queue))

    def on_ready(self, now_ms: int) -> bool:
        """Call those whose moment has come, some in each turn; have the timer ring at the next moment."""
        for _ in range(CALLED_A_TURN):
            if not self._due or self._due[0][0] > now_ms:
                break
            at_ms, _, queue = heapq.heappop(self._due)
            queue.on_expiry(at_ms)
        if self._due and self._due[0][0] <= now_ms:
            self._broker.request_run(self)
        elif self._due:
            self._broker.timer.wake_at(self._due[0][0])
        return False


def find_head_expiry(broker: Broker, queue: SharedQueue, offset: int, stored: StoredBatch) -> int:
    """Return the moment at which the message of a queue there outlives its time; what `stored` holds is lost.

    `NEVER` where it does not, or there is none; `UNKNOWN` where the first one that is kept is another; 0 where the
    queue has to look itself.
    """
    if queue.terms.priority_max > 0 or queue.is_stream:
        return 0  # at each level, or at nothing but age
    queue_ref = broker.intern_queue(queue.light_name)
    if offset >= broker.max_offset(queue_ref):
        return NEVER
    found = broker.read(queue_ref, offset, stored, 1, 1)
    due_ms = UNKNOWN if found != AWAY else 0
    if found > 0:
        due_ms = expires_at(stored, 0, queue.limit_ms)
        due_ms = UNKNOWN if due_ms == NEVER and stored.queue_offset[0] != offset else due_ms
    stored.clear()
    return due_ms
