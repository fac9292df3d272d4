"""A shared queue that knows how many bytes the bodies of its ready messages have.

What was never taken is the difference of two sums over the light queue, each moved on as messages come and go; what was
given back is counted by itself. After a restart both come from the marks of `ByteSums` and some thousand messages.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from itertools import islice

from core.message import AWAY, StoredBatch
from core.pop.byte_sums import ByteSums
from core.pop.pop_queue import PopQueue, QueueStore
from core.stage import Stage

STEP_MESSAGES = 16_384  # counted in one go: some milliseconds
PIECE_MESSAGES = 1_024  # of one read, a sixteenth of a step
_ALL = 1 << 62


class CountedQueue:
    """One pop queue, and the bytes of what could be taken from it. It has the methods of `Shared` in the doors.

    Args:
        inner: The pop queue.
        store: Where its messages are.
        stored: A batch to read into; what it holds is lost in each call.
        sums: What is known from before.
        keep: Called with new marks, which are to outlive the process.
    """

    def __init__(
        self, inner: PopQueue, store: QueueStore, stored: StoredBatch, sums: ByteSums, keep: Callable[[bytes], None]
    ) -> None:
        self._inner = inner
        self._store = store
        self._stored = stored
        self._sums = sums
        self._keep = keep
        self._counted_until, self._total = sums.last  # of all messages
        self._used = self._total  # of those taken, once it is known
        self._is_used_known = False
        self._shown = 0  # bytes of what was given back, but for [_shown_until, _shown_end): that is looked for still
        self._shown_until = 0
        self._shown_end = inner.next_offset
        self._given_back: Iterator[int] | None = inner.state.window.offsets()
        self._unread: list[int] = []  # given back, and not read yet

    @property
    def queue_ref(self) -> int:
        """The light queue."""
        return self._inner.queue_ref

    @property
    def next_offset(self) -> int:
        """The first offset that was never taken."""
        return self._inner.next_offset

    def identify(self, queue_offset: int) -> tuple[int, int]:
        """Return what `PopService.finish` knows a message by."""
        return self._inner.identify(queue_offset)

    def stage(self, queue_offset: int) -> Stage:
        """Return how far a message is."""
        return self._inner.stage(queue_offset)

    @property
    def ready_count(self) -> int:
        """How many messages could be taken now."""
        return self._inner.ready_count

    @property
    def unacked_count(self) -> int:
        """How many messages are hidden."""
        return self._inner.unacked_count

    @property
    def again_count(self) -> int:
        """How many times messages were given that had been given before, since it was opened."""
        return self._inner.again_count

    @property
    def ready_bytes(self) -> int:
        """How many bytes their bodies have, as far as they were counted."""
        return self._shown + max(self._total - self._used, 0)

    def count_on(self) -> bool:
        """Count what came since the last time; return False where more is to be counted, in the next turn."""
        left = STEP_MESSAGES
        if not self._is_used_known:
            self._find_used()
        if self._given_back is not None or self._unread:
            left = self._count_shown(left)
        end = self._store.max_offset(self.queue_ref)
        while left > 0 and self._counted_until < end:
            size = self._read(self._counted_until, end)
            if size == AWAY:
                return False
            left -= max(self._stored.next_offset - self._counted_until, 1)
            self._counted_until = max(self._stored.next_offset, self._counted_until)
            self._total += size
            if self._sums.is_due(self._counted_until):
                self._mark()
            if not self._stored.count:
                break
        self._stored.clear()
        self._settle()
        return left > 0

    def _find_used(self) -> None:
        """Find the sum up to the first message that was never taken: what is before it may be gone from the log."""
        first = self._inner.next_offset
        end, self._used = self._sums.after(first) or (self._counted_until, self._total)
        if first >= end:
            self._counted_until = max(first, self._counted_until)
            self._is_used_known = True
            return
        at, size, found = first, 0, 0
        while at < end:
            found = self._read(at, end)
            if found == AWAY or self._stored.next_offset <= at:
                break
            size += found
            at = self._stored.next_offset
        self._stored.clear()
        if found != AWAY:
            self._used -= size
            self._is_used_known = True

    def _read(self, offset: int, end: int) -> int:
        """Read from an offset on; return how many bytes the bodies before `end` have."""
        stored = self._stored
        count = min(PIECE_MESSAGES, stored.capacity, end - offset)
        found = self._store.read(self.queue_ref, offset, stored, count, _ALL)
        if found == AWAY:
            return AWAY
        size = _sum_bodies(stored, end)
        stored.next_offset = min(stored.next_offset, end)
        return size

    def _count_shown(self, left: int) -> int:
        while left > 0 and (self._unread or self._given_back is not None):
            offsets = sorted(self._unread[:PIECE_MESSAGES])
            scanned = self._given_back if not offsets else None
            upto = self._shown_until
            if scanned is not None:
                looked_at = list(islice(scanned, PIECE_MESSAGES))
                if not looked_at:
                    self._given_back, self._shown_until = None, _ALL
                    return left
                code = self._inner.state.window.code
                offsets = [one for one in looked_at if (found := code(one)) and not found & 1]
                upto = looked_at[-1] + 1
            left -= max(len(offsets), 1)
            if scanned is None:
                del self._unread[: len(offsets)]
            self._shown_until = max(upto, self._shown_until)
            if not self._add_shown(offsets):
                return 0
        return left

    def _add_shown(self, offsets: list[int]) -> bool:
        """Add up messages that were given back; where they are on their way, that is done later."""
        column = array("q", offsets)
        while column:
            used = self._store.read_offsets(self.queue_ref, column, len(column), self._stored)
            if used == AWAY:
                self._unread += column
                return False
            self._shown += _sum_bodies(self._stored, _ALL)
            column = column[max(used, 1) :]
        self._stored.clear()
        return True

    def _mark(self) -> None:
        self._sums.add(self._counted_until, self._total, self._inner.next_offset)
        self._keep(self._sums.dump())

    def _settle(self) -> None:
        """Forget what stands for messages that were lost meanwhile."""
        if self._is_used_known and self._inner.next_offset >= self._counted_until:
            self._used = max(self._used, self._total)
        if not self._inner.state.window.shown_count and self._given_back is None and not self._unread:
            self._shown = 0

    def take(self, into: StoredBatch, count_max: int, bytes_max: int, until_ms: int, now_ms: int) -> int:
        """Take messages, as of a pop queue; they count no more."""
        first_new = self._inner.next_offset
        count = self._inner.take(into, count_max, bytes_max, until_ms, now_ms)
        if count > 0:
            if into.queue_offset[0] < first_new:
                self._shown = max(self._shown - _sum_bodies(into, self._shown_until, self._shown_end), 0)
            elif self._is_used_known:
                self._used += _sum_bodies(into, _ALL)
        return count

    def peek(self, into: StoredBatch, count_max: int) -> int:
        """Look at what `take` would give, as of a pop queue."""
        return self._inner.peek(into, count_max)

    def ack_many(self, queue_offsets: array[int], count: int) -> None:
        """Finish messages, as of a pop queue."""
        self._inner.ack_many(queue_offsets, count)

    def nack_many(self, queue_offsets: array[int], count: int, visible_at_ms: int = 0) -> None:
        """Show messages again, as of a pop queue; they count from now on."""
        window = self._inner.state.window
        hidden = [offset for offset in queue_offsets[:count] if window.code(offset) & 1]
        self._inner.nack_many(queue_offsets, count, visible_at_ms)
        self._unread += [offset for offset in hidden if not self._shown_until <= offset < self._shown_end]
        self.count_on()

    def read_offsets(self, offsets: array[int], count: int, into: StoredBatch) -> int:
        """Read messages, as of a pop queue."""
        return self._inner.read_offsets(offsets, count, into)

    def purge(self, now_ms: int = 0) -> int:
        """Finish all that nobody has, as of a pop queue."""
        count = self._inner.purge(now_ms)
        self._shown, self._unread, self._given_back, self._shown_until = 0, [], None, _ALL
        self._counted_until = max(self._inner.next_offset, self._counted_until)
        self._used, self._is_used_known = self._total, True
        self._sums.reset(self._counted_until, self._total)
        self._keep(self._sums.dump())
        return count

    def skip_to(self, queue_offset: int) -> None:
        """Take what was never taken below an offset as done."""
        self._inner.skip_to(queue_offset)
        self._is_used_known = False
        self.count_on()

    def keep_bytes(self, most: int) -> None:
        """Skip the oldest messages, some thousand at a time, that are not needed to have so many bytes."""
        offset = self._sums.below(self._total - most)
        if offset > self._inner.next_offset:
            self.skip_to(offset)

    def attempt(self, queue_offset: int) -> int:
        """Return how often a message was taken."""
        return self._inner.attempt(queue_offset)


def _sum_bodies(stored: StoredBatch, end: int, again_from: int = _ALL) -> int:
    """Return how many bytes the bodies of those messages have whose offset lies below `end`, or from another one on."""
    size = 0
    for i in range(stored.count):
        if stored.queue_offset[i] < end or stored.queue_offset[i] >= again_from:
            size += stored.body_end[i] - stored.body_start[i]
    return size
