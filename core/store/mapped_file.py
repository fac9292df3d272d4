"""One memory-mapped file, the whole of it, shared with every other process that maps it."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import weakref
from pathlib import Path

from core.errors import DataFolderUnusableError, DiskFullError
from core.store.disk import free_bytes
from core.store.layout import PAGE_BYTES

MADV_POPULATE_READ = 22  # Linux 5.14 and later: fault pages in, without a trap for each
FALLOC_PUNCH_HOLE = 0x02 | 0x01  # and keep the size
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_HOLES = (errno.EOPNOTSUPP, errno.ENOSYS)
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
_LIBC.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_LIBC.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_MAP_FAILED = ctypes.c_void_p(-1).value
_MEMORY = ctypes.c_char * (1 << 46)  # the type of any mapping, which ends before: a type for each size would be kept


def map_read_only(fd: int, size: int) -> memoryview:
    """Return the first `size` bytes of a file, shared; the mapping goes with the last view of it.

    Python's own mapping keeps a descriptor open as long as it lives. There is an index for each segment of the log, and
    no end to those: they are not to take the descriptors that connections need.

    Raises:
        OSError: It cannot be mapped.
    """
    address = _LIBC.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
    if address == _MAP_FAILED:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    memory = _MEMORY.from_address(address)
    weakref.finalize(memory, _LIBC.munmap, address, size).atexit = False  # a view that is left then may still be read
    return memoryview(memory).cast("B")[:size].toreadonly()


def disk_bytes(status: os.stat_result) -> int:
    """Return the room that a file takes on disk, its own size at most."""
    return min(status.st_blocks * 512, status.st_size)


def punch_hole(fd: int, start: int, end: int) -> bool:
    """Let [start, end) of a file read as zeros, and give its pages back; False where the file system knows no holes.

    Raises:
        OSError: The disk refused.
    """
    if end <= start or not _LIBC.fallocate(fd, FALLOC_PUNCH_HOLE, start, end - start):
        return True
    error = ctypes.get_errno()
    if error in _NO_HOLES:
        return False
    raise OSError(error, os.strerror(error))


def can_punch(folder: Path) -> bool:
    """Return whether the file system of a folder knows holes, tried on a small file."""
    path = folder / "punch.try"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o640)
    try:
        os.posix_fallocate(fd, 0, 2 * PAGE_BYTES)
        return punch_hole(fd, 0, PAGE_BYTES)
    except OSError:
        return False
    finally:
        os.close(fd)
        path.unlink(missing_ok=True)


class MappedFile:
    """A file of fixed size and its bytes; it is let go of when nobody holds it any more.

    `view` may outlive it: the mapping goes when the last view of it does.
    """

    def __init__(self, path: Path, fd: int, size: int, *, is_writable: bool) -> None:
        access = mmap.PROT_READ | (mmap.PROT_WRITE if is_writable else 0)
        self.path = path
        self.size = size
        self.fd = fd
        self._map = mmap.mmap(fd, size, flags=mmap.MAP_SHARED, prot=access)
        self.view = memoryview(self._map)
        self._closer = weakref.finalize(self, os.close, fd)

    @classmethod
    def create(cls, path: Path, size: int) -> MappedFile:
        """Make the file anew, with all its room on disk taken, zero-filled.

        Where there is too little it is not begun: nobody else is to miss the room until that is found out.

        Raises:
            DiskFullError: There is no room; nothing is left behind.
        """
        if free_bytes(path.parent) < size:
            raise DiskFullError(str(path))
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o640)
        try:
            os.posix_fallocate(fd, 0, size)
            return cls(path, fd, size, is_writable=True)
        except OSError as error:
            os.close(fd)
            path.unlink(missing_ok=True)
            if error.errno in _NO_ROOM:
                raise DiskFullError(str(path)) from error
            raise DataFolderUnusableError(str(path), error.strerror or str(error)) from error

    @classmethod
    def open(cls, path: Path, *, is_writable: bool) -> MappedFile:
        """Map the file as it is; it must not be empty.

        Raises:
            DataFolderUnusableError: It cannot be opened or mapped.
        """
        try:
            fd = os.open(path, (os.O_RDWR if is_writable else os.O_RDONLY) | os.O_CLOEXEC)
        except OSError as error:
            raise DataFolderUnusableError(str(path), error.strerror or str(error)) from error
        try:
            return cls(path, fd, os.fstat(fd).st_size, is_writable=is_writable)
        except (OSError, ValueError) as error:
            os.close(fd)
            raise DataFolderUnusableError(str(path), str(error)) from error

    def populate(self, start: int, end: int) -> None:
        """Have the pages of [start, end) in memory and mapped, so that the writer waits for none; others go on.

        They stay clean: pages that were made ready for writing would each be written to disk as zeros by the next sync.
        Pages that hold data keep it. A kernel that does not know how leaves the work to the writer.
        """
        start -= start % PAGE_BYTES
        first = ctypes.c_char.from_buffer(self._map, start)
        _LIBC.madvise(ctypes.addressof(first), end - start, MADV_POPULATE_READ)

    def let_go(self, start: int, end: int) -> None:
        """Give the process's hold on whole pages of [start, end) back; the data stays in the page cache."""
        start += -start % PAGE_BYTES
        end -= end % PAGE_BYTES
        if end > start:
            self._map.madvise(mmap.MADV_DONTNEED, start, end - start)

    def punch(self, start: int) -> None:
        """Give the disk's room for whole pages from `start` on back: they read as zeros, the size stays.

        A file system that does not know how keeps the room.
        """
        start += -start % PAGE_BYTES
        if start < self.size:
            _LIBC.fallocate(self.fd, FALLOC_PUNCH_HOLE, start, self.size - start)

    @property
    def disk_bytes(self) -> int:
        """Room that the file takes on disk."""
        return disk_bytes(os.fstat(self.fd))

    def data_ranges(self, start: int) -> list[tuple[int, int]]:
        """Return the parts of [start, size) that may hold something else than zeros, by what the file system knows."""
        ranges: list[tuple[int, int]] = []
        while start < self.size:
            try:
                first = os.lseek(self.fd, start, os.SEEK_DATA)
            except OSError:  # ENXIO: only holes are left
                break
            start = min(os.lseek(self.fd, first, os.SEEK_HOLE), self.size)
            ranges.append((first, start))
        return ranges

    def close(self) -> None:
        """Close the file now; views that others hold stay good."""
        self._closer()
