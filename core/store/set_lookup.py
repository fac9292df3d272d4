"""Where a damaged dispatch set is looked for when a segment is indexed: the segments around it, and their indexes."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from core.store.dispatcher import Dispatcher
from core.store.queue_index import IndexPart
from core.store.segments import Segment, Segments

SEGMENTS_AROUND = 4  # on either side of the damage: reading more takes longer than it is worth


class SetLookup:
    """The surroundings of the segment `base`.

    Args:
        dispatcher: Indexes the segment, and is as far as the damage.
        base: The segment's first physical offset.
        segments: All segments.
        parts: The indexes of those before it.
    """

    def __init__(self, dispatcher: Dispatcher, base: int, segments: Segments, parts: Sequence[IndexPart]) -> None:
        self._dispatcher = dispatcher
        self._base = base
        self._segments = segments
        self._parts = parts

    def others(self) -> Iterator[tuple[int, memoryview]]:
        """Give other segments that may hold copies of a set, the nearest first."""
        segments = self._segments.segments
        at = bisect_left(segments, self._base, key=lambda segment: segment.base)
        for step in range(1, SEGMENTS_AROUND + 1):
            for number in (at - step, at + step):
                if 0 <= number < len(segments):
                    yield from self._view(segments[number])

    def later(self) -> Iterator[tuple[int, memoryview]]:
        """Give the segments after this one, in their order."""
        for segment in self._segments.segments:
            if segment.base > self._base:
                yield from self._view(segment)

    def _view(self, segment: Segment) -> Iterator[tuple[int, memoryview]]:
        view = self._segments.view(segment.base)
        if view is not None:
            yield segment.base, view

    def stood(self, names: list[bytes]) -> array[int] | None:
        """Return where queues stand now, 0 for those of which nothing came; None where one is in doubt."""
        offsets = self._dispatcher.offsets_of(names)
        if offsets is not None:
            for number, offset in enumerate(offsets):
                if not offset:
                    offsets[number] = self._end_before(names[number])
        return offsets

    def _end_before(self, name: bytes) -> int:
        """Return where a queue ended in the last part that has it, or 0."""
        ref = self._dispatcher.names.find(name)
        for part in reversed(self._parts if ref >= 0 else ()):
            found = part.find(ref)
            if found is not None:
                return found[0] + found[1]
        return 0
