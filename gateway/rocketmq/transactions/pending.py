"""Which half messages are not done with: numbers of their queue, a bit each, less where a whole stretch is done with.

A number is pending unless it was settled. So a message that comes costs nothing, and one that waits an eighth of a
byte.
"""

from __future__ import annotations

CHUNK_BITS = 12  # 4,096 numbers, 512 bytes
_CHUNK = 1 << CHUNK_BITS  # numbers of one whole number of Python's: a bit each
_FULL = (1 << _CHUNK) - 1


class Pending:
    """The numbers of a queue from `start` on that are not settled; all before it are."""

    def __init__(self, start: int = 0) -> None:
        self.start = start
        self._chunks: dict[int, int] = {}  # by number: a bit for each settled number; full ones share one object
        self._settled = 0  # at `start` and after it

    def settle(self, offset: int) -> None:
        """Note that a message is done with."""
        if self.is_settled(offset):
            return
        number = offset >> CHUNK_BITS
        bits = self._chunks.get(number, self._before(number)) | 1 << (offset & _CHUNK - 1)
        self._chunks[number] = _FULL if bits == _FULL else bits
        self._settled += 1

    def _before(self, number: int) -> int:
        """Return the bits of what lies before `start` in a chunk."""
        return (1 << (self.start & _CHUNK - 1)) - 1 if number == self.start >> CHUNK_BITS else 0

    def is_settled(self, offset: int) -> bool:
        """Return whether a message is done with."""
        bits = self._chunks.get(offset >> CHUNK_BITS, 0)
        return offset < self.start or bool(bits >> (offset & _CHUNK - 1) & 1)

    def count(self, end: int) -> int:
        """Return how many of the queue's messages, of which `end` is the next number, are pending."""
        return max(0, end - self.start - self._settled)

    def next_pending(self, offset: int, end: int) -> int:
        """Return the first number from `offset` on that is pending, `end` where none before it is."""
        offset = max(offset, self.start)
        while offset < end:
            bits = self._chunks.get(offset >> CHUNK_BITS)
            if bits is None:
                return offset
            if bits is not _FULL:
                rest = ~(bits >> (offset & _CHUNK - 1))
                at = offset + (rest & -rest).bit_length() - 1
                if at >> CHUNK_BITS == offset >> CHUNK_BITS:
                    return min(at, end)
            offset = (offset >> CHUNK_BITS) + 1 << CHUNK_BITS
        return end

    def advance(self, end: int) -> int:
        """Move `start` to the first number that is pending, `end` at most; return it."""
        start = self.next_pending(self.start, end)
        if start > self.start:
            self._settled -= start - self.start
            for number in range(self.start >> CHUNK_BITS, start >> CHUNK_BITS):
                self._chunks.pop(number, None)
            self.start = start
        return self.start
