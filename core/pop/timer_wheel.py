"""Deadlines in order, each for a run of numbers."""

from __future__ import annotations

import heapq
from collections.abc import Iterable


class TimerWheel:
    """Runs [first, end) with a deadline each; the caller checks, when one is due, whether it still matters."""

    __slots__ = ("_runs",)

    def __init__(self) -> None:
        self._runs: list[tuple[int, int, int]] = []  # a heap

    def __len__(self) -> int:
        """Return how many runs wait, also those that do not matter any more."""
        return len(self._runs)

    def add(self, deadline_ms: int, first: int, end: int) -> None:
        """Let [first, end) be due at `deadline_ms`."""
        heapq.heappush(self._runs, (deadline_ms, first, end))

    def replace(self, runs: Iterable[tuple[int, int, int]]) -> None:
        """Forget all, and add these runs of deadline, first and end."""
        self._runs = list(runs)
        heapq.heapify(self._runs)

    def next_deadline_ms(self) -> int | None:
        """Return the earliest deadline, or None."""
        return self._runs[0][0] if self._runs else None

    def take_first(self, now_ms: int) -> tuple[int, int, int] | None:
        """Remove and return the run with the earliest deadline, or None where that is after `now_ms`."""
        if not self._runs or self._runs[0][0] > now_ms:
            return None
        return heapq.heappop(self._runs)
