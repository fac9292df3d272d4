"""How a bench ends when it is told to, with its servers stopped."""

from __future__ import annotations

import signal
import sys


class Ending:
    """Lets SIGTERM end this process as an error does; once, so that another one does not cut the tidying up short."""

    def __init__(self, name: str) -> None:
        self._message = f"{name}: ended"
        self._is_told = False
        signal.signal(signal.SIGTERM, self._end)

    def _end(self, *_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self._is_told = True
        sys.exit(self._message)

    def check(self) -> None:
        """Exit now, if told: a loop that was in a callback then has taken the exit for the callback's failure."""
        if self._is_told:
            sys.exit(self._message)
