"""Group commit, as a plan: what a flush covers is fixed at its start, what it waits for happens off the loop.

A killed process leaves everything that it wrote to mapped files: log, places, journals. Its tables are as the last
flush left them, under `flush = async` an interval ago. Those that follow from the log are brought up to it at the
start; whoever changes others waits for the flush in either mode.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from core.errors import FlushFailedError
from core.store.commit_log import CommitLog
from core.store.confirmed import Confirmed
from core.store.mapped_file import MappedFile
from core.store.segments import Segments
from core.store.table import Definitions


class Syncable(Protocol):
    """A file with `sync`: places, journals, names."""

    def sync(self) -> None:
        """Force what was stored before the call to disk."""


class Flusher:
    """Forces the log, places, journals and definitions to disk together; one flush at a time."""

    def __init__(self, log: CommitLog, segments: Segments, definitions: Definitions, confirmed: Confirmed) -> None:
        self._log = log
        self._segments = segments
        self._definitions = definitions
        self._confirmed = confirmed
        self._is_folder_synced = False
        self.flushed_until = -1  # nothing is known before the first flush

    def flush(self, others: Iterable[Syncable]) -> int:
        """Force all that was written before the call to disk; return the end of the log that is safe now.

        May run on another thread while the owner appends: what the loop changes is read here in single steps.

        Raises:
            FlushFailedError: The disk refused; nothing after `flushed_until` may be promised.
            DiskFullError: No room for definitions.
        """
        snapshot = self._definitions.begin_commit()
        until = self._log.written_until()
        store_ms = self._log.store_ms
        newest = self._segments.newest  # before the full ones: a roll in between adds it to them
        full = self._segments.unsynced
        self._segments.unsynced = []
        if until > self.flushed_until:
            self._sync_log(full, newest)
        for other in others:
            other.sync()
        self._definitions.commit(snapshot)
        if until > self.flushed_until:
            self._confirmed.set(until, store_ms)
            self.flushed_until = until
        return until

    def _sync_log(self, full: list[MappedFile], newest: MappedFile | None) -> None:
        try:
            for file in full:
                file.sync()
            if newest is not None:
                newest.sync()
            if full or not self._is_folder_synced:  # the log has another file since
                self._segments.sync_folder()
                self._is_folder_synced = True
        except OSError as error:
            raise FlushFailedError(error.strerror or str(error)) from error
