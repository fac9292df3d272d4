"""Marks where records start in a segment, in any order, and tells them in the order of the segment.

A cell for each 64 bytes: records are longer than that, so no two start in one.
"""

from __future__ import annotations

CELL_BYTES = 64  # a record has 91 at least
_CELL_SHIFT = 6
_CELL_MASK = CELL_BYTES - 1


class PositionMarks:
    """Marks of one segment of `size` bytes."""

    def __init__(self, size: int) -> None:
        self.cells = bytearray(size // CELL_BYTES + 1)
        self.count = len(self.cells)
        self.at = 0  # the cell where `find_runs` goes on
        self.first = -1  # of the run that it is in
        self.last = -1

    def mark(self, position: int) -> None:
        """Mark a position; a negative one is none."""
        if position >= 0:
            self.cells[position >> _CELL_SHIFT] = (position & _CELL_MASK) + 1

    def find_runs(self, far: int, cells_max: int, out: list[tuple[int, int]]) -> bool:
        """Append the first and last mark of each run to `out`, in order; marks `far` apart belong to different runs.

        Goes through `cells_max` cells a call; returns whether there are more.
        """
        end = min(self.at + cells_max, self.count)
        for cell in range(self.at, end):
            if self.cells[cell]:
                position = (cell << _CELL_SHIFT) + self.cells[cell] - 1
                if self.last >= 0 and position - self.last >= far:
                    out.append((self.first, self.last))
                    self.first = -1
                if self.first < 0:
                    self.first = position
                self.last = position
        self.at = end
        if end == self.count and self.first >= 0:
            out.append((self.first, self.last))
            self.first = -1
        return end < self.count
