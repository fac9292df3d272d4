"""Work in steps, for a caller that may only do a little of it at a time."""

from __future__ import annotations

from collections.abc import Iterator

_END = object()


def advance(work: Iterator[None] | None) -> Iterator[None] | None:
    """Do the next step of a piece of work, if there is any; return what goes on, or None where it ended."""
    return work if work is not None and next(work, _END) is not _END else None
