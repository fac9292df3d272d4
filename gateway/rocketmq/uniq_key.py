"""Keys of messages that came without one.

Source: docs/protocols/rocketmq.md.
"""

from __future__ import annotations

import calendar
import datetime as dt


class UniqPrefix:
    """The first 28 digits of a UNIQ_KEY: address, process, a number of our own, milliseconds of the month."""

    def __init__(self, pid: int) -> None:
        self._start = b"7F000001%04X4C4D5147" % (pid & 0xFFFF)
        self._month_ms = 0
        self._month_until_ms = 0

    def at(self, now_ms: int) -> bytes:
        """Return the digits for this moment."""
        if not self._month_ms <= now_ms < self._month_until_ms:
            self._find_month(now_ms)
        return b"%b%08X" % (self._start, (now_ms - self._month_ms) & 0xFFFFFFFF)

    def _find_month(self, now_ms: int) -> None:
        day = dt.datetime.fromtimestamp(now_ms / 1000, dt.UTC)
        first = dt.datetime(day.year, day.month, 1, tzinfo=dt.UTC)
        days = calendar.monthrange(day.year, day.month)[1]
        self._month_ms = int(first.timestamp()) * 1000
        self._month_until_ms = self._month_ms + days * 86_400_000
