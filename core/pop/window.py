"""One small code for each message of a queue that is neither finished nor still to come.

All below `base` is done, except stragglers; from `next_offset` on nothing was taken yet. Between them a ring holds one
byte a message: 0 is done, else a number that says how often it was given, times two, plus one while it is hidden. A few
old messages that nobody acknowledges become stragglers, in a dict, so that the ring stays as small as what is really in
flight.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterator
from itertools import chain

_RING_MIN = 64  # to begin with; it doubles
_RING_KEPT_MAX = 65_536  # a larger ring is let go of when nothing is in flight; chosen: most queues stay below it
_SPARSE_MIN = 4_096  # a ring of that size may be thinned out
_SPARSE_RATIO = 256  # a dict entry costs about as much as so many bytes of the ring
_NO_RING = bytearray()  # these three are shared by all that need none, and never written to
_NO_STRAGGLERS: dict[int, int] = {}
_NO_HEAP: list[int] = []


class Window:
    """Codes by offset, how many there are of each sort, and the lowest that are shown."""

    def __init__(self, next_offset: int) -> None:
        self.base = next_offset
        self.next_offset = next_offset
        self.hidden_count = 0  # codes that are odd
        self.shown_count = 0  # codes that are even, and not 0
        self._ring = _NO_RING
        self._mask = 0
        self._shown_low = next_offset  # nothing in the ring below is shown
        self._stragglers = _NO_STRAGGLERS
        self._shown_stragglers = _NO_HEAP  # a heap; what is not shown any more is left out when it comes up
        self._found_count = 0

    def code(self, offset: int) -> int:
        """Return the code of a message; 0 for those that are done, and for those to come."""
        if offset >= self.next_offset:
            return 0
        if offset < self.base:
            return self._stragglers.get(offset, 0) if self._stragglers else 0
        return self._ring[offset & self._mask]

    def put(self, offset: int, code: int) -> None:
        """Give a message below `next_offset` a code; `advance` has to follow when some became 0."""
        before = self.code(offset)
        if before:
            self.hidden_count -= before & 1
            self.shown_count -= 1 - (before & 1)
        if code:
            self.hidden_count += code & 1
            self.shown_count += 1 - (code & 1)
        if offset >= self.base:
            self._ring[offset & self._mask] = code
        elif code:
            self._put_straggler(offset, code)
        elif before:
            del self._stragglers[offset]
        if code and not code & 1 and (before & 1 or not before):
            self._note_shown(offset)

    def append(self, offset: int, code: int) -> None:
        """Give the next message to come a code; those passed over are done."""
        if offset > self.next_offset:
            self.skip_to(offset)
        if offset - self.base >= len(self._ring):
            self._make_room(offset + 1)
        self.next_offset = offset + 1
        self.put(offset, code)

    def skip_to(self, next_offset: int) -> None:
        """Take what comes before `next_offset` as done."""
        gap = next_offset - self.next_offset
        if gap >= _SPARSE_MIN and (self.hidden_count + self.shown_count) * _SPARSE_RATIO < gap:
            self._thin_out(self.next_offset)
        if self.base == self.next_offset:
            self.base = next_offset
            self._shown_low = next_offset
        else:
            self._make_room(next_offset)
        self.next_offset = next_offset

    def advance(self) -> None:
        """Move `base` over what is done."""
        base = self.base
        end = self.next_offset
        ring = self._ring
        mask = self._mask
        while base < end and not ring[base & mask]:
            base += 1
        self.base = base
        if base == end and len(ring) > _RING_KEPT_MAX:
            self._ring = _NO_RING
            self._mask = 0

    def find_shown(self, into: array[int], count_max: int) -> int:
        """Write the lowest offsets that are shown into `into`, ascending; return how many.

        `use_found` has to follow.
        """
        count = 0
        while self._shown_stragglers and count < count_max:
            offset = heapq.heappop(self._shown_stragglers)
            code = self.code(offset)
            if code and not code & 1 and (not count or into[count - 1] != offset):
                into[count] = offset
                count += 1
        ring = self._ring
        mask = self._mask
        end = self.next_offset
        offset = max(self._shown_low, self.base)
        while offset < end and count < count_max and count < self.shown_count:
            code = ring[offset & mask]
            if code and not code & 1:
                into[count] = offset
                count += 1
            offset += 1
        self._found_count = count
        return count

    def use_found(self, offsets: array[int], used: int) -> None:
        """Say that the first `used` of the offsets found are not shown any more; the others are to be found again."""
        for i in range(used, self._found_count):
            if offsets[i] < self.base:
                self._push_shown(offsets[i])
        if used and offsets[used - 1] >= self.base:
            self._shown_low = offsets[used - 1] + 1
        self._found_count = 0

    def floor(self) -> int:
        """Return the first offset that is not done."""
        return min(self._stragglers) if self._stragglers else self.base

    def is_empty(self) -> bool:
        """Return whether all below `next_offset` is done."""
        return self.base == self.next_offset and not self._stragglers

    def offsets(self) -> Iterator[int]:
        """Give the offsets that may have a code, ascending; `advance` is for afterwards."""
        return chain(sorted(self._stragglers), range(self.base, self.next_offset))

    def straggler_offsets(self) -> list[int]:
        """Return the offsets below `base` that have a code."""
        return list(self._stragglers)

    def reset(self, base: int, next_offset: int) -> None:
        """Forget all codes; [base, next_offset) are done until told otherwise."""
        self.base = base
        self.next_offset = base
        self.hidden_count = 0
        self.shown_count = 0
        self._ring = _NO_RING
        self._mask = 0
        self._shown_low = base
        self._stragglers = _NO_STRAGGLERS
        self._shown_stragglers = _NO_HEAP
        self._make_room(next_offset)
        self.next_offset = next_offset

    def cut(self, next_offset: int) -> None:
        """Move `next_offset` back, over messages that are done."""
        self.next_offset = min(self.next_offset, next_offset)
        self.base = min(self.base, self.next_offset)
        self._shown_low = min(self._shown_low, self.next_offset)

    def _note_shown(self, offset: int) -> None:
        if offset < self.base:
            self._push_shown(offset)
        elif offset < self._shown_low:
            self._shown_low = offset

    def _push_shown(self, offset: int) -> None:
        if self._shown_stragglers is _NO_HEAP:
            self._shown_stragglers = []
        heapq.heappush(self._shown_stragglers, offset)

    def _put_straggler(self, offset: int, code: int) -> None:
        if self._stragglers is _NO_STRAGGLERS:
            self._stragglers = {}
        self._stragglers[offset] = code

    def _make_room(self, end: int) -> None:
        """Make the ring long enough for offsets below `end`."""
        while end - self.base > len(self._ring):
            if len(self._ring) >= _SPARSE_MIN and self._thin_out_half():
                continue
            grown = bytearray(max(len(self._ring) * 2, _RING_MIN))
            mask = len(grown) - 1
            for offset in range(self.base, self.next_offset):
                grown[offset & mask] = self._ring[offset & self._mask]
            self._ring = grown
            self._mask = mask

    def _thin_out_half(self) -> bool:
        """Make the older half's messages stragglers if they are few; return whether they were."""
        half = min(self.base + len(self._ring) // 2, self.next_offset)
        live = 0
        for offset in range(self.base, half):
            if self._ring[offset & self._mask]:
                live += 1
        if half == self.base or live * _SPARSE_RATIO > half - self.base:
            return False
        self._thin_out(half)
        return True

    def _thin_out(self, end: int) -> None:
        """Make what is not done below `end` stragglers."""
        for offset in range(self.base, end):
            code = self._ring[offset & self._mask]
            if code:
                self._ring[offset & self._mask] = 0
                self._put_straggler(offset, code)
                if not code & 1:
                    self._push_shown(offset)
        self.base = end
        self._shown_low = max(self._shown_low, end)
        self.advance()
