"""Reads one queue of the log into columns: on from an offset, a chosen set of offsets, or from a moment on.

What this process wrote is given as it lies there; every other record is checked first, and never given where it fails.
"""

from __future__ import annotations

import itertools
from array import array

from core.message import StoredBatch
from core.store.head_index import GONE
from core.store.layout import PHYSICAL_OFFSET_AT, RECORD_BYTES_MIN
from core.store.queue_index import QueueIndex
from core.store.record import fill_batch, fill_columns, is_gap
from core.store.segments import Segments

POSITIONS_MAX = 4096  # entries looked up at once: 16 KiB, four pages of an index
_POSITIONS_MAX = POSITIONS_MAX
_NO_LIMIT = 1 << 62  # no bound of bytes
_GONE = GONE
_NUMBERS = itertools.count(1)  # one for each reader of this process


class QueueReader:
    """Finds entries in the index and their records in the segments.

    Args:
        segments: The log.
        index: Its queues.
        trusted_from: Records from this physical offset on were written by this process.
    """

    def __init__(self, segments: Segments, index: QueueIndex, *, trusted_from: int) -> None:
        self._segments = segments
        self._index = index
        self._trusted_from = trusted_from
        self._positions = array("i", bytes(4 * _POSITIONS_MAX))
        self._one = StoredBatch(1)
        self._number = next(_NUMBERS)
        self._newest: memoryview | bytes = b""
        self._newest_base = -1
        self.damaged_count = 0  # entries that were passed over, because their records are damaged or lost

    def _begin(self, into: StoredBatch) -> None:
        """Clear `into`; rows of another log mean nothing in this one."""
        into.clear()
        if into.reader_number != self._number:
            into.reader_number = self._number
            into.sound_rows = 0

    def _open(self, base: int, into: StoredBatch) -> bool:
        """Let `into` look at the segment that starts at `base`; False where it was dropped.

        The newest one's bytes are kept at hand, for most is read there.
        """
        if base == self._newest_base:
            into.buf = self._newest
            return True
        view = self._segments.view(base)
        if view is None:
            return False
        into.buf = view
        if base == self._segments.newest_base:
            self._newest = view
            self._newest_base = base
        return True

    def read(self, queue_ref: int, offset: int, into: StoredBatch, count_max: int, bytes_max: int) -> int:
        """Fill `into` with messages of one queue from `offset` on, all of one segment; return how many.

        At least one where any is left, even if larger than `bytes_max`; 0 means that nothing is left.
        `into.next_offset` is where to go on: after the last message, or after all offsets that were given so far where
        nothing is left, so that a reader that goes on there moves past all that is damaged or gone, or is at the end.
        """
        self._begin(into)
        count_max = min(count_max, into.capacity, _POSITIONS_MAX)
        index = self._index
        positions = self._positions
        while True:
            found = index.locate(queue_ref, offset, count_max, positions)
            if not found:
                into.next_offset = index.head.next_offset(queue_ref) if count_max > 0 else offset
                return 0
            base = index.found_base
            if not self._open(base, into):
                offset = index.found_offset + found
                continue
            trusted = self._trusted_position(base, len(into.buf))
            count = fill_batch(into, into.buf, base, positions, found, index.found_offset, bytes_max, trusted)
            missing = into.next_offset - index.found_offset - count
            if missing > 0:
                self.damaged_count += missing - count_gone(positions, into.next_offset - index.found_offset)
            if count:
                return count
            offset = into.next_offset

    def read_offsets(self, queue_ref: int, offsets: array[int], count: int, into: StoredBatch) -> int:
        """Fill `into` with the first `count` of `offsets`, ascending, up to a segment's border.

        Returns:
            How many of `offsets` are dealt with, at least one; those that are damaged or gone give no message.
        """
        self._begin(into)
        done = 0
        base = -1
        while done < count and into.count < into.capacity:
            run = _run_length(offsets, done, min(count, done + _POSITIONS_MAX, done + into.capacity - into.count))
            found = self._index.locate(queue_ref, offsets[done], run, self._positions)
            if found and self._index.found_offset == offsets[done]:
                if base >= 0 and self._index.found_base != base:
                    break
                base = self._index.found_base
                if self._open(base, into):
                    trusted = self._trusted_position(base, len(into.buf))
                    before = into.count
                    filled = fill_batch(into, into.buf, base, self._positions, found, offsets[done], _NO_LIMIT, trusted)
                    if found > filled - before:
                        self.damaged_count += found - (filled - before) - count_gone(self._positions, found)
                done += found
            else:
                done += 1
        return done

    def _trusted_position(self, base: int, size: int) -> int:
        """Return the position in a segment from which its records need no check."""
        return min(max(self._trusted_from - base, 0), size)

    def read_at(self, physical_offset: int, into: StoredBatch) -> bool:
        """Fill `into` with the one record at `physical_offset`, checked; False where none is served."""
        self._begin(into)
        segment = self._segments.find(physical_offset)
        if segment is None or not self._open(segment.base, into):
            return False
        self._positions[0] = physical_offset - segment.base
        if not fill_batch(into, into.buf, segment.base, self._positions, 1, 0, _NO_LIMIT, len(into.buf)):
            return False
        if is_gap(into, 0, into.buf):
            into.clear()
            return False
        into.queue_offset[0] = -1
        return True

    def offset_at_time(self, queue_ref: int, at_ms: int, *, upper: bool = False) -> int:
        """Return the first offset stored at `at_ms` or later, `max_offset` where there is none.

        With `upper`: the last offset stored at `at_ms` or before, `min_offset` where there is none.
        """
        low = self._index.min_offset(queue_ref)
        floor = low
        high = self._index.head.next_offset(queue_ref)
        limit = at_ms + 1 if upper else at_ms
        one = self._one
        while low < high:
            middle = (low + high) // 2
            if not self.read(queue_ref, middle, one, 1, 1):
                high = middle
            elif one.store_ms[0] < limit:
                low = max(middle, one.queue_offset[0]) + 1
            else:
                high = middle
        one.clear()
        return max(low - 1, floor) if upper else low


def read_record(record: bytes, into: StoredBatch) -> bool:
    """Fill `into` with one record that was copied out of the log; False where it is none."""
    into.clear()
    if len(record) < RECORD_BYTES_MIN:
        return False
    if not fill_columns(into, 0, record, 0, record_offset(record)):
        return False
    into.buf = record
    into.count = 1
    into.queue_offset[0] = -1
    return True


def record_offset(record: bytes) -> int:
    """Return the physical offset that a record bears."""
    return int.from_bytes(record[PHYSICAL_OFFSET_AT : PHYSICAL_OFFSET_AT + 8], "big")


def count_gone(positions: array[int], count: int) -> int:
    """Return how many of the first `count` positions stand for records that were given up, not lost."""
    gone = 0
    for k in range(count):
        gone += positions[k] == _GONE
    return gone


def _run_length(offsets: array[int], start: int, end: int) -> int:
    """Return how many of `offsets` from `start` on are consecutive."""
    at = start + 1
    while at < end and offsets[at] == offsets[at - 1] + 1:
        at += 1
    return at - start
