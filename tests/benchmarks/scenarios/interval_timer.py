"""A timer of the loop for intervals shorter than a millisecond, of which uvloop's own timers know whole ones only."""

from __future__ import annotations

import asyncio
import ctypes
import os
from collections.abc import Callable

CLOCK_MONOTONIC = 1
FLAGS = os.O_NONBLOCK | os.O_CLOEXEC
COUNT_BYTES = 8


class IntervalTimer:
    """Calls back at even intervals, between the other work of the running loop; what was missed is made up for at once.

    Python has the system call from 3.13 on only.
    """

    def __init__(self, interval_s: float, callback: Callable[[], None]) -> None:
        self._interval_ns = round(interval_s * 1e9)
        self._callback = callback
        self._fd = -1

    def start(self) -> None:
        """Begin; the first call is due after one interval."""
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = libc.timerfd_create(CLOCK_MONOTONIC, FLAGS)
        secs, nanoseconds = divmod(self._interval_ns, 1_000_000_000)
        spec = (ctypes.c_long * 4)(secs, nanoseconds, secs, nanoseconds)
        if self._fd < 0 or libc.timerfd_settime(self._fd, 0, spec, None) < 0:
            raise OSError(ctypes.get_errno(), "no interval timer")
        asyncio.get_running_loop().add_reader(self._fd, self._expired)

    def _expired(self) -> None:
        for _ in range(int.from_bytes(os.read(self._fd, COUNT_BYTES), "little")):
            if self._fd >= 0:  # else the callback stopped it
                self._callback()

    def stop(self) -> None:
        """Call no more."""
        if self._fd >= 0:
            asyncio.get_running_loop().remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1
