"""Whether all of the log is there that was on disk before: by its files, its records and what is known beside it.

Reads only, and takes no lock. A reader in another process may call `check_log` beside a running gateway.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import NamedTuple

from core.message import StoredBatch
from core.store.confirmed import Confirmed
from core.store.layout import COMMIT_LOG_FOLDER, INDEX_FOLDER, NEXT_OFFSETS_FILE
from core.store.log_survey import SegmentFile, Stretch, find_missing, list_files
from core.store.mapped_file import MappedFile
from core.store.next_offsets import read_next_offsets
from core.store.record import BLANK, Buffer, fill_columns, find_sound, is_intact, record_size
from core.store.record_walk import fill_range

LOGGER = logging.getLogger(__name__)
_WALKED_COUNT = 1_024  # records looked at together: 76 KiB of columns


class LogEnd(NamedTuple):
    """Where the records of a segment end, and when the last of them was stored (0: there is none)."""

    position: int
    store_ms: int


class LogCheck(NamedTuple):
    """What was found of a log.

    `holes` are between its segments, in order. `losses` are what was on disk for certain: of the holes what is known to
    have been, and what is missing at the end. A hole that is no loss is what a power cut leaves of segments that no
    sync had covered yet. `known_end` is how far the log was on disk, -1 where nothing tells.
    """

    holes: list[Stretch]
    losses: list[Stretch]
    known_end: int


def check_log(data_dir: Path, known_end: int = -1) -> LogCheck:
    """Compare a log with what is known of it.

    Args:
        data_dir: The data folder.
        known_end: How far the log was on disk, for folders in which neither `confirmed` nor the indexes tell.

    Raises:
        DataFolderUnusableError: Segments lie over each other, or one cannot be opened.
    """
    found = find_known_end(data_dir)  # before the files are looked at: a running gateway goes on
    known_end = found if found >= 0 else known_end
    folder = data_dir / COMMIT_LOG_FOLDER
    files = list_files(folder) if folder.is_dir() else []
    holes = find_missing(files, 0)
    losses = [hole for hole in holes if hole.start < known_end or known_end < 0]
    return LogCheck(holes, losses + find_missing_end(files, known_end), known_end)


def find_known_end(data_dir: Path) -> int:
    """Return how far a log was on disk, or -1: as `confirmed` says, or where that says nothing as the indexes do."""
    confirmed = Confirmed.open(data_dir)
    known = confirmed.get() if confirmed is not None else None
    if known is not None:
        return known[0]
    if confirmed is not None and confirmed.is_damaged:
        LOGGER.warning("how far the log was on disk is taken from the indexes: damaged path=%s", confirmed.path)
    offsets = read_next_offsets(data_dir / INDEX_FOLDER / NEXT_OFFSETS_FILE)
    return offsets.log_position if offsets is not None else -1


def find_missing_end(files: list[SegmentFile], known_end: int) -> list[Stretch]:
    """Return what is missing after the last sound record of the last of `files`, where the log went to `known_end`."""
    if not files or not files[-1].size:
        return find_missing(files[-1:], known_end)
    newest = files[-1]
    if newest.base >= known_end:
        return []
    view = MappedFile.open(newest.path, is_writable=False).view
    position = find_log_end(view, newest.base, known_end - newest.base).position
    if record_size(view, position) == BLANK and known_end >= newest.end:
        return find_missing(files[-1:], known_end)
    end = newest.base + position
    return [Stretch(end, known_end, f"the log ends in segment {newest.path.name}")] if end < known_end else []


def find_log_end(view: Buffer, base: int, wanted: int) -> LogEnd:
    """Return where the sound records of a segment end; damaged ones between them are passed over.

    Where records lead to `wanted` by their sizes, and the last message of them is sound, the others are not looked
    into, and what comes after `wanted` may be left out.
    """
    wanted = min(wanted, len(view))
    walk = _Walk(view, base)
    walk.go(wanted, is_checked=False)
    if walk.position >= wanted and walk.is_last_sound():
        return LogEnd(walk.position, walk.store_ms)
    walk = _Walk(view, base)
    walk.go(len(view), is_checked=True)
    while record_size(view, walk.position) != BLANK:
        found = find_sound(walk.scratch, view, base, walk.position, len(view))
        if found < 0:
            break
        walk.position = found
        walk.go(len(view), is_checked=True)
    return LogEnd(walk.position, walk.store_ms)


class _Walk:
    """From record to record of a segment, as far as they follow one another."""

    def __init__(self, view: Buffer, base: int) -> None:
        self.position = 0
        self.store_ms = 0  # of the last message
        self.scratch = StoredBatch(1)
        self._last_at = 0
        self._view = view
        self._base = base
        self._batch = StoredBatch(_WALKED_COUNT)

    def go(self, limit: int, *, is_checked: bool) -> None:
        """Go on to `limit`, or to what is no record; `is_checked`: or not a sound one."""
        batch = self._batch
        before = -1
        while before < self.position < limit:
            before = self.position
            batch.clear()
            trusted_from = limit if is_checked else 0
            self.position = fill_range(batch, self._view, self._base, before, limit, trusted_from)
            if batch.count:
                self.store_ms = batch.store_ms[batch.count - 1]
                self._last_at = batch.record_start[batch.count - 1]

    def is_last_sound(self) -> bool:
        """Return whether the last message that was come past is what its checksum says."""
        is_record = fill_columns(self.scratch, 0, self._view, self._last_at, self._base)
        return is_record and is_intact(self.scratch, 0, self._view)
