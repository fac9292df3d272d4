"""How many messages and bytes a queue holds: what it has room for, and how many of the first are too much."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from core.message import StoredBatch
from core.queues.full_queues import NO_END, Room
from core.queues.terms import QueueTerms
from gateway.amqp.queue_ties import Counted, QueueConsumer, Shared


def find_room(terms: QueueTerms, pop: Shared, consumers: Sequence[QueueConsumer], wanted: int) -> Room:
    """Return what a queue takes, also for consumers with room; `wanted` messages are enough."""
    left = NO_END
    if terms.bytes_max >= 0:
        counted = cast("Counted", pop)
        counted.count_on()
        left = terms.bytes_max - counted.ready_bytes
    ready = pop.ready_count
    messages = terms.length_max - ready if terms.length_max >= 0 else wanted
    if left == NO_END and messages >= wanted:
        return Room(0, messages)
    for_consumers = -ready  # what is there is older, so it gets their room before what comes
    takers = consumers[:1] if terms.is_single_active else consumers
    for consumer in takers if terms.length_max else ():
        if for_consumers >= wanted:
            break
        for_consumers += max(consumer.room(), 0)
    if terms.length_max >= 0:
        messages = terms.length_max + min(for_consumers, 0)
    return Room(for_consumers, messages, left)


def find_excess(terms: QueueTerms, pop: Shared, stored: StoredBatch, most: int) -> int:
    """Return how many of the first messages are more than a queue holds, `most` where there are more of them."""
    excess = min(pop.ready_count - terms.length_max, most) if terms.length_max >= 0 else 0
    if terms.bytes_max < 0:
        return excess
    counted = cast("Counted", pop)
    counted.count_on()
    left = counted.ready_bytes - terms.bytes_max
    if left <= 0:
        return excess
    heavy = 0
    found = pop.peek(stored, most)
    while left > 0 and heavy < found:
        left -= stored.body_end[heavy] - stored.body_start[heavy]
        heavy += 1
    stored.clear()
    return max(excess, heavy)
