"""Ascending numbers that mostly follow each other, kept as the runs that they make: a million cost a few bytes."""

from __future__ import annotations

from array import array
from bisect import bisect_right


class Runs:
    """A row of numbers, of which one is found by its place."""

    def __init__(self) -> None:
        self._places = array("q", [0])  # at which a run begins
        self._firsts = array("q", [0])  # its first number
        self._count = 0

    def __len__(self) -> int:
        """Return how many numbers there are."""
        return self._count

    def __getitem__(self, place: int) -> int:
        """Return the number at a place, which is one that there is."""
        run = bisect_right(self._places, place) - 1 if len(self._places) > 1 else 0
        return self._firsts[run] + place - self._places[run]

    def add(self, first: int, count: int) -> None:
        """Put `count` numbers from `first` on behind those that there are."""
        if self._count == 0:
            self._firsts[0] = first
        elif self[self._count - 1] + 1 != first:
            self._places.append(self._count)
            self._firsts.append(first)
        self._count += count
