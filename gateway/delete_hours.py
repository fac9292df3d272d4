"""The hours of the day in which segments past their age go, as RocketMQ's `deleteWhen` has it."""

from __future__ import annotations

import time
from collections.abc import Collection

SECOND_MS = 1_000


def is_hour_of(hours: Collection[int], now_ms: int) -> bool:
    """Return whether it is one of these hours where this machine is; of none, whether at any time: it is."""
    return not hours or time.localtime(now_ms / SECOND_MS).tm_hour in hours
