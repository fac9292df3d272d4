"""The first and the last message of a queue: since when the oldest waits, when the newest came, how long they are."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from core.broker import Broker
from core.message import StoredBatch
from core.queues.levelled_queue import LevelledQueue
from gateway.amqp.queues import VirtualHost
from gateway.amqp.shared_queue import SharedQueue

HEAD_COUNT = 8  # messages that stand first, whose length is looked at; chosen: expired ones stand there, mostly few
HEAD_BYTES_MAX = 1 << 16  # of one read of a queue's first messages: of usual ones HEAD_COUNT, of large ones one
_ANY_BYTES = 1 << 40  # no bound: HEAD_COUNT is one


class Ends(NamedTuple):
    """What is known by a look at a few messages; None where there is none, or it is on its way."""

    oldest_at_ms: int | None = None
    newest_at_ms: int | None = None
    body_bytes: float = 0.0  # of one message, the mean of those that stand first


NO_ENDS = Ends()


@cache
def _scratch() -> StoredBatch:
    """Return what messages are looked at in: to make one for each queue takes ten times as long as the look."""
    return StoredBatch(HEAD_COUNT)


def find_ends(broker: Broker, queue_ref: int) -> Ends:
    """Return what is known of a light queue."""
    if queue_ref < 0 or broker.max_offset(queue_ref) <= broker.min_offset(queue_ref):
        return NO_ENDS
    batch = _scratch()
    count = broker.read(queue_ref, broker.min_offset(queue_ref), batch, HEAD_COUNT, HEAD_BYTES_MAX)
    oldest_at_ms, body_bytes = _look(batch, count)
    return Ends(oldest_at_ms, _find_newest(broker, queue_ref), body_bytes)


def find_ends_of(broker: Broker, vhost: VirtualHost, queue: SharedQueue) -> Ends:
    """Return what is known of an AMQP queue: the oldest message that could be taken now, and the newest that came."""
    if queue.is_deleted or not queue.is_open:
        return NO_ENDS
    if queue.opened is None and not queue.terms.priority_max:
        place = vhost.pops.resting_at(queue.light_name, queue.first_offset)
        if place >= 0:
            return _find_resting(broker, broker.find_queue(queue.light_name), place, queue.first_offset)
    pop = queue.pop
    refs = pop.refs if isinstance(pop, LevelledQueue) else (pop.queue_ref,)
    newest_at_ms: int | None = None
    for ref in refs:
        at_ms = _find_newest(broker, ref, queue.first_offset)
        if at_ms is not None:
            newest_at_ms = at_ms if newest_at_ms is None else max(newest_at_ms, at_ms)
    if not pop.ready_count:
        return NO_ENDS if newest_at_ms is None else Ends(None, newest_at_ms)
    batch = _scratch()
    oldest_at_ms, body_bytes = _look(batch, pop.peek(batch, HEAD_COUNT))
    return Ends(oldest_at_ms, newest_at_ms, body_bytes)


def _find_resting(broker: Broker, queue_ref: int, place: int, first_offset: int) -> Ends:
    """Return what is known of a queue in which nothing is in flight, and all before a place is done."""
    end = broker.max_offset(queue_ref) if queue_ref >= 0 else 0
    if end <= place:
        return Ends(None, _find_newest(broker, queue_ref, first_offset) if end else None)
    batch = _scratch()
    count = broker.read(queue_ref, place, batch, HEAD_COUNT, _ANY_BYTES)
    newest_at_ms = batch.store_ms[count - 1] if count > 0 and batch.queue_offset[count - 1] == end - 1 else None
    oldest_at_ms, body_bytes = _look(batch, count)
    if newest_at_ms is None:
        newest_at_ms = _find_newest(broker, queue_ref, first_offset)
    return Ends(oldest_at_ms, newest_at_ms, body_bytes)


def _look(batch: StoredBatch, count: int) -> tuple[int | None, float]:
    if count <= 0:
        return None, 0.0
    body_bytes = (sum(batch.body_end[:count]) - sum(batch.body_start[:count])) / count
    oldest_at_ms = batch.store_ms[0]
    batch.clear()
    return oldest_at_ms, body_bytes


def _find_newest(broker: Broker, queue_ref: int, first_offset: int = 0) -> int | None:
    end = broker.max_offset(queue_ref)
    if end <= max(broker.min_offset(queue_ref), first_offset):
        return None
    batch = _scratch()
    if broker.read(queue_ref, end - 1, batch, 1, 1) <= 0:
        return None
    at_ms = batch.store_ms[0]
    batch.clear()
    return at_ms
