"""How many bytes the bodies in a light queue have, up to some of its offsets: a restart need not read them again.

A mark is an offset and the sum of all before it. Between two marks lie some thousand messages, which are read where a
sum between them is asked for.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from typing import Protocol

MARK_MESSAGES = 4_096  # from one mark to the next: read in about a millisecond
_MARK = struct.Struct(">qq")


class ByteRows(Protocol):
    """Rows that outlive the process."""

    def get(self, key: bytes) -> bytes | None:
        """Return a row, or None."""

    def put(self, key: bytes, value: bytes) -> None:
        """Write a row."""


class ByteSums:
    """The marks of one light queue, ascending. The first says where counting began.

    Args:
        start: The first offset that counts.
    """

    __slots__ = ("_offsets", "_sums")

    def __init__(self, start: int) -> None:
        self._offsets = array("q", (start,))
        self._sums = array("q", (0,))

    @classmethod
    def load(cls, row: bytes) -> ByteSums:
        """Return what `dump` wrote."""
        sums = cls(0)
        marks = list(_MARK.iter_unpack(row))
        sums._offsets = array("q", [offset for offset, _ in marks])
        sums._sums = array("q", [total for _, total in marks])
        return sums

    def dump(self) -> bytes:
        """Return the marks as a row of a table."""
        return b"".join(map(_MARK.pack, self._offsets, self._sums))

    @property
    def last(self) -> tuple[int, int]:
        """The last mark."""
        return self._offsets[-1], self._sums[-1]

    def is_due(self, offset: int) -> bool:
        """Return whether there is to be a mark at an offset that was counted up to."""
        return offset - self._offsets[-1] >= MARK_MESSAGES

    def add(self, offset: int, total: int, floor: int) -> None:
        """Put in a mark above the last, and forget those that nothing at or above `floor` needs."""
        kept = max(bisect_right(self._offsets, floor) - 1, 0)
        del self._offsets[:kept], self._sums[:kept]
        self._offsets.append(offset)
        self._sums.append(total)

    def after(self, offset: int) -> tuple[int, int] | None:
        """Return the first mark at or above an offset, None where there is none."""
        k = bisect_left(self._offsets, offset)
        return (self._offsets[k], self._sums[k]) if k < len(self._offsets) else None

    def below(self, total: int) -> int:
        """Return the offset of the last mark whose sum is at most so much, the first where none is."""
        return self._offsets[max(bisect_right(self._sums, total) - 1, 0)]

    def reset(self, offset: int, total: int) -> None:
        """Keep no mark but this one."""
        self._offsets = array("q", (offset,))
        self._sums = array("q", (total,))
