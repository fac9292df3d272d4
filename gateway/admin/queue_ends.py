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


class _Scratch(NamedTuple):
    """What messages are looked at in, and some of its columns: to ask it for a column costs as much as half a look."""

    batch: StoredBatch
    store_ms: memoryview
    queue_offset: memoryview
    body_start: memoryview
    body_end: memoryview


@cache
def _scratch() -> _Scratch:
    """Return the one for all queues: to make one takes ten times as long as the look."""
    batch = StoredBatch(HEAD_COUNT)
    return _Scratch(
        batch,
        memoryview(batch.store_ms),
        memoryview(batch.queue_offset),
        memoryview(batch.body_start),
        memoryview(batch.body_end),
    )


def find_ends(broker: Broker, queue_ref: int) -> Ends:
    """Return what is known of a light queue."""
    if queue_ref < 0 or broker.max_offset(queue_ref) <= broker.min_offset(queue_ref):
        return NO_ENDS
    scratch = _scratch()
    count = broker.read(queue_ref, broker.min_offset(queue_ref), scratch.batch, HEAD_COUNT, HEAD_BYTES_MAX)
    oldest_at_ms, body_bytes = _look(scratch, count)
    return Ends(oldest_at_ms, _find_newest(broker, queue_ref), body_bytes)


def find_ends_of(broker: Broker, vhost: VirtualHost, queue: SharedQueue) -> Ends:
    """Return what is known of an AMQP queue: the oldest message that could be taken now, and the newest that came."""
    if queue.is_deleted or not queue.is_open:
        return NO_ENDS
    if queue.opened is None and not queue.terms.priority_max:
        place = vhost.pops.resting_at(queue.light_name, queue.first_offset)
        if place >= 0:
            return find_resting(broker, broker.find_queue(queue.light_name), place, queue.first_offset)
    pop = queue.pop
    refs = pop.refs if isinstance(pop, LevelledQueue) else (pop.queue_ref,)
    newest_at_ms: int | None = None
    for ref in refs:
        at_ms = _find_newest(broker, ref, queue.first_offset)
        if at_ms is not None:
            newest_at_ms = at_ms if newest_at_ms is None else max(newest_at_ms, at_ms)
    if not pop.ready_count:
        return NO_ENDS if newest_at_ms is None else Ends(None, newest_at_ms)
    scratch = _scratch()
    oldest_at_ms, body_bytes = _look(scratch, pop.peek(scratch.batch, HEAD_COUNT))
    return Ends(oldest_at_ms, newest_at_ms, body_bytes)


def find_resting(broker: Broker, queue_ref: int, place: int, first_offset: int) -> Ends:
    """Return what is known of a queue in which nothing is in flight, and all before a place is done."""
    end = broker.max_offset(queue_ref) if queue_ref >= 0 else 0
    if end <= place:
        return Ends(None, _find_newest(broker, queue_ref, first_offset) if end else None)
    scratch = _scratch()
    count = broker.read(queue_ref, place, scratch.batch, HEAD_COUNT, _ANY_BYTES)
    newest_at_ms = scratch.store_ms[count - 1] if count > 0 and scratch.queue_offset[count - 1] == end - 1 else None
    oldest_at_ms, body_bytes = _look(scratch, count)
    if newest_at_ms is None:
        newest_at_ms = _find_newest(broker, queue_ref, first_offset)
    return Ends(oldest_at_ms, newest_at_ms, body_bytes)


def _look(scratch: _Scratch, count: int) -> tuple[int | None, float]:
    if count <= 0:
        return None, 0.0
    scratch.batch.clear()  # which leaves the columns as they are
    if count == 1:
        return scratch.store_ms[0], scratch.body_end[0] - scratch.body_start[0]
    body_bytes = (sum(scratch.body_end[:count]) - sum(scratch.body_start[:count])) / count
    return scratch.store_ms[0], body_bytes


def _find_newest(broker: Broker, queue_ref: int, first_offset: int = 0) -> int | None:
    end = broker.max_offset(queue_ref)
    if end <= max(broker.min_offset(queue_ref), first_offset):
        return None
    scratch = _scratch()
    if broker.read(queue_ref, end - 1, scratch.batch, 1, 1) <= 0:
        return None
    scratch.batch.clear()
    return int(scratch.store_ms[0])
