"""Pages of the log in memory ahead of the writer, so that it does not wait for the kernel to find them."""

from __future__ import annotations

from core.store.commit_log import NEVER, CommitLog
from core.store.mapped_file import MappedFile
from core.store.segments import Segments

POPULATE_STEP = 256 << 10  # less than that is not worth a system call
POPULATED_MIN = 16 << 20  # made ready ahead of the writer: a burst's worth, and twice what it wrote since the last time
POPULATED_MAX = 64 << 20


class PagesAhead:
    """Makes the next segment, and has the pages that the writer will come to ready; `prepare` on one thread at a time.

    `is_wanted` is for the writer.
    """

    def __init__(self, segments: Segments, log: CommitLog) -> None:
        self._segments = segments
        self._log = log
        self._prepared_at = 0  # physical offset of the writer at the last `prepare`
        self._populated = 0  # physical offset up to which pages are ready

    def prepare(self, again_bytes: int = NEVER) -> None:
        """Go on from where the writer is now; nothing where it goes on to another segment meanwhile.

        Args:
            again_bytes: More is wanted when the writer has written so much, at the latest.

        Raises:
            DiskFullError: No room for the next segment.
        """
        base = self._log.base
        position = self._log.written_until() - base
        newest = self._segments.newest
        if newest is None or base != self._log.base or position > newest.size:
            return
        if 2 * position >= newest.size:
            self._segments.prepare()
        ahead = min(max(2 * (base + position - self._prepared_at), POPULATED_MIN), POPULATED_MAX)
        self._prepared_at = base + position
        self._populate(newest, base, position, position + ahead)
        self._log.prepare_at = base + position + min(ahead // 2, again_bytes)

    def is_wanted(self) -> bool:
        """Return whether the writer has come too near to the end of what is ready, once for each `prepare`."""
        if self._log.written_until() <= self._log.prepare_at:
            return False
        self._log.prepare_at = NEVER
        return True

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
