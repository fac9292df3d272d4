"""The long lists that are kept, by what they are of; those that nobody asks for are forgotten."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from time import monotonic
from typing import Any, TypeVar

from gateway.admin.pace import Pace
from gateway.admin.rosters.roster import IDLE_S, Roster
from gateway.admin.rosters.written_rows import WrittenRows

KEPT_MAX = 500  # lists; an empty one takes some kilobytes, and anybody that sees all may ask for users that are none
Kept = TypeVar("Kept", bound="Roster[Any, Any]")


class Rosters:
    """Some lists, each made when it is first asked for.

    Args:
        pace: How often orders of many are made anew.
    """

    def __init__(self, pace: Pace | None = None) -> None:
        self._pace = pace or Pace()
        self._kept: dict[Hashable, Roster[Any, Any]] = {}
        self.rows = WrittenRows()  # of their pages

    def __len__(self) -> int:
        """Return how many are kept."""
        return len(self._kept)

    def get(self, name: Hashable, make: Callable[[], Kept]) -> Kept:
        """Return the list of that name, which always is of the same kind; of very many the last asked for are kept."""
        found = self._kept.pop(name, None)
        if found is None or found.is_worn:
            found = make()
            found.pace = self._pace
        self._kept[name] = found
        if len(self._kept) > KEPT_MAX:  # a question may wait for its order still: that is not stopped
            del self._kept[next(iter(self._kept))]
        return found  # type: ignore[return-value] # the caller's own name

    def tend(self) -> None:
        """Forget a list that nobody asked for lately: to free one of 100,000 takes 3.5 ms, so each has its own turn."""
        before_s = monotonic() - IDLE_S
        idle = next((name for name, kept in self._kept.items() if kept.used_at_s < before_s), None)
        if idle is not None:
            self._kept.pop(idle).stop()
        if not self._kept:
            self.rows.clear()

    def stop(self) -> None:
        """Forget all of it."""
        for kept in self._kept.values():
            kept.stop()
        self._kept = {}
        self.rows.clear()
