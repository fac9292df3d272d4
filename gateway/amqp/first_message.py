"""The first message of a queue, for `basic.get`: expired ones before it are let go."""

from __future__ import annotations

from array import array

from core.lmq.expiry import is_expired
from core.message import AWAY, StoredBatch
from gateway.amqp.deaths import EXPIRED
from gateway.amqp.shared_queue import SharedQueue


def take_first(queue: SharedQueue, stored: StoredBatch, now_ms: int) -> int:
    """Fill the door's batch with the first message that is not expired, and hide it.

    Returns:
        1, or 0 where there is none. AWAY: it is on its way, or many expired ones come first; to be asked again later.
    """
    if queue.terms.has_length:  # before the take: what is more than the queue holds is nobody's to get
        queue.drop_expired(now_ms)
    pop = queue.pop
    for _ in range(2):
        taken = pop.take(stored, 1, 1, 0, now_ms)  # one comes however large it is
        if taken <= 0 or not is_expired(stored, 0, now_ms, queue.limit_ms):
            return taken
        queue.let_go(array("q", stored.queue_offset[:1]), 1, EXPIRED, now_ms)
        stored.clear()
        queue.drop_expired(now_ms)
    return AWAY
