"""Definitions that changed and are not on disk yet: a request for the same again is answered once they are."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from core.errors import LmqError


class Unkept:
    """The durable definitions of one virtual host that a killed process would lose, or have again.

    Of very many that come at once the engine is asked twice, not for each: what comes while it has not answered is
    asked for after that.

    Args:
        when_kept: Calls back when all changes so far are kept.
    """

    def __init__(self, when_kept: Callable[[Callable[[LmqError | None], None]], None]) -> None:
        self._when_kept = when_kept
        self._asked: set[Hashable] = set()
        self._fresh: set[Hashable] = set()

    def __contains__(self, key: object) -> bool:
        return key in self._asked or key in self._fresh

    def note(self, key: Hashable) -> None:
        """Take note that something was made or deleted, which the tables say by now."""
        self._fresh.add(key)
        if not self._asked:
            self._ask()

    def _ask(self) -> None:
        self._asked, self._fresh = self._fresh, set()
        self._when_kept(self._note_kept)

    def _note_kept(self, error: LmqError | None) -> None:
        if error is not None:
            return
        self._asked = set()
        if self._fresh:
            self._ask()
