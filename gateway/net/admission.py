"""Newcomers by the thousand: at each turn of the loop, a few are heard.

What a newcomer says first (its name, the session that it takes up) is dear to answer, and the loop serves
readable sockets in order. Without this, clients that are connected wait until all newcomers are served.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

ADMITTED_MAX = 16  # in one turn: a few milliseconds of work


class Newcomer(Protocol):
    """A connection that said its first words."""

    def admit(self) -> None:
        """Answer them; harmless where the connection is gone."""


class Admission:
    """Admits newcomers in the order that they came.

    Args:
        call_soon: Calls back at the end of this turn of the loop.
    """

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        self._waiting: deque[Newcomer] = deque()
        self._admitted = 0  # in this turn

    def may_enter(self, newcomer: Newcomer) -> bool:
        """Return whether the newcomer is heard now; else it is admitted in a later turn."""
        if not self._admitted:
            self._call_soon(self._turn)
        if self._waiting or self._admitted >= ADMITTED_MAX:
            self._waiting.append(newcomer)
            return False
        self._admitted += 1
        return True

    def _turn(self) -> None:
        self._admitted = min(len(self._waiting), ADMITTED_MAX)
        if self._admitted:
            self._call_soon(self._turn)
        for _ in range(self._admitted):
            self._waiting.popleft().admit()
