"""A read-only view of a data folder, beside a running gateway or without one: the log's records, range by range.

Takes no lock and writes nothing. It sees what is on disk for certain, and the segments that are there now. Retention
may delete one while it is read; its bytes stay readable here.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from core.errors import CorruptRecordError, DataFolderUnusableError
from core.message import StoredBatch
from core.properties import DISPATCH_SET, INNER_MULTI_DISPATCH, decode_properties
from core.reserved import DISPATCH_SET_TOPIC
from core.store.confirmed import Confirmed
from core.store.dispatch_set import decode_set
from core.store.layout import COMMIT_LOG_FOLDER, CRC_PROPERTY_BYTES, segment_paths
from core.store.log_scan import LogScan
from core.store.mapped_file import MappedFile
from core.store.record import fill_columns, is_intact
from core.store.record_codec import decode_record
from core.store.segments import first_store_ms

SETS_CACHED = 1_000


class SegmentInfo(NamedTuple):
    """One file of the log. Its records lie in [base, end); `size` is the room of the file."""

    base: int
    size: int
    end: int
    first_store_ms: int  # -1 where it holds no record
    last_store_ms: int  # no record of it was stored later


class StoreReader:
    """Reads the log of a data folder. Made by `open`; for one thread."""

    def __init__(self, data_dir: Path, confirmed: Confirmed | None) -> None:
        self.data_dir = data_dir
        self._folder = data_dir / COMMIT_LOG_FOLDER
        self._confirmed = confirmed
        self._base = -1
        self._file: MappedFile | None = None
        self._sets: dict[int, list[bytes]] = {}
        self._scratch = StoredBatch(1)
        self._scan = LogScan()

    @property
    def damaged_at(self) -> list[int]:
        """The physical offsets of records that `scan` passed over."""
        return self._scan.damaged_at

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
        """Return the segments that hold something, oldest first."""
        paths = [(base, path) for base, path in segment_paths(self._folder) if path.stat().st_size]
        if not paths:
            return []
        end, last_ms = self._end_of_log(paths[-1][0])
        infos: list[SegmentInfo] = []
        for base, path in reversed(paths):
            size = path.stat().st_size
            if base >= end:
                continue
            first_ms = first_store_ms(self._view(base))
            infos.append(SegmentInfo(base, size, min(end, base + size), first_ms, max(first_ms, last_ms)))
            last_ms = first_ms if first_ms >= 0 else last_ms
        return infos[::-1]

    def _end_of_log(self, newest_base: int) -> tuple[int, int]:
        known = self._confirmed.get() if self._confirmed is not None else None
        if known is not None:
            return known
        pos = 0
        scratch = self._scratch
        view = self._view(newest_base)
        last_ms = -1
        while fill_columns(scratch, 0, view, pos, newest_base) and is_intact(scratch, 0, view):
            pos = scratch.record_end[0]
            last_ms = scratch.store_ms[0]
        return newest_base + pos, last_ms

    def _view(self, base: int) -> memoryview:
        if self._file is None or base != self._base:
            paths = dict(segment_paths(self._folder))
            if base not in paths:
                raise CorruptRecordError(base, "no segment starts there")
            self._file = MappedFile.open(paths[base], is_writable=False)
            self._base = base
            self._sets.clear()
        return self._file.view

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
        return self._scan.fill(into, self._view(base), base, start, end)

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
        return self._read_set(batch, int(place)) if place.isdigit() else []

    def dispatch_count(self, batch: StoredBatch, i: int) -> int:
        """Return how many light queues message `i` of a scanned batch went to."""
        return len(self.dispatch_names(batch, i))

    def _read_set(self, batch: StoredBatch, physical_offset: int) -> list[bytes]:
        names = self._sets.get(physical_offset)
        if names is None:
            record = decode_record(batch.buf, physical_offset - self._base, self._base)
            if record.topic != DISPATCH_SET_TOPIC or len(record.properties) != CRC_PROPERTY_BYTES:
                raise CorruptRecordError(physical_offset, "not a dispatch set")
            names = decode_set(record.body)[0]
            if len(self._sets) >= SETS_CACHED:
                self._sets.clear()
            self._sets[physical_offset] = names
        return names

    def close(self) -> None:
        """Let go of the files."""
        self._file = None
        self._confirmed = None
