"""From where on half messages, and the records that say which are done with, are needed: by a start, and by retention.

Source: docs/decisions/0038-transactions.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from core.broker import Broker
from core.errors import LmqError
from gateway.rocketmq.transactions.half import HALF_KEY, OP_KEY

PLACES_GROUP = b"CID_RMQ_SYS_TRANS"  # its offsets in the two queues; no client can commit there
MARK_EVERY = 256  # records
MARKS_MAX = 64  # then every second one is forgotten, so they reach back as far as need be


class Progress:
    """The two queues, how far each is needed, and which numbers they give next."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.half_ref = -1
        self.done_ref = -1
        self.half_from = broker.consumer_offsets.get(PLACES_GROUP, HALF_KEY) or 0
        self.done_from = broker.consumer_offsets.get(PLACES_GROUP, OP_KEY) or 0
        self._unknown: set[int] = set()  # queues whose ends are not known yet
        self._opening: set[int] = set()  # queues of `_unknown` that are being opened
        self._marks: list[tuple[int, int]] = []  # records before one number tell of half messages before the other
        self.find()
        broker.hold(self.positions)

    def find(self) -> bool:
        """Look whether the queues are there by now; return whether the ends of those that are there are known."""
        if self.half_ref < 0:
            self.half_ref = self._look_for(HALF_KEY)
        if self.done_ref < 0:
            self.done_ref = self._look_for(OP_KEY)
        for queue_ref in self._unknown - self._opening:
            self._opening.add(queue_ref)
            self._broker.open_queue(queue_ref, partial(self._note_open, queue_ref))
        return not self._unknown

    def _look_for(self, key: bytes) -> int:
        queue_ref = self._broker.find_queue(key)
        if queue_ref >= 0:
            self._unknown.add(queue_ref)
        return queue_ref

    def _note_open(self, queue_ref: int, error: LmqError | None) -> None:
        self._opening.discard(queue_ref)
        if error is None:
            self._unknown.discard(queue_ref)

    @property
    def knows_half(self) -> bool:
        """Whether it is known which half messages there are."""
        return self.half_ref not in self._unknown

    def positions(self) -> Iterator[tuple[int, int]]:
        """Give the queues, each with the first offset that retention must leave."""
        self.find()
        if self.half_ref >= 0:
            yield self.half_ref, self.half_from
        if self.done_ref >= 0:
            yield self.done_ref, self.done_from

    @property
    def half_end(self) -> int:
        """The number of the next half message."""
        return self._broker.max_offset(self.half_ref) if self.half_ref >= 0 else 0

    @property
    def done_end(self) -> int:
        """The number of the next record that says which are done with."""
        return self._broker.max_offset(self.done_ref) if self.done_ref >= 0 else 0

    def mark(self) -> None:
        """Remember which half messages the records so far can tell of, where that is known."""
        if not self.find():
            return
        done_end = self.done_end
        if self._marks and done_end - self._marks[-1][0] < MARK_EVERY:
            return
        if len(self._marks) >= MARKS_MAX:
            del self._marks[1::2]
        self._marks.append((done_end, self.half_end))

    def keep(self, start: int) -> None:
        """Need half messages from `start` on only: all before it are done with."""
        if start <= self.half_from or not self.find():
            return
        self.half_from = start
        self._broker.consumer_offsets.commit(PLACES_GROUP, HALF_KEY, start)
        done_from = self.done_end if start >= self.half_end else self.done_from
        while self._marks and self._marks[0][1] <= start:
            done_from = max(done_from, self._marks.pop(0)[0])
        if done_from > self.done_from:
            self.done_from = done_from
            self._broker.consumer_offsets.commit(PLACES_GROUP, OP_KEY, done_from)
