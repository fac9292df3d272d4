"""Which segments may go: whole ones, from the oldest, past their age or over the size, and needed by nobody."""

from __future__ import annotations

from core.store.segments import Segment, Segments, first_store_ms


def count_retired(segments: Segments, *, now_ms: int, age_ms: int, bytes_max: int | None, needed_from: int) -> int:
    """Return how many of the oldest segments may be dropped; the newest always stays.

    Args:
        segments: The log.
        now_ms: The time.
        age_ms: A segment may go when its last record is older.
        bytes_max: Segments may go until the log is no larger; None: as large as it gets.
        needed_from: What lies at this physical offset and after it stays.
    """
    total = segments.total_bytes
    count = 0
    for segment, after in zip(segments.segments, segments.segments[1:], strict=False):
        is_old = _ended_before(segments, after, now_ms - age_ms)
        is_too_much = bytes_max is not None and total > bytes_max
        if segment.end > needed_from or not (is_old or is_too_much):
            break
        total -= segment.disk_bytes
        count += 1
    return count


def _ended_before(segments: Segments, after: Segment, at_ms: int) -> bool:
    """Return whether the segment before `after` holds nothing younger than `at_ms`: what follows it began before."""
    view = segments.view(after.base)
    if view is None:
        return False
    store_ms = first_store_ms(view)
    return 0 <= store_ms < at_ms
