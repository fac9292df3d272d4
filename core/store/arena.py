"""Anonymous memory that grows in place: zeroed, and resident only where it was touched."""

from __future__ import annotations

import mmap

PAGE_BYTES = mmap.PAGESIZE
HUGE_FROM_BYTES = 8 << 20  # four pages of 2 MiB: less address translation, and at most one of them is touched in vain


def _map_anonymous(size: int) -> mmap.mmap:
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    _ask_for_huge_pages(memory, size)
    return memory


def _ask_for_huge_pages(memory: mmap.mmap, size: int) -> None:
    if size >= HUGE_FROM_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)


class Arena:
    """One run of zeroed memory. Views keep it alive; it must not grow while one is in use.

    Growing moves page tables, not bytes, so memory that nobody wrote to stays unused also after it.
    """

    def __init__(self, size: int) -> None:
        self.size = -(-max(size, 1) // PAGE_BYTES) * PAGE_BYTES
        self._map = _map_anonymous(self.size)

    def octets(self) -> memoryview:
        """Return all of it as bytes."""
        return memoryview(self._map)

    def ints(self) -> memoryview:
        """Return all of it as signed 32-bit integers."""
        return memoryview(self._map).cast("i")

    def longs(self) -> memoryview:
        """Return all of it as signed 64-bit integers."""
        return memoryview(self._map).cast("q")

    def grow(self, size_min: int) -> None:
        """Make it at least `size_min` bytes, and at least twice what it was; views go stale."""
        size = -(-max(size_min, 2 * self.size) // PAGE_BYTES) * PAGE_BYTES
        try:
            self._map.resize(size)
            _ask_for_huge_pages(self._map, size)
        except (BufferError, OSError, SystemError, ValueError):  # a view is left, or no mremap here
            grown = _map_anonymous(size)
            grown[: self.size] = self._map[:]
            self._map = grown
        self.size = size
