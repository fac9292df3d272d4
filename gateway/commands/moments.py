"""Moments and starts, as people give them."""

from __future__ import annotations

import re

from gateway.commands.refusing import refuse

AGO = re.compile(r"-(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
AGO_MS = (86_400_000, 3_600_000, 60_000, 1_000)  # a day, an hour, a minute, a second


def read_moment(text: str) -> int:
    """Return a moment in ms since 1970: one such as 2026-01-31T12:00, or a while ago, such as -1h30m."""
    from datetime import UTC, datetime
    from time import time_ns

    ago = AGO.fullmatch(text)
    if ago is not None and any(ago.groups()):
        passed_ms = sum(int(number or 0) * unit for number, unit in zip(ago.groups(), AGO_MS, strict=True))
        return time_ns() // 1_000_000 - passed_ms
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        refuse(f"{text!r} is neither a time such as 2026-01-31T12:00 nor a while ago such as -1h", error)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1_000)
