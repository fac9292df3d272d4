"""Folders and full disks for tests."""

from __future__ import annotations

import resource
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

MEMORY = Path("/dev/shm")
MEMORY_BYTES_MIN = 2 << 30  # free; a run takes a tenth of it


def memory_folder() -> Path | None:
    """Return a folder in memory, None where there is none with room: what calls for a folder takes its usual one.

    Opening and closing a store forces a dozen files to disk. On a disk that others write to, that is most of a test.
    """
    return MEMORY if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= MEMORY_BYTES_MIN else None


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Let no file of this process grow past `size` bytes: what a full disk feels like, with EFBIG for ENOSPC."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def fresh_folder(parent: Path) -> Path:
    """Return a new empty folder in `parent`."""
    return Path(mkdtemp(dir=parent))
