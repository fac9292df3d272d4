"""How much memory the process has, and how much it may: with more, publishers are held back and newcomers refused."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from core.room import MARGIN_SHIFT, MEMORY_LOW, Room
from gateway.net.watermarks import Watermarks

LOGGER = logging.getLogger(__name__)

LOOK_INTERVAL_MS = 1_000  # a look reads one line of /proc; chosen: memory grows for seconds before it is short
SHARE_TENTHS = 6  # of the memory that there is, where no setting says how much
_STATM = Path("/proc/self/statm")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_OF_CONTAINER = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def own_bytes() -> int:
    """Return the memory of this process, without files that are mapped: the log's pages are the system's to take."""
    _, resident, shared = _STATM.read_text(encoding="ascii").split()[:3]
    return (int(resident) - int(shared)) * _PAGE_BYTES


def find_memory_bytes(limit_files: Iterable[Path] = _OF_CONTAINER) -> int:
    """Return how much memory the machine, or the container, has."""
    found = os.sysconf("SC_PHYS_PAGES") * _PAGE_BYTES
    for path in limit_files:
        with suppress(OSError, ValueError):  # there is none, or it says `max`
            found = min(found, int(path.read_text(encoding="ascii")))
    return found


class MemoryWatch:
    """Looks at the memory at intervals, and raises and ends the alarm.

    Args:
        room: Holds publishers back.
        watermarks: Refuse newcomers.
        bytes_max: With more the memory is low; None: six tenths of what there is; 0: never.
        measure: Returns the memory in use.
    """

    def __init__(
        self, room: Room, watermarks: Watermarks, bytes_max: int | None, measure: Callable[[], int] = own_bytes
    ) -> None:
        self._room = room
        self._watermarks = watermarks
        self._measure = measure
        self._since_ms = 0
        self.used_bytes = measure()  # at each look
        self.bytes_max = 0
        self.use(bytes_max)

    def use(self, bytes_max: int | None) -> None:
        """Go by another maximum from the next look on."""
        self.bytes_max = find_memory_bytes() * SHARE_TENTHS // 10 if bytes_max is None else bytes_max

    def look(self, now_ms: int) -> None:
        """See how much there is; once it was too much it has to be a sixteenth less to be well again."""
        self.used_bytes = used = self._measure()
        most = self.bytes_max
        if self._room.is_memory_low:
            most -= most >> MARGIN_SHIFT
        is_low = self.bytes_max > 0 and used > most
        if is_low == self._room.is_memory_low:
            return
        self._watermarks.is_memory_low = is_low
        self._room.note_memory(is_low=is_low, now_ms=now_ms)
        if is_low:
            self._since_ms = now_ms
            LOGGER.warning(
                "%s: publishers are held back, newcomers refused used_bytes=%d memory_bytes_max=%d",
                MEMORY_LOW,
                used,
                self.bytes_max,
            )
        else:
            LOGGER.info(
                "there is memory again: publishers go on used_bytes=%d low_ms=%d", used, now_ms - self._since_ms
            )
