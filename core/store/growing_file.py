"""One file mapped whole, shared and writable, that grows; a store into it outlives a killed process."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

from core.store.disk import allocate, sync_file

STEP_BYTES = 65_536  # few calls while a file grows, and little room lost for a small one
_STEP_MAX = 16 << 20  # so that a large file does not ask for half its size again


class GrowingFile:
    """The mapped file. Its size is a multiple of 64 KiB, and all of it has blocks on disk.

    Growing replaces `map`: users take their views anew.
    """

    def __init__(self, path: Path, size_min: int = STEP_BYTES) -> None:
        """Open the file, or make it; it gets at least `size_min` bytes.

        Raises:
            DiskFullError: No room.
        """
        self.path = path
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            before = os.fstat(self.fd).st_size
            self.size = -(-max(size_min, before, 1) // STEP_BYTES) * STEP_BYTES
            allocate(self.fd, path, before, self.size)
            self.map = mmap.mmap(self.fd, self.size)
        except BaseException:
            os.close(self.fd)
            raise

    def grow(self, size_min: int) -> None:
        """Make the file at least `size_min` bytes, and some steps more the larger it is.

        Raises:
            DiskFullError: No room; nothing has changed.
        """
        step = min(max(self.size // 2, STEP_BYTES), _STEP_MAX)
        size = -(-max(size_min, self.size + step) // STEP_BYTES) * STEP_BYTES
        allocate(self.fd, self.path, self.size, size)
        self.map = mmap.mmap(self.fd, size)
        self.size = size

    def sync(self) -> None:
        """Force everything stored before the call to disk.

        Raises:
            FlushFailedError: The disk refused.
        """
        sync_file(self.fd)

    def close(self) -> None:
        """Let go of the file; the mapping lives as long as its last view."""
        os.close(self.fd)
