"""What is known of each message of one pop queue: done, hidden with a consumer, or shown again.

Each change is noted in the log that was handed in; `apply` makes the same state of the same changes.
"""

from __future__ import annotations

from array import array

from core.message import StoredBatch
from core.pop.changes import ACK, FLOOR, HIDE, JUMP, STATE, TAKE, TRIM, ChangeLog
from core.pop.window import Window
from core.stage import Stage

_ACK = ACK
_HIDE = HIDE
_TAKE = TAKE
_STATE = STATE
_COUNTED_MAX = 127  # the most times given that a window's code can tell; this one sends to a dict
_NOTHING: dict[int, int] = {}  # shared by all that have none, and never written to


class InFlight:
    """The state of one pop queue; nothing has happened yet when it is made.

    Args:
        number: The pop queue in the log's records.
        log: Where changes are noted.
        next_offset: The first offset to be taken.
    """

    def __init__(self, number: int, log: ChangeLog, next_offset: int) -> None:
        self.number = number
        self.window = Window(next_offset)
        self.skipped_count = 0  # lost to retention or damage before anybody acknowledged them
        self.again_count = 0  # given once more
        self._log = log
        self._attempts = _NOTHING  # where a code is too small
        self._until = _NOTHING  # moments until which hidden ones stay so, where there is one
        self._is_partial = False  # more of a snapshot is to be applied: what has no code yet may still get one

    def take_new(self, into: StoredBatch, until_ms: int) -> None:
        """Hide the messages that were read from `next_offset` on, all of them given for the first time."""
        window = self.window
        offsets = into.queue_offset
        attempts = into.attempt
        for i in range(into.count):
            offset = offsets[i]
            self.skipped_count += offset - window.next_offset
            window.append(offset, 3)
            attempts[i] = 1
            if until_ms:
                self._put_until(offset, until_ms)
            self._log.add(self.number, _TAKE, offset, until_ms)
        self._log.taken += into.count
        self._log.close_run()
        if into.next_offset > window.next_offset:
            self.skipped_count += into.next_offset - window.next_offset
            window.skip_to(into.next_offset)
            self._log.put(self.number, JUMP, 0, 0, into.next_offset)

    def take_again(self, offsets: array[int], consumed: int, into: StoredBatch, bytes_max: int, until_ms: int) -> int:
        """Hide those of the first `consumed` offsets found that are in `into`; the others of these are lost.

        Args:
            offsets: What `window.find_shown` found.
            consumed: How many of them the store has looked up.
            into: What it gave.
            bytes_max: Take no more than this, but one.
            until_ms: When they are to be shown again, or 0.

        Returns:
            How many were taken, which is the count of `into` now.
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
                self._put(offset, 0)
                self.skipped_count += 1
                self._log.add(self.number, _ACK, offset, 0)
            used += 1
        into.count = taken
        self._log.taken_again += taken
        self.again_count += taken
        self._log.close_run()
        self.window.use_found(offsets, used)
        self.window.advance()
        return taken

    def ack_many(self, offsets: array[int], count: int) -> int:
        """Finish hidden messages; return the first offset that is not hidden, or -1. All others are done."""
        window = self.window
        wrong = -1
        done = 0
        for i in range(count):
            offset = offsets[i]
            if not window.code(offset) & 1:
                wrong = offset if wrong < 0 else wrong
                continue
            self._put(offset, 0)
            self._log.add(self.number, _ACK, offset, self._log.ending)
            done += 1
        self._log.done += done
        self._log.close_run()
        window.advance()
        return wrong

    def finish(self, offset: int) -> bool:
        """Finish a message in whatever state; what comes before it and was never taken counts as given once.

        Returns:
            Whether it was not done yet.
        """
        for untold in range(self.window.next_offset, offset + 1):
            self.window.append(untold, 2)
            self._log.add(self.number, _TAKE, untold, 0)
        self._log.close_run()
        if not self.window.code(offset):
            return False
        self._put(offset, 0)
        self._log.put(self.number, _ACK, offset, 1, self._log.ending)
        self.window.advance()
        return True

    def hide_many(self, offsets: array[int], count: int, until_ms: int) -> int:
        """Keep hidden messages so until a moment, or show them again (0).

        Returns:
            The first offset that is not hidden, or -1. All others are as wished.
        """
        wrong = -1
        for i in range(count):
            offset = offsets[i]
            code = self.window.code(offset)
            if not code & 1:
                wrong = offset if wrong < 0 else wrong
                continue
            if until_ms:
                self._put_until(offset, until_ms)
            else:
                self._put(offset, code & ~1)
            self._log.given_back += 1
            self._log.add(self.number, _HIDE, offset, until_ms)
        self._log.close_run()
        return wrong

    def show_due(self, first: int, end: int, until_ms: int) -> int:
        """Show those of [first, end) again that are hidden until just that moment; return how many."""
        shown = 0
        for offset in range(first, end):
            if self._until.get(offset, 0) == until_ms:
                self._put(offset, self.window.code(offset) & ~1)
                shown += 1
        self._log.timed_out += shown
        return shown

    def purge(self, next_offset: int, ending: int = 0) -> None:
        """Finish all that is not hidden, below `next_offset`; `ending` is the code of why."""
        for offset in self.window.offsets():
            code = self.window.code(offset)
            if code and not code & 1:
                self._put(offset, 0)
                self._log.add(self.number, _ACK, offset, ending)
        self._log.close_run()
        if next_offset > self.window.next_offset:
            self.window.skip_to(next_offset)
            self._log.put(self.number, JUMP, ending, 0, next_offset)
        self.window.advance()

    def skip_to(self, next_offset: int) -> None:
        """Take what was never taken below `next_offset` as done."""
        if next_offset > self.window.next_offset:
            self.window.skip_to(next_offset)
            self.window.advance()
            self._log.put(self.number, JUMP, 0, 0, next_offset)

    def seek(self, next_offset: int) -> None:
        """Forget all and go on from `next_offset`."""
        self._reset(next_offset, next_offset)
        self._log.put(self.number, FLOOR, next_offset, 0, next_offset)

    def trim(self, max_offset: int) -> None:
        """Forget what lies from `max_offset` on: a power cut took it, and its numbers will be given again."""
        self._trim(max_offset)
        self._log.put(self.number, TRIM, 0, 0, max_offset)

    def attempt(self, offset: int) -> int:
        """Return how often a message that is not done was given, or 0."""
        return self._attempt_of(offset, self.window.code(offset))

    def is_taken(self, offset: int, attempt: int) -> bool:
        """Return whether a message is hidden, and was given so often."""
        code = self.window.code(offset)
        return code & 1 == 1 and self._attempt_of(offset, code) == attempt

    def stage(self, offset: int) -> Stage:
        """Return how far a message below `next_offset` of the window is."""
        code = self.window.code(offset)
        if not code:
            return Stage.DONE
        return Stage.TAKEN if code & 1 else Stage.BACK

    def until(self, offset: int) -> int:
        """Return the moment until which a message is hidden, 0 where it is not, or until something else happens."""
        return self._until.get(offset, 0)

    def deadlines(self) -> list[tuple[int, int, int]]:
        """Return all moments until which messages are hidden: (moment, first offset, end), by offset."""
        runs: list[tuple[int, int, int]] = []
        for offset in sorted(self._until):
            until_ms = self._until[offset]
            first = offset
            if runs and runs[len(runs) - 1][2] == offset and runs[len(runs) - 1][0] == until_ms:
                first = runs.pop()[1]
            runs.append((until_ms, first, offset + 1))
        return runs

    def deadline_count(self) -> int:
        """Return how many messages are hidden until some moment."""
        return len(self._until)

    def write_floor(self, log: ChangeLog, *, has_parts: bool) -> None:
        """Put the record into `log` that a snapshot begins with; `has_parts`: `write_end` will follow."""
        log.put(self.number, FLOOR, self.window.base, int(has_parts), self.window.next_offset)

    def write_states(self, log: ChangeLog, first: int, end: int) -> None:
        """Put records into `log` that make the state of the messages [first, end) out of nothing."""
        for offset in range(first, end):
            code = self.window.code(offset)
            if code:
                log.add(self.number, _STATE, offset, self._attempt_of(offset, code))
        if self._until:
            for offset in range(first, end):
                until_ms = self._until.get(offset, 0)
                if until_ms:
                    log.add(self.number, _HIDE, offset, until_ms)
        log.close_run()

    def write_end(self, log: ChangeLog) -> None:
        """Put the record into `log` that ends a snapshot of many parts."""
        log.put(self.number, STATE, 0, 0, 0)

    def apply(self, kind: int, first: int, count: int, value: int) -> None:
        """Do again what a record says; nothing is noted."""
        if kind == JUMP:
            if value > self.window.next_offset:
                self.window.skip_to(value)
        elif kind == TRIM:
            self._trim(value)
        elif kind == FLOOR:
            self._reset(first, value)
            self._is_partial = count > 0
        else:
            for offset in range(first, first + count):
                self._apply_one(kind, offset, value)
            if kind == STATE and not count:
                self._is_partial = False
            if not self._is_partial:
                self.window.advance()

    def _apply_one(self, kind: int, offset: int, value: int) -> None:
        if kind == _STATE:
            self._put_attempt(offset, value)
            return
        code = self.window.code(offset)
        if kind == _TAKE and offset >= self.window.next_offset:
            self.window.append(offset, 2)
            code = 2
        elif code and kind == _ACK:
            self._put(offset, 0)
            return
        elif code and kind == _TAKE:
            self._put_attempt(offset, self._attempt_of(offset, code) + 1)
            code = self.window.code(offset)
        if code:
            self._put(offset, code | 1 if value else code & ~1)
            if value:
                self._put_until(offset, value)

    def _give_again(self, offset: int, until_ms: int) -> int:
        attempt = self._attempt_of(offset, self.window.code(offset)) + 1
        self._put_attempt(offset, attempt)
        self._put(offset, self.window.code(offset) | 1)
        if until_ms:
            self._put_until(offset, until_ms)
        self._log.add(self.number, _TAKE, offset, until_ms)
        return attempt

    def _put_attempt(self, offset: int, attempt: int) -> None:
        """Show a message again that was given so often."""
        self._put(offset, min(attempt, _COUNTED_MAX) << 1)
        if attempt >= _COUNTED_MAX:
            if self._attempts is _NOTHING:
                self._attempts = {}
            self._attempts[offset] = attempt

    def _put_until(self, offset: int, until_ms: int) -> None:
        if self._until is _NOTHING:
            self._until = {}
        self._until[offset] = until_ms

    def _attempt_of(self, offset: int, code: int) -> int:
        return self._attempts[offset] if code >> 1 == _COUNTED_MAX else code >> 1

    def _put(self, offset: int, code: int) -> None:
        """Give a message a code, and let go of what is kept beside it where the code says so."""
        self.window.put(offset, code)
        if not code & 1 and self._until:
            self._until.pop(offset, None)
        if not code and self._attempts:
            self._attempts.pop(offset, None)

    def _reset(self, base: int, next_offset: int) -> None:
        self.window.reset(base, next_offset)
        self._attempts = _NOTHING
        self._until = _NOTHING

    def _trim(self, max_offset: int) -> None:
        for offset in self.window.offsets():
            if offset >= max_offset:
                self._put(offset, 0)
        self.window.cut(max_offset)
