"""The files of the audit log: the newest lines are in FILE, those before in FILE.1, and so on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

READABLE = 0o600  # for the gateway's user alone: it has names and addresses


class AuditFiles:
    """Appends lines; each file has a size, and there are so many.

    Args:
        path: FILE.
        bytes_max: Of one file.
        files_max: With the one that is written.

    Raises:
        OSError: FILE cannot be opened.
    """

    def __init__(self, path: Path, bytes_max: int, files_max: int) -> None:
        self._path = path
        self._bytes_max = bytes_max
        self._files_max = files_max
        self._file = self._open()

    def append(self, line: bytes) -> None:
        """Write a line, in another file where this one would be too large.

        Raises:
            OSError: The disk refuses it.
        """
        if self._file.closed:  # another one could not be opened
            self._file = self._open()
        size = self._file.tell()
        if size and size + len(line) > self._bytes_max:
            self._turn_over()
        self._file.write(line)

    def flush(self) -> None:
        """Hand what was written to the system: it outlives the process.

        Raises:
            OSError: The disk refuses it.
        """
        self._file.flush()

    def close(self) -> None:
        """Write no more."""
        self._file.close()

    def _open(self) -> BinaryIO:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, READABLE)
        file = os.fdopen(descriptor, "ab")
        file.seek(0, os.SEEK_END)
        return file

    def _turn_over(self) -> None:
        self._file.close()
        for number in range(self._files_max - 1, 0, -1):
            older = self._numbered(number)
            newer = self._numbered(number - 1)
            if newer.exists():
                newer.replace(older)
        if self._files_max == 1:
            self._path.unlink(missing_ok=True)
        self._file = self._open()

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}") if number else self._path
