"""A journal of how many small things are now: compacted in steps as it grows, and written whole after a full disk."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from core.errors import DiskFullError
from core.record_journal import RecordJournal

LOGGER = logging.getLogger(__name__)

COMPACT_RATIO = 4  # a compaction is due when the journal is so many times what the last one left
Key = TypeVar("Key")


class KeptRecords(Generic[Key]):
    """Writes records of what changes, each before its owner changes it: a copy that is made first is of before.

    Args:
        journal: Where the records go.
        record_bytes: The size of one.
        compact_bytes_min: No compaction is due before the journal has so many bytes.
        what: What is written down, for the log.
        keys: Returns the keys of all things that have records.
        copy: Writes how the thing of a key is now, by `journal.append_compacted`; nothing where it is no more.
    """

    def __init__(
        self,
        journal: RecordJournal,
        *,
        record_bytes: int,
        compact_bytes_min: int,
        what: str,
        keys: Callable[[], Iterable[Key]],
        copy: Callable[[Key], None],
    ) -> None:
        self._journal = journal
        self._record_bytes = record_bytes
        self._compact_bytes_min = compact_bytes_min
        self._what = what
        self._keys = keys
        self._copy = copy
        self._uncopied: list[Key] = []  # what a compaction has still to copy
        self._is_copying = False
        self._is_behind = False
        self._compact_at = compact_bytes_min

    def append(self, records: bytes) -> None:
        """Append records, and take a step of a compaction where one is due.

        Raises:
            DiskFullError: There is no room; nothing is written.
        """
        self._compact_some()
        self._journal.append_many(records, self._record_bytes)

    def write(self, records: bytes) -> bool:
        """Append records; False where there is no room, which is told in the log, and all is written later."""
        if self._is_behind and not self.rewrite():
            return False
        try:
            self.append(records)
        except DiskFullError as error:
            self.fall_behind(error)
            return False
        return True

    def fall_behind(self, error: DiskFullError) -> None:
        """Take note that something could not be written: all of it is to be, before anything else."""
        if not self._is_behind:
            LOGGER.warning("cannot write down %s: %s", self._what, error)
        self._is_behind = True

    def rewrite(self) -> bool:
        """Write down everything as it is now; False where there is no room."""
        self._is_copying = False
        try:
            self._journal.begin_compaction()
            for key in self._keys():
                self._copy(key)
            self._finish()
        except DiskFullError as error:
            self.fall_behind(error)
            return False
        self._is_behind = False
        return True

    def _compact_some(self) -> None:
        if not self._is_copying and self._journal.bytes_used <= self._compact_at:
            return
        try:
            if not self._is_copying:
                self._journal.begin_compaction()
                self._is_copying = True
                self._uncopied = list(self._keys())
            if not self._journal.is_compacting:
                self._put_off()
            elif self._uncopied:
                self._copy(self._uncopied.pop())
            else:
                self._finish()
        except DiskFullError:
            self._put_off()

    def _finish(self) -> None:
        self._journal.finish_compaction()
        self._is_copying = False
        self._compact_at = max(self._compact_bytes_min, COMPACT_RATIO * self._journal.bytes_used)

    def _put_off(self) -> None:
        """Compact later: the disk is full."""
        self._is_copying = False
        self._compact_at = self._journal.bytes_used + self._compact_bytes_min
