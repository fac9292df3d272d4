"""One process to a data folder, and one format of what lies in it.

Source: docs/storage-format.md, "The folder".
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from core.errors import DataFolderInUseError, DataFolderUnusableError, LmqError
from core.store.disk import make_folder, replace_file

FORMAT = "lmq-gateway 2"
OLD_FORMATS = ("lmq-gateway 1",)  # rows of tables without a version
_DIGITS_MAX = 20  # of a process's number: any of 64 bits has no more


class DataLock:
    """The lock on a data folder, held until released or until the process ends in whatever way."""

    def __init__(self, data_dir: Path, fd: int) -> None:
        self.data_dir = data_dir
        self._fd = fd

    @classmethod
    def acquire(cls, data_dir: Path) -> DataLock:
        """Make the folder where it is missing, lock it, and check the format of its files.

        Raises:
            DataFolderInUseError: Another process has it; its number is in the error where it is known.
            DataFolderUnusableError: It cannot be made or written, or is of another version.
        """
        fd = -1
        try:
            make_folder(data_dir)
            fd = os.open(data_dir / "lock", os.O_RDWR | os.O_CREAT, 0o644)
            _lock(fd, data_dir)
            os.ftruncate(fd, 0)
            os.pwrite(fd, b"%d\n" % os.getpid(), 0)
            _check_format(data_dir)
        except OSError as error:
            _close(fd)
            why = "it is a file" if data_dir.is_file() else error.strerror or str(error)
            raise DataFolderUnusableError(str(data_dir), why) from error
        except LmqError:
            _close(fd)
            raise
        return cls(data_dir, fd)

    def release(self) -> None:
        """Let others have the folder; a second call does nothing."""
        _close(self._fd)
        self._fd = -1


def _close(fd: int) -> None:
    if fd >= 0:
        os.close(fd)


def _lock(fd: int, data_dir: Path) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        text = os.pread(fd, _DIGITS_MAX, 0).strip()
        raise DataFolderInUseError(str(data_dir), int(text) if text.isdigit() else None) from error


def _check_format(data_dir: Path) -> None:
    path = data_dir / "format"
    found = path.read_bytes()[:64].decode("ascii", "replace").strip() if path.exists() else ""
    if not found or found in OLD_FORMATS:  # new, or a log that was put there alone: its records speak for themselves
        replace_file(path, f"{FORMAT}\n".encode("ascii"))
    elif found != FORMAT:
        raise DataFolderUnusableError(str(data_dir), f"its format is {found!r}, this version reads {FORMAT!r}")
