"""Memory as on a machine that has been up for a day: what is not used holds pages of files.

A virtual machine gives memory that is free back to its host, which takes several microseconds to find a page again. On
a machine that was started lately servers would pay for that, and those that write files the most. A page that is in use
already stays; the kernel takes it from the cache when a server needs it.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

FREE_BYTES = 256 << 20  # about what the kernel itself keeps free
STEP_BYTES = 256 << 20
CHUNK_BYTES = 1 << 20
FUTILE_STEPS_MAX = 4  # in a row: one may be made up for by what others let go of just then


class FullPageCache:
    """Fills free memory with the pages of a file that takes no room on disk, for it has no content."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._end = 0

    def fill(self, free_bytes: int = FREE_BYTES) -> int:
        """Read until no more than `free_bytes` are free, or nothing becomes less; return how many bytes were read."""
        began = self._end
        chunk = bytearray(CHUNK_BYTES)
        futile_steps = 0
        while (before := memory_free()) > free_bytes and futile_steps < FUTILE_STEPS_MAX:
            start, self._end = self._end, self._end + min(STEP_BYTES, before - free_bytes)
            os.ftruncate(self._fd, self._end)
            for at in range(start, self._end, CHUNK_BYTES):
                os.preadv(self._fd, [chunk], at)
            is_futile = before - memory_free() < (self._end - start) // 2  # a limit of this container, for example
            futile_steps = futile_steps + 1 if is_futile else 0
        return self._end - began


@contextlib.contextmanager
def full_page_cache(folder: Path) -> Iterator[FullPageCache]:
    """Hold the file that fills the page cache, in `folder`; in the end it is gone, and its pages are free."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        yield FullPageCache(file.fileno())


def memory_free() -> int:
    """Return the bytes that nothing uses, not even the page cache."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemFree:"):
            return int(line.split()[1]) * 1024
    return 0
