"""What a queue of the type stream keeps: all, or as much as it is told by age and bytes.

Source: docs/protocols/amqp.md, "Streams".
"""

from __future__ import annotations

from functools import partial
from typing import cast

from core.broker import Broker
from core.queues.terms import QueueTerms
from gateway.amqp.queue_ties import CountedStream, Shared, Trimmed

AGE_INTERVAL_MS = 1_000  # between two looks for what is too old


class StreamTrim:
    """Lets go of what a stream need not keep any more; nothing else takes a message out of it.

    Args:
        broker: Where the stream is.
    """

    __slots__ = ("_broker", "_looked_ms")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._looked_ms = -AGE_INTERVAL_MS

    def run(self, pop: Shared, terms: QueueTerms, now_ms: int) -> None:
        """Let go of what is too much, and at times of what is too old."""
        if terms.bytes_max >= 0:
            counted = cast("CountedStream", pop)
            counted.count_on()
            counted.keep_bytes(terms.bytes_max)
        if 0 <= terms.age_max_ms <= now_ms and now_ms - self._looked_ms >= AGE_INTERVAL_MS:
            self._looked_ms = now_ms
            then = partial(_skip, cast("Trimmed", pop))
            self._broker.find_offset(pop.queue_ref, now_ms - terms.age_max_ms, then)


def _skip(pop: Trimmed, offset: int) -> None:
    if offset > pop.next_offset:
        pop.skip_to(offset)
