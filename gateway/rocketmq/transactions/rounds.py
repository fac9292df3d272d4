"""Which half messages were asked about, when and how often: stretches of their queue, so that none costs by itself.

Source: docs/decisions/0038-transactions.md.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

STRETCHES_MAX = 512  # all of them are one row of a table; at the defaults one begins each 0.9 s
_ROW = struct.Struct(">QQIQQ")


class Stretch:
    """Neighbours in the queue that producers were asked about together."""

    __slots__ = ("count", "end", "first", "first_at_ms", "last_at_ms")

    def __init__(self, first: int, end: int, count: int, first_at_ms: int, last_at_ms: int) -> None:
        self.first = first
        self.end = end
        self.count = count  # how often
        self.first_at_ms = first_at_ms
        self.last_at_ms = last_at_ms

    def count_since(self, at_ms: int, interval_ms: int) -> int:
        """Return how often it was asked about what could be asked about from `at_ms` on."""
        if at_ms <= self.first_at_ms:
            return self.count
        if at_ms > self.last_at_ms:
            return 0
        return min(self.count, 1 + (self.last_at_ms - at_ms) // max(interval_ms, 1))


class Rounds:
    """The stretches, in the order of the queue, and where what was never asked about begins."""

    def __init__(self) -> None:
        self.stretches: list[Stretch] = []
        self.fresh_from = 0

    def find_due(self, now_ms: int, interval_ms: int) -> Stretch | None:
        """Return the stretch that waits longest among those that are due to be asked about again."""
        found: Stretch | None = None
        for stretch in self.stretches:
            stretch.last_at_ms = min(stretch.last_at_ms, now_ms)  # the clock was set back
            is_due = stretch.last_at_ms + interval_ms <= now_ms
            if is_due and (found is None or stretch.last_at_ms < found.last_at_ms):
                found = stretch
        return found

    def note_again(self, stretch: Stretch, at_ms: int) -> None:
        """All of a stretch was asked about again."""
        stretch.count += 1
        stretch.last_at_ms = at_ms

    def note_first(self, end: int, at_ms: int) -> None:
        """All from `fresh_from` to `end` was asked about for the first time."""
        if end > self.fresh_from:
            self.stretches.append(Stretch(self.fresh_from, end, 1, at_ms, at_ms))
            self.fresh_from = end
            if len(self.stretches) > STRETCHES_MAX:
                self._merge()

    def _merge(self) -> None:
        """Let the older half of the stretches be pairs: what was asked about less often counts, and is due later."""
        half = len(self.stretches) // 2 & ~1
        pairs = zip(self.stretches[:half:2], self.stretches[1:half:2], strict=True)
        self.stretches[:half] = [
            Stretch(
                one.first,
                other.end,
                min(one.count, other.count),
                max(one.first_at_ms, other.first_at_ms),
                max(one.last_at_ms, other.last_at_ms),
            )
            for one, other in pairs
        ]

    def advance(self, start: int) -> None:
        """Forget what lies before `start`."""
        self.stretches = [stretch for stretch in self.stretches if stretch.end > start]
        self.fresh_from = max(self.fresh_from, start)

    def encode(self) -> bytes:
        """Return the stretches as a row."""
        return b"".join(
            _ROW.pack(stretch.first, stretch.end, stretch.count, stretch.first_at_ms, stretch.last_at_ms)
            for stretch in self.stretches
        )

    def load(self, row: bytes, start: int, end: int) -> None:
        """Take up a row, as far as it tells of what lies in [start, end)."""
        self.stretches = [stretch for stretch in _decode(row) if stretch.first < stretch.end <= end]
        self.fresh_from = max((stretch.end for stretch in self.stretches), default=start)
        self.advance(start)


def _decode(row: bytes) -> Iterator[Stretch]:
    for at in range(0, len(row) - _ROW.size + 1, _ROW.size):
        yield Stretch(*_ROW.unpack_from(row, at))
