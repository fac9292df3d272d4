"""Folders and full disks for tests."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp


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
