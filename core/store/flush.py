"""Group commit, as a plan: what a flush covers is fixed at its start, what it waits for happens off the loop.

A killed process leaves everything that it wrote to mapped files: log, places, journals. Its tables are as the last
flush left them, under `flush = async` an interval ago. Those that follow from the log are brought up to it at the
start; a change of any other waits for the flush in either mode.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from core.errors import FlushFailedError, LmqError
from core.store.commit_log import CommitLog
from core.store.confirmed import Confirmed
from core.store.disk import sync_folder
from core.store.mapped_file import MappedFile
from core.store.segments import Segments
from core.store.sync_plan import FDS_MAX, Syncable, SyncPlan
from core.store.table import Definitions


class Flush(SyncPlan):
    """One flush: its plan, and what is safe once that is done."""

    def __init__(self, until: int, store_ms: int, fds_max: int = FDS_MAX) -> None:
        super().__init__(fds_max)
        self.until = until
        self.store_ms = store_ms
        self.full: list[MappedFile] = []  # segments that are full since the flush before


class Flusher:
    """Forces the log, journals, places and definitions to disk together; one flush at a time.

    `begin`, `end` and `fail` are the owner's. In between another thread does what the plan says; the owner goes on.
    """

    def __init__(self, log: CommitLog, segments: Segments, definitions: Definitions, confirmed: Confirmed) -> None:
        self._log = log
        self._segments = segments
        self._definitions = definitions
        self._confirmed = confirmed
        self._named: MappedFile | None = None  # the newest segment when the log's folder was synced last
        self._flush = Flush(0, 0)  # the one under way, or the last
        self.is_refused = False  # once the disk refused a sync: what it says of later ones proves nothing
        self.flushed_until = -1  # nothing is known before the first flush

    def begin(self, others: Iterable[Syncable] | None, fds_max: int = FDS_MAX) -> Flush:
        """Return what forces all that was written so far to disk; the log alone where there are no `others`."""
        flush = self._flush = Flush(self._log.written_until(), self._log.store_ms, fds_max)
        # The log before all else, the tables last: a power cut between two syncs leaves messages that are delivered
        # again, since nothing says yet that they were taken, and no table that knows of messages which are not there.
        if flush.until > self.flushed_until:
            self._plan_log(flush)
        if others is None:
            return flush
        for other in others:
            other.begin_sync(flush)
        self._confirmed.begin_sync(flush)
        snapshot = self._definitions.begin_commit()
        if not snapshot.is_done:
            flush.add_step(partial(self._definitions.commit_in_slices, snapshot))
        return flush

    def _plan_log(self, flush: Flush) -> None:
        segments = self._segments
        flush.full, segments.unsynced = segments.unsynced, []
        for file in flush.full:
            flush.add_file(file.fd)
        if segments.newest is not None:
            flush.add_file(segments.newest.fd)
        if segments.newest is not self._named:  # the log has another file since
            flush.add_step(partial(sync_folder, segments.folder))
            self._named = segments.newest

    def end(self) -> int:
        """Say that all of it is done; return the end of the log that is safe now."""
        flush = self._flush
        flush.end()
        self._log.note_sync()
        if flush.until > self.flushed_until:
            self._confirmed.set(flush.until, flush.store_ms)
            self.flushed_until = flush.until
        return flush.until

    def fail(self, *, is_refused: bool) -> None:
        """Say that it was not done, or not all of it: the next one covers the same again.

        Args:
            is_refused: The disk refused a sync.
        """
        flush = self._flush
        flush.fail()
        self._segments.unsynced = flush.full + self._segments.unsynced
        self._named = None
        self.is_refused |= is_refused

    def flush(self, others: Iterable[Syncable]) -> int:
        """Force all that was written so far to disk, here and now; return the end of the log that is safe.

        Raises:
            FlushFailedError: The disk refused; nothing after `flushed_until` may be promised.
            DiskFullError: No room for definitions.
        """
        flush = self.begin(others)
        try:
            flush.run()
        except LmqError as error:
            self.fail(is_refused=isinstance(error, FlushFailedError))
            raise
        return self.end()
