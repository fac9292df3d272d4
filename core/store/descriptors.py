"""How many file descriptors a store holds at most, so that others leave it as many."""

from __future__ import annotations

from core.settings import GIB, StoreSettings

_OF_A_SEGMENT = 2  # while it is mapped: the file's, and the one that Python's mapping keeps
_AT_WORK = 8  # segments: the newest, the next, full ones until they are trimmed and indexed
_UNSYNCED_BYTES = GIB  # written between two syncs, by the fastest of writers onto the slowest of disks
_UNSYNCED_MAX = 256  # more segments hold that only where they are as small as tests make them
# The definitions' database (4), the lock, names, counters, journals and places (2 each, 4 while they are written anew),
# an index that is written, a segment that is punched, folders that are synced.
_OTHERS = 64


def descriptor_count_max(settings: StoreSettings) -> int:
    """Return how many file descriptors a store of these settings holds at most, however long its log is."""
    unsynced = min(_UNSYNCED_BYTES // settings.segment_bytes, _UNSYNCED_MAX)
    return _OF_A_SEGMENT * (settings.segments_mapped_max + unsynced + _AT_WORK) + _OTHERS
