"""Numbers by the span."""

from __future__ import annotations

from collections.abc import Iterator


def walk_spans(count: int, size: int, *, reverse: bool) -> Iterator[tuple[int, int]]:
    """Give numbers from 0 to before `count` as spans of `size`, from the end with `reverse`."""
    starts = range(0, count, size)
    for start in reversed(starts) if reverse else starts:
        yield start, min(start + size, count)
