"""Which of its consumers acknowledged a message of a queue that many share: runs of messages, of some readers.

The journal of pop queues has the consumer's code in eight bytes that the record of an acknowledgement has anyway. Of a
message that is in no run the consumer is not known: nothing follows from that.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator, Sequence
from typing import Protocol

from core.errors import DiskFullError
from core.pop.endings import Reader, runs_of

READERS_MAX = 1_024  # those with the latest acknowledgements
RUNS_MAX = 1_024  # of one reader, the latest, 24 bytes each
ALL_RUNS_MAX = 65_536  # of all readers
NAMES_MAX = 4_096  # of consumers, those that came last
# Names that get no row for each one that replaces another; chosen: few rows, and a consumer that goes on gets one soon.
PASSED_BY = 63
NAME_BYTES_MAX = 1_024  # of one; chosen: all of them take 4 MiB at most, and real ones have some 50 bytes
CODE_END = 1 << 48  # codes are below: then they are no reason, `core/pop/ending_codes.py`
_FIELDS = 3  # first offset, end, code
_DROPPED_AT_ONCE = 64 * _FIELDS  # where a reader has too many: to drop one costs as much as to drop some
_NO_RUNS = array("q")


class Rows(Protocol):
    """A durable map."""

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of `key`."""

    def delete(self, key: bytes) -> None:
        """Remove `key`."""

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Give all keys and values."""


class NoRows:
    """Keeps no names: those of a process before are not known."""

    def put(self, key: bytes, value: bytes) -> None:
        """Forget it."""

    def delete(self, key: bytes) -> None:
        """Do nothing."""

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Give nothing."""
        return iter(())


class Acknowledgers:
    """Acknowledged messages by light queue and reader.

    Args:
        rows: Where the names of consumers are kept, by their codes.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._names = {int.from_bytes(key): name for key, name in rows.items()}
        self._codes = {name: code for code, name in self._names.items()}
        self._kept: dict[Reader, array[int]] = {}  # those with the latest last
        self._run_count = 0
        self._to_pass_by = 0  # before a name replaces another again
        self._latest_reader: Reader | None = None  # most often the next acknowledgement is of the same one
        self._latest = _NO_RUNS

    def code_of(self, name: bytes) -> int:
        """Return the code of a consumer, which is part of a digest of its name; 0 where it cannot be kept, or is empty.

        The row of a new name is written with the next commit. Where more consumers than may have rows acknowledge in
        turn, most of them are passed by: each would write its row, and delete that of another, each time.
        """
        found = self._codes.get(name)
        if found is not None:
            return found
        if not name or len(name) > NAME_BYTES_MAX:
            return 0
        if len(self._codes) >= NAMES_MAX and self._to_pass_by:
            self._to_pass_by -= 1
            return 0
        code = int.from_bytes(hashlib.blake2b(name, digest_size=6).digest())
        if not code or code in self._names:
            return 0
        try:
            while len(self._codes) >= NAMES_MAX:
                self._to_pass_by = PASSED_BY
                oldest = next(iter(self._codes))
                self._rows.delete(self._codes[oldest].to_bytes(6))
                del self._names[self._codes.pop(oldest)]
            self._rows.put(code.to_bytes(6), name)
        except DiskFullError:
            return 0
        self._codes[name], self._names[code] = code, name
        return code

    def note(self, reader: Reader, offsets: Sequence[int], count: int, code: int) -> None:
        """Note that a consumer acknowledged the first `count` of these messages."""
        if not count or not code:
            return
        if count == 1:
            self.note_run(reader, offsets[0], offsets[0] + 1, code)
            return
        ordered = sorted(offsets[:count])
        if ordered[-1] - ordered[0] == count - 1:  # most often; to look at each costs more
            self.note_run(reader, ordered[0], ordered[-1] + 1, code)
            return
        for first, end in runs_of(ordered, count):
            self.note_run(reader, first, end, code)

    def note_run(self, reader: Reader, first: int, end: int, code: int) -> None:
        """Note that a consumer acknowledged the messages from an offset to before another; 0 is no consumer."""
        if first >= end or not code:
            return
        columns = self._latest if reader == self._latest_reader else self._find_columns(reader)
        if columns and columns[-2] == first and columns[-1] == code:
            columns[-2] = end
            return
        if len(columns) >= RUNS_MAX * _FIELDS:
            del columns[:_DROPPED_AT_ONCE]
            self._run_count -= _DROPPED_AT_ONCE // _FIELDS
        columns.extend((first, end, code))
        self._run_count += 1
        if self._run_count > ALL_RUNS_MAX:
            self._drop(next(iter(self._kept)))

    def _find_columns(self, reader: Reader) -> array[int]:
        """Return the runs of a reader, which is the one with the latest acknowledgement from now on."""
        columns = self._kept.pop(reader, None)
        if columns is None:
            columns = array("q")
            while len(self._kept) >= READERS_MAX:
                self._drop(next(iter(self._kept)))
        self._kept[reader] = columns
        self._latest_reader, self._latest = reader, columns
        return columns

    def _drop(self, reader: Reader) -> None:
        self._run_count -= len(self._kept.pop(reader)) // _FIELDS
        if reader == self._latest_reader:
            self._latest_reader = None

    def forget(self, reader: Reader, offset: int = 0) -> None:
        """Keep nothing of a reader's messages from an offset on: others may have these offsets."""
        columns = self._kept.get(reader)
        if columns is None:
            return
        runs = [(first, min(end, offset), code) for first, end, code in _split(columns) if first < offset]
        self._drop(reader)
        for run in runs:
            self.note_run(reader, *run)

    def find(self, reader: Reader, offset: int) -> bytes:
        """Return the consumer that acknowledged a message last, empty where that is not kept."""
        columns = self._kept.get(reader, _NO_RUNS)
        for at in range(len(columns) - _FIELDS, -1, -_FIELDS):
            if columns[at] <= offset < columns[at + 1]:
                return self._names.get(columns[at + 2], b"")
        return b""

    def tell(self, reader: Reader) -> list[tuple[int, int, int]]:
        """Return the runs of a reader: first offset, end, code of the consumer."""
        return list(_split(self._kept.get(reader, _NO_RUNS)))


def _split(columns: array[int]) -> Iterator[tuple[int, int, int]]:
    for at in range(0, len(columns), _FIELDS):
        yield columns[at], columns[at + 1], columns[at + 2]
