"""How far the log is on disk, told to readers in other processes: one small mapped file."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

from core.errors import DataFolderUnusableError
from core.store.layout import CONFIRMED_FILE
from core.store.mapped_file import MappedFile
from core.store.sync_plan import SyncPlan

FILE_BYTES = 4096  # a page, the least that can be mapped
_FIELDS = struct.Struct(">qqI")  # end of the log, store time of its last record, CRC over both
_CHECKED_BYTES = 16  # what the CRC is over: the first two fields
_TRIES = 1_000  # a reader may see a half-written value; the writer needs nanoseconds to complete it


class Confirmed:
    """The file `confirmed`: written by the store after each flush, read by anybody."""

    def __init__(self, file: MappedFile) -> None:
        self._file = file
        self._is_dirty = True

    @classmethod
    def create(cls, data_dir: Path) -> Confirmed:
        """Open the file for writing, or make it."""
        path = data_dir / CONFIRMED_FILE
        if path.exists() and path.stat().st_size == FILE_BYTES:
            return cls(MappedFile.open(path, is_writable=True))
        return cls(MappedFile.create(path, FILE_BYTES))

    @classmethod
    def open(cls, data_dir: Path) -> Confirmed | None:
        """Open the file for reading; None where there is none, or one of another size."""
        try:
            file = MappedFile.open(data_dir / CONFIRMED_FILE, is_writable=False)
        except DataFolderUnusableError:
            return None
        return cls(file) if file.size == FILE_BYTES else None

    def set(self, end: int, store_ms: int) -> None:
        """Say that the log is on disk up to `end`, where the last record has that store time."""
        checked = struct.pack(">qq", end, store_ms)
        self._file.view[: _FIELDS.size] = checked + zlib.crc32(checked).to_bytes(4, "big")
        self._is_dirty = True

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    @property
    def is_damaged(self) -> bool:
        """Whether the file says something that is not sound; one that was never set says nothing."""
        return self.get() is None and any(self._file.view[: _FIELDS.size])

    def begin_sync(self, plan: SyncPlan) -> None:
        """Add to `plan` what forces what was set last to disk: never more than the flush before it covered."""
        if self._is_dirty:
            self._is_dirty = False
            plan.add_file(self._file.fd, self)

    def sync_failed(self) -> None:
        """Let the next plan cover it again."""
        self._is_dirty = True

    def get(self) -> tuple[int, int] | None:
        """Return the end of the log and the store time of its last record; None where the file does not say."""
        for _ in range(_TRIES):
            data = bytes(self._file.view[: _FIELDS.size])
            end, store_ms, crc = _FIELDS.unpack(data)
            if crc == zlib.crc32(data[:_CHECKED_BYTES]):
                return end, store_ms
        return None
