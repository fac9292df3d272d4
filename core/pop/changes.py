"""What happens to messages that are shared, as records of a journal.

A record has 24 bytes: the number of the pop queue (4), kind (1) and count (3), first queue offset (8), value (8), all
big-endian. It speaks of the `count` messages from the offset on:

| kind | what | value |
|---|---|---|
| NAME | not of this size: after 8 bytes with the pieces that follow as count, a piece of the pop queue's name | |
| DROP | the pop queue is no more | |
| TAKE | given once more | hidden until this moment, or 0 |
| ACK | done, or lost to retention or damage | how it ended, 0: acknowledged |
| HIDE | still not done | hidden until this moment; 0: shown again |
| JUMP | what was not taken yet below `value` will not be; in place of an offset how it ended | the next to be taken |
| TRIM | nothing from `value` on was ever there | as said |
| FLOOR | all before is forgotten; what is below `value` is done, until told otherwise | the next offset to be taken |
| STATE | given so many times, not done | how many times |

A FLOOR with a count of 1 says that its STATEs come in parts, with what happened meanwhile among them; a STATE with a
count of 0 ends them.

Source: docs/storage-format.md, "Pop journal".
"""

from __future__ import annotations

from core import octets

NAME, DROP, TAKE, ACK, HIDE, JUMP, TRIM, FLOOR, STATE = range(1, 10)
CHANGE_BYTES = 24  # 4 + 4 + 8 + 8: docs/storage-format.md, "Pop journal"
COUNT_MAX = 0xFFFFFF  # 24 bits of a record
_CHANGE_BYTES = CHANGE_BYTES
_COUNT_MAX = COUNT_MAX


class ChangeLog:
    """Changes on their way to the journal, which empties it by `clear` after each batch of work.

    What goes on one after the other in one pop queue becomes one record; `close_run` ends it. Those that add here count
    messages by what happened to them, for operators.
    """

    def __init__(self) -> None:
        self.taken = self.taken_again = self.done = self.given_back = self.timed_out = 0  # messages, since the start
        self.ending = 0  # how messages end that are finished now, `core/pop/ending_codes.py`; 0: they are acknowledged
        self.used = 0  # bytes of `buf` that hold records
        self.buf = bytearray(64 * CHANGE_BYTES)
        self._view = memoryview(self.buf)
        self._number = 0
        self._kind = 0
        self._first = 0
        self._end = 0
        self._value = 0

    def add(self, number: int, kind: int, offset: int, value: int) -> None:
        """Note that `kind` happened to one message."""
        if (
            offset == self._end
            and kind == self._kind
            and value == self._value
            and number == self._number
            and offset - self._first < _COUNT_MAX
        ):
            self._end = offset + 1
            return
        self.close_run()
        self._number = number
        self._kind = kind
        self._first = offset
        self._end = offset + 1
        self._value = value

    def close_run(self) -> None:
        """Write down what was added last."""
        if self._kind:
            kind = self._kind
            self._kind = 0
            self.put(self._number, kind, self._first, self._end - self._first, self._value)

    def put(self, number: int, kind: int, offset: int, count: int, value: int) -> None:
        """Write one record; the run before it has been closed."""
        pos = self.used
        if pos + _CHANGE_BYTES > len(self.buf):
            self.buf = self.buf + bytes(len(self.buf))
            self._view = memoryview(self.buf)
        octets.write_u32(self._view, pos, number)
        octets.write_u32(self._view, pos + 4, kind << 24 | count)
        octets.write_u64(self._view, pos + 8, offset)
        octets.write_u64(self._view, pos + 16, value)
        self.used = pos + _CHANGE_BYTES

    def clear(self) -> None:
        """Forget the records."""
        self.used = 0
