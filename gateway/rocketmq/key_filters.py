"""Which keys may be among some messages: a Bloom filter for each stretch of a queue that a query has read.

Nothing is written for it: a query that reads a stretch leaves its filter behind, and the next one passes over the
stretches that cannot have its key. The filters are a cache, and may be gone at any time.

Source: docs/decisions/0060-a-query-leaves-filters-of-keys.md.
"""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

BITS = 10  # for a key: with four of them set, one in a hundred others seems to be there
PROBES = 4  # bits that a key sets
TUPLE_BYTES = 160  # of a filter's moment and their tuple


class SeenKeys(NamedTuple):
    """What is known of a stretch of messages that was read: when the first was stored, and the filter of their keys."""

    newest_ms: int
    bits: bytes


def make_filter(hashes: list[int]) -> bytes:
    """Return the filter of some keys, each given by `hash_key`; repetitions do no harm."""
    count = len(hashes) * BITS
    bits = bytearray((count >> 3) + 1 if count else 0)
    size = len(bits) * 8
    for value in hashes:
        at = value
        for _ in range(PROBES):
            place = at % size
            bits[place >> 3] |= 1 << (place & 7)
            at += (value >> 15) | 1
    return bytes(bits)


def may_have(bits: bytes, value: int) -> bool:
    """Return False where a key, given by `hash_key`, is not among those of a filter; True where it mostly is."""
    size = len(bits) * 8
    at = value
    for _ in range(PROBES if size else 0):
        place = at % size
        if not bits[place >> 3] & 1 << (place & 7):
            return False
        at += (value >> 15) | 1
    return size > 0


def hash_key(key: bytes) -> int:
    """Return what a key is known by in filters."""
    return crc32(key)


def measure(seen: SeenKeys, generation: int) -> int:
    """Return how many bytes a value of the cache takes."""
    del generation
    return len(seen.bits) + TUPLE_BYTES
