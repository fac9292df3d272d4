"""The system's clocks. Compiled modules take the inline C forms from `clocks.pxd`."""

from __future__ import annotations

import time


def wall_ns() -> int:
    """Return nanoseconds since 1970."""
    return time.time_ns()


def monotonic_ns() -> int:
    """Return nanoseconds by a clock that nobody sets."""
    return time.monotonic_ns()
