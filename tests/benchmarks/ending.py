"""How a bench ends when it is told to, with its servers stopped."""

from __future__ import annotations

import signal
import sys


def exit_when_told(name: str) -> None:
    """Let SIGTERM end this process as an error does; once, so that another one does not cut the tidying up short."""

    def end(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sys.exit(f"{name}: ended")

    signal.signal(signal.SIGTERM, end)
