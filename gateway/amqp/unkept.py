"""Definitions that changed and are not on disk yet: a request for the same again is answered once they are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator

from core.errors import LmqError

SLICE_MAX = 4_096  # keys that are forgotten in one step, of some 0.1 us each; chosen: few of these to look through


class Unkept:
    """The durable definitions of one virtual host that a killed process would lose, or have again.

    Of very many that come at once the engine is asked twice, not for each: what comes while it has not answered is
    asked for after that.

    Args:
        when_kept: Calls back when all changes so far are kept.
        start: Does work in steps, in later turns.
    """

    def __init__(
        self,
        when_kept: Callable[[Callable[[LmqError | None], None]], None],
        start: Callable[[Iterator[None]], None],
    ) -> None:
        self._when_kept = when_kept
        self._start = start
        self._asked: list[set[Hashable]] = []  # in slices
        self._fresh: list[set[Hashable]] = []

    def __contains__(self, key: object) -> bool:
        return any(key in some for some in self._asked) or any(key in some for some in self._fresh)

    def note(self, key: Hashable) -> None:
        """Take note that something was made or deleted, which the tables say by now."""
        if not self._fresh or len(self._fresh[-1]) >= SLICE_MAX:
            self._fresh.append(set())
        self._fresh[-1].add(key)
        if not self._asked:
            self._ask()

    def _ask(self) -> None:
        self._asked, self._fresh = self._fresh, []
        self._when_kept(self._note_kept)

    def _note_kept(self, error: LmqError | None) -> None:
        if error is not None:
            return
        kept, self._asked = self._asked, []
        if len(kept) > 1:
            self._start(_forget(kept))
        if self._fresh:
            self._ask()


def _forget(slices: list[set[Hashable]]) -> Iterator[None]:
    """Free keys in steps: an import makes a hundred thousand between two commits."""
    while slices:
        slices.pop()
        yield
