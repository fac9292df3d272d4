"""One bound in bytes for all caches together: for what is kept only so that it need not be made again.

Caches have two generations. What is put in or asked for belongs to the young one. When the young entries of all caches
together have half of the bound, a new generation begins: the young become the old, and the old that nobody asked for
meanwhile go. So what is in use stays, in whichever cache, and a client of ever new entries costs others nothing but a
move of what they use. The old go a few with each new entry, in step with its bytes: nobody waits for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import getsizeof
from typing import Any

CACHE_BYTES_MAX = 64 << 20  # by default: some 100,000 routes of usual topics
ASIDE_PART = 16  # one part in so many of the bound is for what owners keep beside their entries
BYTES_BYTES = 40  # of a bytes object, besides what it holds
ENTRY_BYTES = 72  # a dict's place for an entry: 24 bytes and an index of 4, of which a third to three quarters are free


class Hits:
    """How many lookups found an entry, in all caches of one name; callers that read `Cache.young` add theirs."""

    def __init__(self) -> None:
        self.count = 0


class CacheBudget:
    """The bound, and which generation it is.

    Args:
        bytes_max: What all caches may have together.
    """

    def __init__(self, bytes_max: int = CACHE_BYTES_MAX) -> None:
        self.generation = 1
        self.evicted: dict[str, int] = {}  # by name of the cache: entries that went, because nobody asked for them
        self.made: dict[str, int] = {}  # by name of the cache: entries that were not there when they were asked for
        self.hits: dict[str, Hits] = {}  # by name of the cache: lookups that found an entry
        self._young_bytes = 0
        self._caches: dict[Cache, None] = {}  # those with entries
        self._going: list[dict[Any, Any]] = []  # old entries on their way out
        self._going_count = 0
        self._due = 0  # of those to let go next, as a part of `_half`
        self.limit(bytes_max)

    def limit(self, bytes_max: int) -> None:
        """Set another bound; caches that have more come down to it as they go on."""
        self.bytes_max = bytes_max
        self.aside_bytes = bytes_max // ASIDE_PART
        self._half = max((bytes_max - self.aside_bytes) // 2, 1)

    def bytes_used(self) -> dict[str, int]:
        """Return about how many bytes the caches have, by name; those of one name together."""
        used = dict.fromkeys(self.evicted, 0)
        for cache in self._caches:
            used[cache.name] += cache.bytes_used()
        return used

    def entries(self) -> dict[str, int]:
        """Return how many entries the caches have, by name; those of one name together."""
        found = dict.fromkeys(self.evicted, 0)
        for cache in self._caches:
            found[cache.name] += len(cache)
        return found

    def make_room(self, size: int) -> bool:
        """Begin a generation if `size` bytes more are too many for this one; return whether one began."""
        is_full = self._young_bytes > 0 and self._young_bytes + size > self._half
        if is_full:
            self._begin_generation()
        if self._going:
            self._let_go(size)
        return is_full

    def charge(self, size: int) -> None:
        """Count bytes, or take them back."""
        self._young_bytes += size

    def add(self, cache: Cache) -> None:
        """Count a cache among those with entries."""
        self._caches[cache] = None

    def discard(self, cache: Cache) -> None:
        """A cache has no entries any more."""
        self._caches.pop(cache, None)

    def _begin_generation(self) -> None:
        self.generation += 1
        self._young_bytes = 0
        for cache in list(self._caches):
            gone = cache.age()
            if gone:
                self.evicted[cache.name] += len(gone)
                self._going.append(gone)
                self._going_count += len(gone)
            elif cache.is_empty():
                self.discard(cache)

    def _let_go(self, size: int) -> None:
        """Let go of as large a part of what is on its way out as `size` is of what a generation may have."""
        self._due += self._going_count * size
        count = self._due // self._half + 1
        self._due %= self._half
        while count > 0 and self._going:
            last = self._going[len(self._going) - 1]
            if last:
                last.popitem()
                count -= 1
            else:
                self._going.pop()
        if not self._going:
            self._going_count = self._due = 0


class Cache:
    """A dict of one owner whose entries can be made again, and may be gone at any time.

    Keys are bytes, strings, or tuples of such and numbers; no value is None.

    Args:
        budget: Bounds it, with all others.
        name: Which kind of cache it is, for the operator; there may be several.
        measure: Returns about how many bytes a value takes in a generation. Memory that several values share counts
            for the first of them in that generation.
    """

    def __init__(self, budget: CacheBudget, name: str, measure: Callable[[Any, int], int]) -> None:
        self.name = name
        self.young: dict[Any, Any] = {}  # a hot path looks here before it asks `get`
        self.aside_bytes = 0  # what the owner has beside the entries, at most the budget's `aside_bytes`
        self._old: dict[Any, Any] = {}
        self._old_count = 0  # when the generation began
        self._young_bytes = 0
        self._old_bytes = 0
        self._budget = budget
        self._measure = measure
        budget.evicted.setdefault(name, 0)
        budget.made.setdefault(name, 0)
        self.hits = budget.hits.setdefault(name, Hits())

    def __len__(self) -> int:
        return len(self.young) + len(self._old)

    def is_empty(self) -> bool:
        """Return whether there are no entries."""
        return not self.young and not self._old

    def get(self, key: object) -> object:
        """Return the value of a key, or None."""
        value: object = self.young.get(key)
        if value is None and self._old:
            value = self._old.get(key)
            if value is not None:  # `put` takes it out there
                self.put(key, value)
        if value is not None:
            self.hits.count += 1
        return value

    def put(self, key: object, value: object) -> None:
        """Set the value of a key; a new value of a key that is there takes as many bytes as the one before."""
        young = self.young
        if key in young:
            young[key] = value
            return
        budget = self._budget
        if not self._old or self._old.pop(key, None) is None:
            budget.made[self.name] += 1
        size = self._size_of(key, value)
        if budget.make_room(size):
            size = self._size_of(key, value)
            young = self.young
        if not young:
            budget.add(self)
        young[key] = value
        self._young_bytes += size
        budget.charge(size)

    def _size_of(self, key: object, value: object) -> int:
        size = ENTRY_BYTES + self._measure(value, self._budget.generation)
        if type(key) is bytes:
            return size + BYTES_BYTES + len(key)
        size += getsizeof(key)
        if type(key) is tuple:
            for part in key:
                size += getsizeof(part)
        return size

    def drop(self, key: object) -> None:
        """Forget a key, where it is there; its bytes count until the next generation begins."""
        if self.young.pop(key, None) is None:
            self._old.pop(key, None)

    def clear(self) -> None:
        """Forget all entries."""
        self.young = {}
        self._old = {}
        self._budget.charge(-self._young_bytes)
        self._young_bytes = self._old_bytes = self._old_count = 0
        self._budget.discard(self)

    def age(self) -> dict[Any, Any]:
        """Begin a generation; return the old entries of the last one, which are the budget's."""
        gone = self._old
        self._old = self.young
        self._old_count = len(self._old)
        self._old_bytes = self._young_bytes
        self.young = {}
        self._young_bytes = 0
        return gone

    def bytes_used(self) -> int:
        """Return about how many bytes it has."""
        old = self._old_bytes * len(self._old) // self._old_count if self._old_count else 0
        return self._young_bytes + old + self.aside_bytes
