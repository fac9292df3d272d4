"""What is known of each message of one pop queue: done, hidden with a consumer, or shown again.

All below `base` is done, except stragglers; from `next_offset` on nothing was taken yet. Between them a ring holds one
byte a message: 0 is done, else how often it was given (up to 127, the rest is in a dict) times two, plus one while it
is hidden. A few old messages that nobody acknowledges become stragglers, in a dict, so that the ring stays as small as
what is really in flight. Each change is noted in the log that was handed in.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterator
from itertools import chain

from core.message import StoredBatch
from core.pop.changes import ACK, FLOOR, HIDE, JUMP, STATE, TAKE, TRIM, ChangeLog

_ACK = ACK
_HIDE = HIDE
_TAKE = TAKE
_STATE = STATE
_COUNTED_MAX = 127  # times given that a ring's byte can tell; this one sends to the dict
_RING_MIN = 64
_RING_KEPT_MAX = 65_536  # a larger ring is let go of when nothing is in flight
_SPARSE_MIN = 4_096  # a ring of that size may be thinned out
_SPARSE_RATIO = 256  # a dict entry costs about as much as so many bytes of the ring


class InFlight:
    """The state of one pop queue, from `next_offset` downwards; nothing has happened yet when it is made.

    Args:
        number: The pop queue in the log's records.
        log: Where changes are noted.
        next_offset: The first offset to be taken.
    """

    def __init__(self, number: int, log: ChangeLog, next_offset: int) -> None:
        self.number = number
        self.base = next_offset
        self.next_offset = next_offset
        self.hidden_count = 0
        self.ready_count = 0  # shown again, and not taken since
        self.skipped_count = 0  # lost to retention or damage before anybody had them
        self._log = log
        self._ring = bytearray()
        self._mask = 0
        self._ready_low = next_offset  # no offset of the ring below is shown again
        self._stragglers: dict[int, int] = {}
        self._ready_stragglers: list[int] = []  # a heap
        self._attempts: dict[int, int] = {}  # where a byte is too small
        self._found_count = 0
        self._until: dict[int, int] = {}  # moments until which hidden ones stay so, where there is one

    # Taking

    def take_new(self, into: StoredBatch, until_ms: int) -> None:
        """Hide the messages that were read from `next_offset` on, all of them given for the first time."""
        offsets = into.queue_offset
        attempts = into.attempt
        count = into.count
        for i in range(count):
            offset = offsets[i]
            if offset != self.next_offset:
                self.skipped_count += offset - self.next_offset
                self._skip_to(offset)
            if offset - self.base >= len(self._ring):
                self._make_room(offset + 1)
            self._ring[offset & self._mask] = 3
            self.next_offset = offset + 1
            attempts[i] = 1
            if until_ms:
                self._until[offset] = until_ms
            self._log.add(self.number, _TAKE, offset, until_ms)
        self.hidden_count += count
        self._log.close_run()
        if into.next_offset > self.next_offset:
            self.skipped_count += into.next_offset - self.next_offset
            self._skip_to(into.next_offset)
            self._log.put(self.number, JUMP, 0, 0, self.next_offset)

    def find_ready(self, into: array[int], count_max: int) -> int:
        """Write the lowest offsets that are shown again into `into`, ascending; return how many.

        They have to be given to `take_again`, which puts back what was not used.
        """
        count = 0
        while self._ready_stragglers and count < count_max:
            offset = heapq.heappop(self._ready_stragglers)
            code = self._code(offset)
            if code and not code & 1 and (not count or into[count - 1] != offset):
                into[count] = offset
                count += 1
        ring = self._ring
        mask = self._mask
        end = self.next_offset
        offset = max(self._ready_low, self.base)
        while offset < end and count < count_max and count < self.ready_count:
            code = ring[offset & mask]
            if code and not code & 1:
                into[count] = offset
                count += 1
            offset += 1
        self._found_count = count
        return count

    def take_again(self, offsets: array[int], consumed: int, into: StoredBatch, bytes_max: int, until_ms: int) -> int:
        """Hide those of the first `consumed` offsets found that are in `into`; the others of these are lost.

        Returns:
            How many of the messages in `into` were taken, which is its count now: as many as `bytes_max` allows.
        """
        taken = 0
        size = 0
        used = 0
        while used < consumed:
            offset = offsets[used]
            if taken < into.count and into.queue_offset[taken] == offset:
                size += into.record_end[taken] - into.record_start[taken]
                if size > bytes_max and taken:
                    break
                into.attempt[taken] = self._give_again(offset, until_ms)
                taken += 1
            else:
                self._set_code(offset, 0)
                self.skipped_count += 1
                self._log.add(self.number, _ACK, offset, 0)
            used += 1
        for i in range(used, self._found_count):
            if offsets[i] < self.base:
                heapq.heappush(self._ready_stragglers, offsets[i])
        if used and offsets[used - 1] >= self.base:
            self._ready_low = offsets[used - 1] + 1
        into.count = taken
        self._log.close_run()
        self._advance()
        return taken

    def _give_again(self, offset: int, until_ms: int) -> int:
        code = self._code(offset)
        attempt = self._attempt_of(offset, code) + 1
        if attempt >= _COUNTED_MAX:
            self._attempts[offset] = attempt
            attempt = _COUNTED_MAX
        self._set_code(offset, attempt << 1 | 1)
        if until_ms:
            self._until[offset] = until_ms
        self._log.add(self.number, _TAKE, offset, until_ms)
        return self._attempts[offset] if attempt == _COUNTED_MAX else attempt

    # Ending

    def ack_many(self, offsets: array[int], count: int) -> int:
        """Finish hidden messages; return the first offset that is not hidden, or -1. All others are done."""
        wrong = -1
        for i in range(count):
            offset = offsets[i]
            if offset < self.base or offset >= self.next_offset:
                code = self._stragglers.get(offset, 0) if self._stragglers else 0
            else:
                code = self._ring[offset & self._mask]
            if not code & 1:
                if wrong < 0:
                    wrong = offset
                continue
            if offset >= self.base and code >> 1 != _COUNTED_MAX and not self._until:
                self._ring[offset & self._mask] = 0
                self.hidden_count -= 1
            else:
                self._set_code(offset, 0)
            self._log.add(self.number, _ACK, offset, 0)
        self._log.close_run()
        self._advance()
        return wrong

    def hide_many(self, offsets: array[int], count: int, until_ms: int) -> int:
        """Keep hidden messages so until a moment, or show them again (0).

        Returns:
            The first offset that is not hidden, or -1. All others are as wished.
        """
        wrong = -1
        for i in range(count):
            offset = offsets[i]
            code = self._code(offset)
            if not code & 1:
                if wrong < 0:
                    wrong = offset
                continue
            if until_ms:
                self._until[offset] = until_ms
            else:
                self._set_code(offset, code & ~1)
            self._log.add(self.number, _HIDE, offset, until_ms)
        self._log.close_run()
        return wrong

    def show_due(self, first: int, end: int, until_ms: int) -> int:
        """Show those of [first, end) again that are hidden until just that moment; return how many."""
        shown = 0
        for offset in range(first, end):
            if self._until.get(offset, 0) == until_ms:
                self._set_code(offset, self._code(offset) & ~1)
                shown += 1
        return shown

    def purge(self, next_offset: int) -> int:
        """Finish all that is not hidden, below `next_offset`; return how many messages that were."""
        count = self.ready_count + max(next_offset - self.next_offset, 0)
        for offset in self._offsets():
            code = self._code(offset)
            if code and not code & 1:
                self._set_code(offset, 0)
                self._log.add(self.number, _ACK, offset, 0)
        self._log.close_run()
        self._ready_stragglers.clear()
        if next_offset > self.next_offset:
            self._skip_to(next_offset)
            self._log.put(self.number, JUMP, 0, 0, next_offset)
        self._advance()
        return count

    def seek(self, next_offset: int) -> None:
        """Forget all and go on from `next_offset`."""
        self._reset(next_offset)
        self._log.put(self.number, FLOOR, next_offset, 0, next_offset)

    def trim(self, max_offset: int) -> None:
        """Forget what lies from `max_offset` on: a power cut took it, and its numbers will be given again."""
        self._trim(max_offset)
        self._log.put(self.number, TRIM, 0, 0, max_offset)

    # What it is

    def is_idle(self) -> bool:
        """Return whether there is nothing to know but `next_offset`."""
        return self.base == self.next_offset and not self._stragglers

    def floor(self) -> int:
        """Return the first offset that is not done."""
        return min(self._stragglers) if self._stragglers else self.base

    def attempt(self, offset: int) -> int:
        """Return how often a message that is not done was given, or 0."""
        return self._attempt_of(offset, self._code(offset))

    def is_hidden(self, offset: int) -> bool:
        """Return whether a consumer has the message."""
        return bool(self._code(offset) & 1)

    def deadlines(self) -> list[tuple[int, int, int]]:
        """Return all moments until which messages are hidden: (moment, first offset, end), by offset."""
        runs: list[tuple[int, int, int]] = []
        for offset in sorted(self._until):
            until_ms = self._until[offset]
            if runs and runs[len(runs) - 1][2] == offset and runs[len(runs) - 1][0] == until_ms:
                offset_before = runs.pop()[1]
                runs.append((until_ms, offset_before, offset + 1))
            else:
                runs.append((until_ms, offset, offset + 1))
        return runs

    def deadline_count(self) -> int:
        """Return how many messages are hidden until some moment."""
        return len(self._until)

    # The journal

    def write_snapshot(self) -> None:
        """Put records into the log that make this state out of nothing."""
        self._log.put(self.number, FLOOR, self.base, 0, self.next_offset)
        for offset in self._offsets():
            code = self._code(offset)
            if code:
                self._log.add(self.number, _STATE, offset, self._attempt_of(offset, code))
        self._log.close_run()
        for until_ms, first, end in self.deadlines():
            for offset in range(first, end):
                self._log.add(self.number, _HIDE, offset, until_ms)
        self._log.close_run()

    def apply(self, kind: int, first: int, count: int, value: int) -> None:
        """Do again what a record says; nothing is noted."""
        if kind == JUMP:
            if value > self.next_offset:
                self._skip_to(value)
        elif kind == TRIM:
            self._trim(value)
        elif kind == FLOOR:
            self._reset(first)
            self._make_room(value)
            self.next_offset = value
        else:
            for offset in range(first, first + count):
                self._apply_one(kind, offset, value)
            self._advance()

    def _apply_one(self, kind: int, offset: int, value: int) -> None:
        if kind == _TAKE and offset >= self.next_offset:
            self._skip_to(offset)
            self._make_room(offset + 1)
            self.next_offset = offset + 1
            self._set_code(offset, 2)
        elif kind == _STATE:
            self._set_code(offset, min(value, _COUNTED_MAX) << 1)
            if value >= _COUNTED_MAX:
                self._attempts[offset] = value
            return
        elif kind == _TAKE and self._code(offset):
            attempt = self._attempt_of(offset, self._code(offset)) + 1
            if attempt >= _COUNTED_MAX:
                self._attempts[offset] = attempt
            self._set_code(offset, min(attempt, _COUNTED_MAX) << 1)
        elif kind == _ACK:
            self._set_code(offset, 0)
            return
        code = self._code(offset)
        if code:
            self._set_code(offset, code | 1 if value else code & ~1)
            if value:
                self._until[offset] = value

    # The ring and the stragglers

    def _offsets(self) -> Iterator[int]:
        """Return the offsets that may have a state, ascending."""
        return chain(sorted(self._stragglers), range(self.base, self.next_offset))

    def _code(self, offset: int) -> int:
        if offset >= self.next_offset:
            return 0
        if offset < self.base:
            return self._stragglers.get(offset, 0) if self._stragglers else 0
        return self._ring[offset & self._mask]

    def _attempt_of(self, offset: int, code: int) -> int:
        return self._attempts[offset] if code >> 1 == _COUNTED_MAX else code >> 1

    def _set_code(self, offset: int, code: int) -> None:
        """Give a message below `next_offset` a state; all that is counted or kept beside it follows."""
        before = self._code(offset)
        if before:
            self.hidden_count -= before & 1
            self.ready_count -= 1 - (before & 1)
        if code:
            self.hidden_count += code & 1
            self.ready_count += 1 - (code & 1)
        if not code & 1 and self._until:
            self._until.pop(offset, None)
        if code >> 1 != _COUNTED_MAX and self._attempts:
            self._attempts.pop(offset, None)
        if offset < self.base:
            if code:
                self._stragglers[offset] = code
            else:
                self._stragglers.pop(offset, None)
        else:
            self._ring[offset & self._mask] = code
        if code and not code & 1 and (before & 1 or not before):
            self._note_ready(offset)

    def _note_ready(self, offset: int) -> None:
        if offset < self.base:
            heapq.heappush(self._ready_stragglers, offset)
        elif offset < self._ready_low:
            self._ready_low = offset

    def _skip_to(self, next_offset: int) -> None:
        """Take what lies between as done."""
        gap = next_offset - self.next_offset
        if gap >= _SPARSE_MIN and (self.hidden_count + self.ready_count) * _SPARSE_RATIO < gap:
            self._thin_out(self.next_offset)
        if self.base == self.next_offset:
            self.base = next_offset
            self._ready_low = next_offset
        else:
            self._make_room(next_offset)
        self.next_offset = next_offset

    def _make_room(self, end: int) -> None:
        """Make the ring long enough for offsets below `end`, which is not far above `next_offset`."""
        while end - self.base > len(self._ring):
            size = len(self._ring)
            if size >= _SPARSE_MIN and self._thin_out_half():
                continue
            grown = bytearray(max(size * 2, _RING_MIN))
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
                self._stragglers[offset] = code
                if not code & 1:
                    heapq.heappush(self._ready_stragglers, offset)
        self.base = end
        self._ready_low = max(self._ready_low, end)
        self._advance()

    def _advance(self) -> None:
        """Move `base` over what is done."""
        base = self.base
        end = self.next_offset
        ring = self._ring
        mask = self._mask
        while base < end and not ring[base & mask]:
            base += 1
        self.base = base
        if base == end and len(ring) > _RING_KEPT_MAX:
            self._ring = bytearray()
            self._mask = 0

    def _reset(self, next_offset: int) -> None:
        self.base = next_offset
        self.next_offset = next_offset
        self.hidden_count = 0
        self.ready_count = 0
        self._ring = bytearray()
        self._mask = 0
        self._ready_low = next_offset
        self._stragglers = {}
        self._ready_stragglers = []
        self._attempts = {}
        self._until = {}

    def _trim(self, max_offset: int) -> None:
        for offset in self._offsets():
            if offset >= max_offset:
                self._set_code(offset, 0)
        self.next_offset = min(self.next_offset, max_offset)
        self.base = min(self.base, self.next_offset)
        self._ready_low = min(self._ready_low, self.next_offset)
