"""What is about to be written into a segment and punched out of it: a file that lets a killed process's work be ended.

It is whole and synced before the segment is touched, and goes when all of it is on disk. Doing it again does no harm.

Source: docs/storage-format.md, "Gaps".
"""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

from core.errors import DiskFullError, FlushFailedError
from core.store.disk import is_disk_full, replace_file, sync_file, sync_folder
from core.store.mapped_file import punch_hole

_HEADER = struct.Struct(">8sIII")  # magic, version, how many writes, how many holes
_MAGIC = b"LMQ_GAPS"
_VERSION = 1
_WRITE = struct.Struct(">QI")  # position, size; the bytes follow
_HOLE = struct.Struct(">QQ")  # start, end
_CRC = struct.Struct(">I")

Writes = list[tuple[int, bytes]]
Holes = list[tuple[int, int]]


def write_gap_file(path: Path, writes: Writes, holes: Holes) -> None:
    """Note what will be written where, and what will be punched out then; synced.

    Raises:
        DiskFullError: No room; nothing has changed.
        FlushFailedError: The disk refused.
    """
    parts = [_HEADER.pack(_MAGIC, _VERSION, len(writes), len(holes))]
    for position, data in writes:
        parts += [_WRITE.pack(position, len(data)), data]
    parts += [_HOLE.pack(*hole) for hole in holes]
    data = b"".join(parts)
    replace_file(path, data + _CRC.pack(zlib.crc32(data)))


def read_gap_file(path: Path) -> tuple[Writes, Holes] | None:
    """Return what a file says, or None where it is damaged or of another version."""
    data = path.read_bytes()
    end = len(data) - _CRC.size
    if end < _HEADER.size or _CRC.unpack_from(data, end)[0] != zlib.crc32(data[:end]):
        return None
    magic, version, write_count, hole_count = _HEADER.unpack_from(data)
    if (magic, version) != (_MAGIC, _VERSION):
        return None
    at = _HEADER.size
    writes: Writes = []
    for _ in range(write_count):
        position, size = _WRITE.unpack_from(data, at)
        at += _WRITE.size
        writes.append((position, data[at : at + size]))
        at += size
    holes = [_HOLE.unpack_from(data, at + k * _HOLE.size) for k in range(hole_count)]
    return writes, [(start, stop) for start, stop in holes]


def write_gaps(fd: int, path: Path, writes: Writes) -> None:
    """Write the gaps into a segment, and wait until they are on disk: what they lead over may go then.

    Raises:
        DiskFullError: A gap begins where pages were given back before, and there is no room. Try again later.
        FlushFailedError: The disk refused.
    """
    try:
        for position, data in writes:
            if os.pwrite(fd, data, position) != len(data):
                raise DiskFullError(str(path))
    except OSError as error:
        if is_disk_full(error):
            raise DiskFullError(str(path)) from error
        raise FlushFailedError(error.strerror or str(error)) from error
    sync_file(fd)


def forget_gap_file(path: Path) -> None:
    """Delete a file whose work is done, for good: the next one of its segment may say something else."""
    path.unlink(missing_ok=True)
    sync_folder(path.parent)


def finish_gaps(path: Path, segment: Path) -> bool:
    """Do what a file says, which a killed process may have begun; False where it says nothing.

    Raises:
        OSError: The segment cannot be opened, or the disk refused.
        FlushFailedError: The disk refused.
    """
    found = read_gap_file(path)
    if found is not None:
        writes, holes = found
        fd = os.open(segment, os.O_RDWR | os.O_CLOEXEC)
        try:
            write_gaps(fd, segment, writes)
            for start, end in holes:
                punch_hole(fd, start, end)
            os.fsync(fd)
        finally:
            os.close(fd)
    forget_gap_file(path)
    return found is not None
