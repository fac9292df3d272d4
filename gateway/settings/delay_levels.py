"""RocketMQ's delay levels as text, `1s 5s 10s 30s 1m`: one time each, from level 1 on.

Source: docs/protocols/rocketmq.md, "Delayed messages".
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

LEVELS_COUNT_MAX = 64  # each is a queue that is looked at four times a second; official brokers have 18
LEVEL_MS_MAX = 400 * 86_400_000  # as far off as a timed message may be
UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
DEFAULT_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
_LEVEL = re.compile(r"([0-9]{1,9})([smhd])")


def parse_delay_levels(text: str) -> tuple[int, ...]:
    """Return how long each level waits, in milliseconds.

    Raises:
        ValueError: The text names no level, or too many, or a time that is none, 0 or beyond 400 days.
    """
    found: list[int] = []
    for word in text.split():
        match = _LEVEL.fullmatch(word)
        wait_ms = int(match[1]) * UNIT_MS[match[2]] if match else 0
        if not 0 < wait_ms <= LEVEL_MS_MAX:
            raise ValueError(f"{word[:32]!r} is not a time from 1s to 400d: give a number and s, m, h or d")
        found.append(wait_ms)
    if not 1 <= len(found) <= LEVELS_COUNT_MAX:
        raise ValueError(f"must be 1 to {LEVELS_COUNT_MAX} times with spaces between, such as 1s 5s 1m")
    return tuple(found)


def _check_levels(text: str) -> str:
    parse_delay_levels(text)
    return " ".join(text.split())


DelayLevels = Annotated[str, AfterValidator(_check_levels)]
"""The setting: checked, with one space between two levels."""
