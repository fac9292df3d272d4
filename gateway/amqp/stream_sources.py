"""What a consumer with `x-stream-offset` reads: one light queue, or all those of a queue with priorities.

Source: docs/protocols/amqp.md, "Reading without consuming".
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from heapq import heappop, heappush
from typing import Protocol, cast

from core.broker import Broker
from core.errors import LmqError, QueueError
from core.message import StoredBatch
from core.queues.levelled_queue import LevelledQueue
from gateway.amqp.queue_ties import Trimmed
from gateway.amqp.shared_queue import SharedQueue
from gateway.amqp.stream_offset import FIRST, LAST, NEXT, Start

Begun = Callable[[LmqError | None], None]
"""Told when it is known where to begin, or the error that keeps it from being known."""

NOTHING = -1  # there is nothing more now, or it is on its way
SKIP_COUNT = 1_024  # messages passed over in one go: as many as one batch of columns has
SKIP_BYTES = 1 << 20  # of their records, where they are large
LOOK_COUNT = 64  # messages whose places are looked up together
LOOK_BYTES = 1 << 16  # of their records, where they are large
_FAR = 1 << 62


class Source(Protocol):
    """Where such a consumer has its messages from.

    `span` are the offsets that were read of the one light queue, from where it began; None before it began, and where
    there are several.
    """

    @property
    def span(self) -> range | None:
        """As above."""

    def begin(self, start: Start, then: Begun) -> None:
        """Find where to begin, and call back once; at once or later."""

    def refs(self) -> list[int]:
        """Return the light queues that are read."""

    def read(self, stored: StoredBatch, count_max: int, bytes_max: int) -> int:
        """Fill `stored` with the next messages, their offsets as clients are told them.

        Returns:
            How many; 0: none of what was looked at, there may be more. NOTHING: there is nothing more now.
        """

    def end(self) -> None:
        """Be read no more."""


class QueueSource:
    """One light queue, whose offsets clients are told.

    Args:
        broker: Where it is.
        queue: Whose it is.
    """

    def __init__(self, broker: Broker, queue: SharedQueue) -> None:
        self._broker = broker
        self._queue = queue
        self._ref = broker.intern_queue(queue.light_name)
        self._offset = 0  # of the next message
        self._first = -1  # where it began

    @property
    def span(self) -> range | None:
        """The offsets that were read."""
        return range(self._first, self._offset) if self._first >= 0 else None

    def begin(self, start: Start, then: Begun) -> None:
        """Find where to begin."""
        self._broker.open_queue(self._ref, partial(self._begin, start, then))

    def _begin(self, start: Start, then: Begun, error: LmqError | None) -> None:
        if error is not None or self._queue.is_deleted:
            then(error)
            return
        if start.at_ms >= 0:
            self._broker.find_offset(self._ref, start.at_ms, partial(self._begin_at, then))
            return
        end = self._broker.max_offset(self._ref)
        self._begin_at(then, {FIRST: 0, LAST: max(end - 1, 0), NEXT: end}.get(start.word, start.offset))

    def _begin_at(self, then: Begun, offset: int) -> None:
        if offset < 0:
            then(_not_found())
            return
        queue = self._queue
        first = cast("Trimmed", queue.pop).next_offset if queue.is_stream else queue.first_offset
        self._offset = self._first = max(offset, first, self._broker.min_offset(self._ref))
        then(None)

    def refs(self) -> list[int]:
        """Return the light queue."""
        return [self._ref]

    def read(self, stored: StoredBatch, count_max: int, bytes_max: int) -> int:
        """Fill `stored` with the next messages."""
        count = self._broker.read(self._ref, self._offset, stored, count_max, bytes_max)
        if count < 0 or stored.next_offset <= self._offset:
            return NOTHING
        self._offset = stored.next_offset
        return count

    def end(self) -> None:
        """Do nothing: what is not read costs nothing."""


class LevelsSource:
    """The light queues of all priorities, in the order in which their messages were stored.

    Clients are told places in the log, which ascend through all of them, as offsets. Of each light queue the places of
    the next messages are looked up together, so that of priorities that alternate no message is read again and again.

    Args:
        broker: Where they are.
        levels: What is taken and done in them.
        on_level: Called with the number of a light queue that is read from now on, too.
    """

    def __init__(self, broker: Broker, levels: LevelledQueue, on_level: Callable[[int], None]) -> None:
        self._broker = broker
        self._levels = levels
        self._on_level = on_level
        self._offsets: dict[int, int] = {}  # of the next message, by light queue
        self._places: dict[int, deque[int]] = {}  # of the next messages, as far as they are known
        self._first: list[tuple[int, int]] = []  # a heap of the first of these, with their light queues
        self._from = levels.first_place  # what lies before is left out
        self._last_before = -1  # begin at the last message before this place of the log; negative: elsewhere
        self._waits_for = 0  # light queues of which it is not known yet where to begin
        self._is_ended = False

    @property
    def span(self) -> range | None:
        """None: there are several light queues."""
        return None

    def begin(self, start: Start, then: Begun) -> None:
        """Find where to begin in each of them."""
        self._levels.watch(self._add)
        refs = self._levels.refs
        self._waits_for = len(refs)
        if start.word == LAST:
            then = partial(self._begin_at_last, then)
        for ref in refs:
            self._broker.open_queue(ref, partial(self._find, ref, start, then))

    def _begin_at_last(self, then: Begun, error: LmqError | None) -> None:
        """Have the last message of all be the first: not sooner, as some may have come while others were looked for."""
        self._last_before = self._broker.end_place
        then(error)

    def _find(self, ref: int, start: Start, then: Begun, error: LmqError | None) -> None:
        if self._is_ended:
            return
        if error is not None:
            self._give_up(then, error)
            return
        broker = self._broker
        place = self._from if start.word == FIRST else start.offset
        if start.at_ms >= 0:
            broker.find_offset(ref, start.at_ms, partial(self._begin_at, ref, then))
        elif start.word in {LAST, NEXT}:
            self._begin_at(ref, then, broker.max_offset(ref) - int(start.word == LAST))
        else:
            self._from = max(self._from, place)
            if self._from < broker.end_place:
                broker.find_record(self._from, partial(self._find_moment, ref, then))
            else:
                self._begin_at(ref, then, broker.max_offset(ref))

    def _find_moment(self, ref: int, then: Begun, record: bytes | None) -> None:
        """Begin about where a record was stored; at the first message where it is gone."""
        one = StoredBatch(1)
        if record is None or not self._broker.read_record(record, one):
            self._begin_at(ref, then, 0)
            return
        self._broker.find_offset(ref, one.store_ms[0], partial(self._begin_at, ref, then))

    def _begin_at(self, ref: int, then: Begun, offset: int) -> None:
        if self._is_ended:
            return
        if offset < 0:
            self._give_up(then, _not_found())
            return
        self._start_level(ref, offset)
        self._waits_for -= 1
        if not self._waits_for:
            then(None)

    def _give_up(self, then: Begun, error: LmqError) -> None:
        """Tell what keeps one of the light queues from being read; nothing is told of the others."""
        self.end()
        then(error)

    def _start_level(self, ref: int, offset: int) -> None:
        self._offsets[ref] = max(offset, self._broker.min_offset(ref))
        self._places[ref] = deque()

    def _add(self, ref: int) -> None:
        """Read a priority whose first message is about to come."""
        if ref not in self._offsets:
            self._start_level(ref, 0)
            self._on_level(ref)

    def refs(self) -> list[int]:
        """Return the light queues."""
        return list(self._offsets)

    def read(self, stored: StoredBatch, count_max: int, bytes_max: int) -> int:
        """Fill `stored` with the next messages of one of them, up to the next one of another."""
        found = self._look_on(stored)
        if found or not self._first:
            return found or NOTHING
        if self._last_before >= 0:
            self._from = max((place for place, _ in self._first if place < self._last_before), default=self._from)
            self._last_before = -1
        place, ref = heappop(self._first)
        known = self._places[ref]
        if place < self._from:
            count, until = self._broker.read(ref, self._offsets[ref], stored, SKIP_COUNT, SKIP_BYTES), self._from
        else:
            until = self._first[0][0] if self._first else _FAR
            before = count_max if until == _FAR else bisect_left(known, until)
            count = self._broker.read(ref, self._offsets[ref], stored, min(before, count_max), bytes_max)
        if count < 0:
            heappush(self._first, (place, ref))
            return NOTHING
        taken = self._go_on(ref, until, stored)
        if until == self._from:
            stored.clear()
            return 0
        for i in range(taken):
            stored.queue_offset[i] = stored.physical_offset[i]
        return taken

    def _look_on(self, stored: StoredBatch) -> int:
        """Learn where the next messages of each lie; return NOTHING where some are on their way."""
        for ref, known in self._places.items():
            while not known and self._offsets[ref] < self._broker.max_offset(ref):
                offset = self._offsets[ref]
                count = self._broker.read(ref, offset, stored, LOOK_COUNT, LOOK_BYTES)
                if count < 0:
                    return NOTHING
                known.extend(_places(stored))
                if known:
                    heappush(self._first, (known[0], ref))
                elif stored.next_offset <= offset:
                    break
                self._offsets[ref] = stored.queue_offset[0] if count else stored.next_offset
        return 0

    def _go_on(self, ref: int, until: int, stored: StoredBatch) -> int:
        """Leave in `stored` what lies before a place, and go on behind it; return how many messages."""
        known = self._places[ref]
        count = stored.count
        taken = stored.count = sum(place < until for place in _places(stored))
        self._offsets[ref] = stored.queue_offset[taken] if taken < count else stored.next_offset
        for place in _places(stored):
            if not known or known.popleft() != place:  # retention took some since they were looked up
                known.clear()
        if not taken:
            known.clear()
        if known:
            heappush(self._first, (known[0], ref))
        return taken

    def end(self) -> None:
        """Be told of priorities no more."""
        self._is_ended = True
        self._levels.unwatch(self._add)


def _not_found() -> LmqError:
    return QueueError("where it was at that moment cannot be told")


def _places(stored: StoredBatch) -> Iterator[int]:
    return (stored.physical_offset[i] for i in range(stored.count))


def make_source(broker: Broker, queue: SharedQueue, on_level: Callable[[int], None]) -> Source:
    """Return what a consumer of an open queue reads; `on_level` as of `LevelsSource`."""
    if queue.terms.priority_max > 0:
        return LevelsSource(broker, cast("LevelledQueue", queue.pop), on_level)
    return QueueSource(broker, queue)
