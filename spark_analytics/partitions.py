"""How a log is cut into parts that are read side by side. Needs no Spark.

A part is one segment up to what was confirmed when the read was planned: only the start of a segment is a boundary
that nobody can forge, since a body may hold bytes that look like a record.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from core.store.reader import SegmentInfo


@dataclass(frozen=True)
class LogRange:
    """Physical offsets [start, end) inside the segment at `base`."""

    base: int
    start: int
    end: int


def plan_ranges(segments: Iterable[SegmentInfo], starting_ms: int | None, ending_ms: int | None) -> list[LogRange]:
    """Return one range for each segment that may hold a record stored in [starting_ms, ending_ms)."""
    return [
        LogRange(segment.base, segment.base, segment.end)
        for segment in segments
        if segment.end > segment.base
        and (starting_ms is None or segment.last_store_ms >= starting_ms)
        and (ending_ms is None or segment.first_store_ms < ending_ms)
    ]
