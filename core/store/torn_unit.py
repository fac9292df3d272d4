"""A unit of the log, all records of a commit, that a crash left a part of: the log ends before it.

The records of a unit are appended in one turn, and a flush begins between turns. So one that is not whole lies behind
what was on disk for certain, and nothing that lies behind it was said to be safe: it is as if all that had not been
written.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from core.message import FLAG_MARK, FLAG_MARK_MASK, FLAG_QOS_MASK, StoredBatch
from core.store.disk import sync_file, sync_folder
from core.store.gap import make_blank
from core.store.layout import KEYS_FOLDER, UNIT_BEGINS, UNIT_ENDS, UNIT_GOES_ON, UNIT_SHIFT, segment_name
from core.store.mapped_file import MappedFile
from core.store.record import BLANK, find_sound, record_size
from core.store.record_walk import fill_range
from core.store.recovery import cut_tail
from core.store.segments import Segment, Segments

LOGGER = logging.getLogger(__name__)
_WALKED_COUNT = 1_024  # records looked at together: 76 KiB of columns
_PART_MASK = 0xFFFF
_EXACT_MASK = FLAG_MARK_MASK | FLAG_QOS_MASK
_EXACT = FLAG_MARK | 2  # such records have a packet identifier in the upper half of sysFlag


def part_of(batch: StoredBatch, i: int) -> int:
    """Return which part of a unit a record is, 0: of none."""
    if batch.flag[i] & _EXACT_MASK == _EXACT:
        return 0
    return batch.sys_flag[i] >> UNIT_SHIFT & _PART_MASK


class _Walk:
    """Goes from message to message; all places are physical offsets, -1 where there is none.

    Args:
        minds_damage: Whether a crash made the damage that is met: not where that may have been on disk before.
    """

    def __init__(self, *, minds_damage: bool) -> None:
        self._minds_damage = minds_damage
        self.is_closed = False  # the last segment, which has no room behind its records
        self.torn_at = -1  # where the first unit begins that is not whole
        self._begun_at = -1  # ... that is not at its end yet
        self._damaged_at = -1  # what comes next stands behind damage that begins here
        self._batch = StoredBatch(_WALKED_COUNT)
        self._scratch = StoredBatch(1)

    def go(self, segment: Segment, start: int) -> None:
        """Go through the records of a segment from `start` on, in it."""
        file = MappedFile.open(segment.path, is_writable=False)
        view, base, batch = file.view, segment.base, self._batch
        ranges = file.data_ranges(0)
        data_end = ranges[-1][1] if ranges else 0
        pos = start - base
        self.is_closed = False
        while pos < len(view):
            before = pos
            batch.clear()
            pos = fill_range(batch, view, base, pos, len(view), len(view))
            self._take_batch()
            if pos > before:
                continue
            self.is_closed = record_size(view, pos) == BLANK
            if self.is_closed:
                return
            found = find_sound(self._scratch, view, base, pos, data_end)
            self.note_damage(base + pos)
            if found < 0:
                return
            pos = found

    def note_damage(self, at: int) -> None:
        """From `at` on something is missing, or the log ends."""
        self._damaged_at = at if self._damaged_at < 0 else self._damaged_at

    def finish(self) -> int:
        """The log ends here; return where it should, -1: here."""
        return self.torn_at if self.torn_at >= 0 else self._begun_at

    def _take_batch(self) -> None:
        batch = self._batch
        for i in range(batch.count):
            self._take(part_of(batch, i), batch.physical_offset[i])

    def _take(self, part: int, at: int) -> None:
        damaged_at, self._damaged_at = self._damaged_at, -1
        is_behind_begin = part in {UNIT_GOES_ON, UNIT_ENDS}
        if damaged_at >= 0 and self._minds_damage and (self._begun_at >= 0 or is_behind_begin):
            at = self._begun_at if self._begun_at >= 0 else damaged_at
            self.torn_at = at if self.torn_at < 0 else self.torn_at
        elif part == UNIT_BEGINS or (part == UNIT_GOES_ON and self._begun_at < 0):
            self._begun_at = at
        elif part != UNIT_GOES_ON:
            self._begun_at = -1


def cut_torn_unit(segments: Segments, data_dir: Path, known_end: int) -> int:
    """End the log before the first unit of which a crash left a part.

    Args:
        segments: The log, of which nothing that was on disk for certain is missing.
        data_dir: The data folder.
        known_end: So far it was on disk, -1 where nothing tells: then the newest segment is looked at, and cut only
            where the log ends in a unit. Behind damage in it may be what was said to be safe.

    Returns:
        The physical offset that the log ends at now, -1 where nothing was cut.

    Raises:
        FlushFailedError: The disk refused.
        OSError, DataFolderUnusableError: A file cannot be opened or written.
    """
    if not segments.segments:
        return -1
    start = known_end if known_end >= 0 else segments.newest_base
    walk = _Walk(minds_damage=known_end >= 0)
    end = -1
    for segment in segments.segments:
        if segment.end <= start:
            continue
        if end not in {-1, segment.base}:
            walk.note_damage(end)
        end = segment.end
        walk.go(segment, max(start, segment.base))
    at = walk.finish()
    if at >= 0:
        LOGGER.warning("a commit that was not written whole is cut off the log physical_offset=%d", at)
        _cut(segments, data_dir, at, is_closed=walk.is_closed)
    return at


def _cut(segments: Segments, data_dir: Path, at: int, *, is_closed: bool) -> None:
    """End the log at `at`. Done again after it was broken off, it does what is left: the last segment goes first."""
    while len(segments.segments) > 1 and segments.segments[-1].base >= at:
        segment = segments.segments.pop()
        _delete_keys(data_dir, segment)
        segment.path.unlink()
        sync_folder(segments.folder)
        is_closed = True
    segment = segments.segments[-1]
    _delete_keys(data_dir, segment)
    position = max(at - segment.base, 0)
    if position >= segment.size:  # it is whole: what came after it was torn from its beginning
        return
    file = MappedFile.open(segment.path, is_writable=True)
    if is_closed:  # its room may have been given back
        position, blank = make_blank(position, segment.size)
        os.pwrite(file.fd, blank, position)
        position += len(blank)
    cut_tail(file, position)
    sync_file(file.fd)


def _delete_keys(data_dir: Path, segment: Segment) -> None:
    """Delete the file of keys, which may know more than is left."""
    (data_dir / KEYS_FOLDER / segment_name(segment.base)).unlink(missing_ok=True)
