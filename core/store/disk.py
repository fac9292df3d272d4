"""What every file of the data folder needs: room before use, syncs that report, replacement in one step."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from core.errors import DiskFullError, FlushFailedError

UNTOLD_BYTES = 1 << 62  # free room of a file system that tells none: never low
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def is_disk_full(error: OSError) -> bool:
    """Return whether the error says that there is no room: disk, quota or file size."""
    return error.errno in _NO_ROOM


def free_bytes(path: Path) -> int:
    """Return the room that the file system of `path` has for us; a huge number where it does not say."""
    stat = os.statvfs(path)
    return stat.f_bavail * stat.f_frsize if stat.f_blocks else UNTOLD_BYTES


def allocate(fd: int, path: Path, size_before: int, size: int) -> None:
    """Give a file blocks for [0, size), zeros where it grows, so that a store into its mapping cannot fail.

    Raises:
        DiskFullError: No room; the file has `size_before` bytes again.
    """
    try:
        os.posix_fallocate(fd, 0, size)
    except OSError as error:
        with suppress(OSError):
            os.ftruncate(fd, size_before)
        if is_disk_full(error):
            raise DiskFullError(str(path)) from error
        raise


def write_all(fd: int, path: Path, data: memoryview | bytes | bytearray, position: int) -> None:
    """Write all of `data` at `position`, the file's end or before it; on failure the file ends there.

    Raises:
        DiskFullError: No room.
    """
    rest = memoryview(data)
    try:
        at = position
        while rest:
            written = os.pwrite(fd, rest, at)
            at += written
            rest = rest[written:]
    except OSError as error:
        with suppress(OSError):
            os.ftruncate(fd, position)
        if is_disk_full(error):
            raise DiskFullError(str(path)) from error
        raise


def sync_file(fd: int) -> None:
    """Force a file's data, mapped or written, and its size to disk.

    Raises:
        FlushFailedError: The disk refused: what was written since the last sync may be lost.
    """
    try:
        os.fdatasync(fd)
    except OSError as error:
        raise FlushFailedError(error.strerror or str(error)) from error


def sync_folder(path: Path) -> None:
    """Force a folder's names to disk.

    Raises:
        FlushFailedError: The disk refused.
    """
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    except OSError as error:
        raise FlushFailedError(error.strerror or str(error)) from error
    finally:
        os.close(fd)


def make_folder(path: Path) -> None:
    """Make a folder, and those above it that are missing; when this returns their names are on disk.

    Raises:
        FlushFailedError: The disk refused.
        OSError: It cannot be made.
    """
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
    with suppress(PermissionError):  # another user's folder: its maker saw to it
        sync_folder(path.parent)


def make_durable(fd: int, path: Path) -> None:
    """Force a file that is new, or has a new name, to disk: what it holds, then its name.

    Raises:
        FlushFailedError: The disk refused.
    """
    sync_file(fd)
    sync_folder(path.parent)


@contextmanager
def new_file(path: Path, *, keep: Path | None = None) -> Iterator[int]:
    """Make or replace a file in one step: it is there whole and synced after the block, or as before it.

    Args:
        path: The file; the block gets the number of another that takes its name at the end.
        keep: Where the replaced file stays, in place of what was kept before.

    Raises:
        DiskFullError: No room; nothing has changed.
    """
    temporary = path.with_name(path.name + ".new")
    fd = -1
    try:
        fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        yield fd
        sync_file(fd)
        if keep is not None and path.exists():
            link_again(path, keep)
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        if is_disk_full(error):
            raise DiskFullError(str(path)) from error
        raise
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        if fd >= 0:
            os.close(fd)


def replace_file(path: Path, data: bytes) -> None:
    """Make or replace a file in one step, with these bytes.

    Raises:
        DiskFullError: No room; nothing has changed.
    """
    with new_file(path) as fd:
        write_all(fd, path, data, 0)


def link_again(path: Path, name: Path) -> None:
    """Give a file a second name, in one step also where that name was another file's."""
    temporary = name.with_name(name.name + ".new")
    temporary.unlink(missing_ok=True)
    temporary.hardlink_to(path)
    temporary.replace(name)
