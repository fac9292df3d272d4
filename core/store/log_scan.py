"""Goes through the records of the log in the order that they were written, past what is damaged."""

from __future__ import annotations

from core.message import StoredBatch
from core.store.record import BLANK, find_sound, record_size
from core.store.record_walk import fill_range, find_way_on


class LogScan:
    """Fills batches with sound messages, checked; `damaged` are the stretches [start, end) that were passed over."""

    def __init__(self) -> None:
        self.damaged: list[tuple[int, int]] = []  # physical offsets
        self._scratch = StoredBatch(1)

    def fill(self, into: StoredBatch, view: memoryview, base: int, start: int, end: int) -> int:
        """Fill `into` with the sound messages that start in [start, end) of one segment.

        Args:
            into: Is cleared first.
            view: The segment.
            base: Its first physical offset.
            start: `base`, or what an earlier call returned: a physical offset where a record starts.
            end: Physical offset to stop at, at most the segment's end; what lies before it was written once.

        Returns:
            Where to go on: `end` or more when all are read. `into` may hold fewer messages than fit, also none.
        """
        into.clear()
        into.buf = view
        pos = start - base
        limit = min(end - base, len(view))
        while pos < limit and into.count < into.capacity:
            pos = fill_range(into, view, base, pos, limit, limit)
            if pos >= limit or into.count == into.capacity:
                break
            if record_size(view, pos) == BLANK:
                return max(end, base + pos)
            pos = self._pass_damage(view, base, pos, limit)
        return base + pos

    def _pass_damage(self, view: memoryview, base: int, pos: int, limit: int) -> int:
        """Return where the next sound record starts, `limit` or more where there is none."""
        way_on = find_way_on(view, base, pos)
        if way_on > pos:
            return way_on  # punched out since a reader was there, or while we read
        found = find_sound(self._scratch, view, base, pos, limit)
        end = found if found >= 0 else limit
        self.damaged.append((base + pos, base + end))
        return end
