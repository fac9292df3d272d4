"""A read-only view of a data folder, beside a running gateway or without one: the log's records, range by range.

Takes no lock and writes nothing. It sees what is on disk for certain, and the segments that are there now. Retention
may delete one while it is read; its bytes stay readable here.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from core.errors import CorruptRecordError, DataFolderUnusableError
from core.message import StoredBatch
from core.properties import DISPATCH_SET, INNER_MULTI_DISPATCH, decode_properties
from core.reserved import DISPATCH_SET_TOPIC
from core.store.confirmed import Confirmed
from core.store.dispatch_set import decode_set
from core.store.indexed_names import names_by_index
from core.store.layout import COMMIT_LOG_FOLDER, CRC_PROPERTY_BYTES, segment_paths
from core.store.log_scan import LogScan
from core.store.log_survey import (
    LOST_SET,
    RECORD,
    RESTORED_SET,
    SegmentFile,
    Stretch,
    find_missing,
    list_files,
)
from core.store.mapped_file import MappedFile
from core.store.record import Buffer, find_sound, record_size
from core.store.record_codec import decode_record
from core.store.record_starts import cut_segment
from core.store.segments import first_store_ms
from core.store.set_copies import DAMAGE, walk
from core.store.set_rescue import SetRescue

SETS_CACHED = 1_000  # lists of names: of a thousand names each some 70 MB
SEGMENTS_AROUND = 2  # on either side, in which copies of a damaged dispatch set are looked for


class SegmentInfo(NamedTuple):
    """One file of the log. Its records lie in [base, end); `size` is the room of the file."""

    base: int
    size: int
    end: int
    first_store_ms: int  # -1 where it holds no record
    last_store_ms: int  # no record of it was stored later


class LogSurvey(NamedTuple):
    """The segments that hold something, oldest first, and what is missing between and after them."""

    segments: list[SegmentInfo]
    missing: list[Stretch]


class StoreReader:
    """Reads the log of a data folder. Made by `open`; for one thread.

    `damaged` are stretches that `scan` passed over: records, and dispatch sets, which cost no message.
    """

    def __init__(self, data_dir: Path, confirmed: Confirmed | None) -> None:
        self.data_dir = data_dir
        self.damaged: list[Stretch] = []
        self._folder = data_dir / COMMIT_LOG_FOLDER
        self._confirmed = confirmed
        self._base = -1
        self._file: MappedFile | None = None
        self._rescue: SetRescue | None = None
        self._sets: dict[int, list[bytes] | None] = {}  # None: nobody knows
        self._scratch = StoredBatch(1)
        self._scan = LogScan()

    @classmethod
    def open(cls, data_dir: Path | str) -> StoreReader:
        """Open a data folder for reading.

        Raises:
            DataFolderUnusableError: It holds no commit log.
        """
        data_dir = Path(data_dir)
        if not (data_dir / COMMIT_LOG_FOLDER).is_dir():
            raise DataFolderUnusableError(str(data_dir), "it holds no commit log")
        return cls(data_dir, Confirmed.open(data_dir))

    def segments(self) -> list[SegmentInfo]:
        """Return the segments that hold something, oldest first; see `survey`."""
        return self.survey().segments

    def survey(self) -> LogSurvey:
        """Return what there is of the log, up to what is on disk for certain, and what is missing of it.

        Raises:
            DataFolderUnusableError: Two segments hold the same positions.
        """
        known = self._confirmed.get() if self._confirmed is not None else None  # before the files: the log goes on
        files = list_files(self._folder)
        missing = find_missing(files, known[0] if known is not None else 0)
        files = [file for file in files if file.size]
        if not files:
            return LogSurvey([], missing)
        end, last_ms = known if known is not None else self._find_end(files[-1].base)
        infos: list[SegmentInfo] = []
        for file in reversed(files):
            if file.base < end:
                first_ms = first_store_ms(self._view(file.base))
                infos.append(SegmentInfo(file.base, file.size, min(end, file.end), first_ms, max(first_ms, last_ms)))
                last_ms = first_ms if first_ms >= 0 else last_ms
        return LogSurvey(infos[::-1], missing)

    def _find_end(self, newest_base: int) -> tuple[int, int]:
        """Return where the last sound record of a segment ends, and when it was stored."""
        scratch = self._scratch
        end, last_ms = 0, -1
        for position in walk(scratch, self._view(newest_base), newest_base, 0):
            if position != DAMAGE:
                end, last_ms = scratch.record_end[0], scratch.store_ms[0]
        return newest_base + end, last_ms

    def cut(self, base: int, end: int, count: int) -> list[int]:
        """Return up to `count` - 1 physical offsets in (base, end), ascending, where records start: equal parts."""
        return [base + at for at in cut_segment(self.data_dir, self._view(base), base, end - base, count)]

    def _view(self, base: int) -> memoryview:
        if self._file is None or base != self._base:
            paths = dict(segment_paths(self._folder))
            if base not in paths:
                raise CorruptRecordError(base, "no segment starts there")
            self._file = MappedFile.open(paths[base], is_writable=False)
            self._base = base
            self._rescue = SetRescue(self._file.view, base, self)
            self._sets.clear()
        return self._file.view

    def others(self) -> Iterator[tuple[int, Buffer]]:
        """Give the segments before and after the one that is read, the nearest first; for its rescue."""
        files = sorted(list_files(self._folder), key=self._distance)
        for file in files[: 2 * SEGMENTS_AROUND + 1]:
            if file.base != self._base and file.size:
                yield file.base, MappedFile.open(file.path, is_writable=False).view

    def _distance(self, file: SegmentFile) -> int:
        return abs(file.base - self._base)

    def later(self) -> Iterator[tuple[int, Buffer]]:
        """Give the segments after the one that is read, in their order; for its rescue."""
        for file in list_files(self._folder):
            if file.base > self._base and file.size:
                yield file.base, MappedFile.open(file.path, is_writable=False).view

    def stood(self, _names: list[bytes]) -> array[int] | None:
        """Say that it is not known where queues stood; for the rescue."""
        return None

    def scan(self, base: int, start: int, end: int, into: StoredBatch) -> int:
        """Fill `into` with the sound records that start in [start, end) of one segment.

        Args:
            base: The segment's first physical offset.
            start: `base`, or what an earlier call returned: a physical offset where a record starts.
            end: Physical offset to stop at, at most the segment's `end`.
            into: Is cleared first; its buffer stays good until the next call.

        Returns:
            Where to go on: `end` or more when all are read. `into` may hold fewer records than fit, also none.
        """
        view = self._view(base)
        before = len(self._scan.damaged)
        position = self._scan.fill(into, view, base, start, end)
        for found in self._scan.damaged[before:]:
            self._note_damage(view, *found)
        return position

    def _note_damage(self, view: memoryview, start: int, end: int) -> None:
        """Tell the damage of a dispatch set, which holds no message, from that of records."""
        assert self._rescue is not None
        position = start - self._base
        restored = self._rescue.restore(position, end - self._base)
        if restored is not None:
            self._sets[start] = restored.names
            self.damaged.append(Stretch(start, start + restored.size, RESTORED_SET))
            start += restored.size
        elif self._rescue.is_named(position) and record_size(view, position) == end - start:
            self.damaged.append(Stretch(start, end, LOST_SET))
            return
        if start < end:
            self.damaged.append(Stretch(start, end, RECORD))

    def dispatch_names(self, batch: StoredBatch, i: int) -> list[bytes]:
        """Return the light queues that message `i` of a scanned batch went to; empty where it went to none.

        Raises:
            CorruptRecordError: They are in a dispatch set whose record is damaged.
        """
        properties = decode_properties(batch.buf[batch.properties_start[i] : batch.properties_end[i]])
        inline = properties.get(INNER_MULTI_DISPATCH)
        if inline:
            return list(dict.fromkeys(inline.split(b",")))
        place = properties.get(DISPATCH_SET, b"")
        return self._names_of_set(batch, int(place), batch.record_start[i]) if place.isdigit() else []

    def dispatch_count(self, batch: StoredBatch, i: int) -> int:
        """Return how many light queues message `i` of a scanned batch went to."""
        return len(self.dispatch_names(batch, i))

    def _names_of_set(self, batch: StoredBatch, place: int, position: int) -> list[bytes]:
        """Return the names of the set at `place`, which the message at `position` names."""
        if place not in self._sets:
            if len(self._sets) >= SETS_CACHED:
                self._sets.clear()
            self._sets[place] = self._read_set(batch, place) or self._find_set(batch, place, position)
        names = self._sets[place]
        if names is None:
            raise CorruptRecordError(place, "a damaged dispatch set, whose queues nothing tells")
        return names

    def _read_set(self, batch: StoredBatch, place: int) -> list[bytes] | None:
        try:
            record = decode_record(batch.buf, place - self._base, self._base)
            if record.topic == DISPATCH_SET_TOPIC and len(record.properties) == CRC_PROPERTY_BYTES:
                return decode_set(record.body)[0]
        except CorruptRecordError:
            pass
        return None

    def _find_set(self, batch: StoredBatch, place: int, position: int) -> list[bytes] | None:
        """Return what a damaged set held, as far as the log or the index of the segment tells."""
        assert self._rescue is not None
        start = place - self._base
        if 0 <= start < len(batch.buf):
            end = find_sound(self._scratch, batch.buf, self._base, start, len(batch.buf))
            restored = self._rescue.restore(start, end) if end >= 0 else None
            if restored is not None:
                return restored.names
        return names_by_index(self.data_dir, self._base, position) or None

    def close(self) -> None:
        """Let go of the files."""
        self._file = None
        self._confirmed = None
