"""Moments, as people give them."""

from __future__ import annotations

from gateway.commands.refusing import refuse


def read_moment(text: str) -> int:
    """Return a moment in ms since 1970."""
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        refuse(f"{text!r} is no moment such as 2026-01-31T12:00", error)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1_000)
