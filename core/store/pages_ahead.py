"""Pages of the log in memory ahead of the writer, so that it does not wait for the kernel to find them."""

from __future__ import annotations

from core.errors import DiskFullError
from core.store.commit_log import NEVER, CommitLog
from core.store.mapped_file import MappedFile
from core.store.segments import Segments

POPULATE_STEP = 256 << 10  # less than that is not worth a system call
POPULATED_MIN = 16 << 20  # made ready ahead of the writer: a burst's worth, and twice what it wrote since the last time
POPULATED_MAX = 64 << 20  # memory that may be made ready and not be written yet
LATE_SHIFT = 3  # the second half of a segment is begun and the next is missing: wanted again each eighth


class PagesAhead:
    """Makes the next segment, and has the pages that the writer will come to ready; `prepare` on one thread at a time.

    `is_wanted` is for the writer.
    """

    def __init__(self, segments: Segments, log: CommitLog) -> None:
        self._segments = segments
        self._log = log
        self._prepared_at = 0  # physical offset of the writer at the last `prepare`
        self._populated = 0  # physical offset up to which pages are ready
        self._again_bytes = NEVER  # as the last `prepare` was told

    def prepare(self, again_bytes: int = NEVER) -> None:
        """Go on from where the writer is now; nothing where it goes on to another segment meanwhile.

        Args:
            again_bytes: More is wanted when the writer has written so much, at the latest.

        Raises:
            DiskFullError: No room for the next segment.
        """
        self._again_bytes = again_bytes
        base = self._log.base
        position = self._log.written_until() - base
        newest = self._segments.newest
        if newest is None and self._segments.lacks_room():
            raise DiskFullError(str(self._segments.folder))
        if newest is None or base != self._log.base or position > newest.size:
            return
        if 2 * position >= newest.size:
            self._segments.prepare()
        ahead = min(max(2 * (base + position - self._prepared_at), POPULATED_MIN), POPULATED_MAX)
        self._prepared_at = base + position
        self._populate(newest, base, position, position + ahead)
        self._log.prepare_at = min(self._due_at(base, position, newest.size), base + position + ahead // 2)

    def is_wanted(self) -> bool:
        """Return whether the writer has come to where a step is due, and again further on while none is done.

        It is due near the end of what is ready, at the half of each segment, and when `prepare` was told.
        """
        written = self._log.written_until()
        newest = self._segments.newest
        if written <= self._log.prepare_at or newest is None:
            return False
        base = self._log.base
        self._log.prepare_at = self._due_at(base, written - base, newest.size)
        return True

    def lacks_room(self) -> bool:
        """Return whether the next segment is to be made, and finds no room; any thread may ask."""
        newest = self._segments.newest
        is_due = newest is None or 2 * (self._log.written_until() - self._log.base) >= newest.size
        return is_due and self._segments.lacks_room()

    def _due_at(self, base: int, position: int, size: int) -> int:
        """Return where the next step is due, at the latest, whatever is ready."""
        if 2 * position < size:
            due = size // 2
        elif self._segments.is_prepared:
            due = size + self._segments.segment_bytes // 2
        else:
            due = position + (size >> LATE_SHIFT)
        return base + min(due, position + self._again_bytes)

    def _populate(self, newest: MappedFile, base: int, position: int, end: int) -> None:
        """Have the pages of the log up to `end` ready, also those of the next segment; what is ready costs nothing."""
        start = max(self._populated - base, position)
        if end - start < POPULATE_STEP:
            return
        if start < newest.size:
            newest.populate(start, min(end, newest.size))
        if end > newest.size and not self._segments.populate_next(max(start - newest.size, 0), end - newest.size):
            end = newest.size
        self._populated = base + end
