"""The machine's start as a number: another one means that files may lack what was written before."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def find_boot(path: Path = _BOOT_ID) -> int:
    """Return a number of 64 bits that differs from one start of the machine to the next; 0 where it is not told."""
    with suppress(OSError, ValueError):
        return int(path.read_text(encoding="ascii").replace("-", "")[:16], 16)
    return 0
