"""Maps of very many entries that grow without a pause.

One dict of a million takes 70 ms to grow, and one of 87,382, the last number before a step that many reach, 4 to 7 ms:
nearly all of it is memory that is touched for the first time. `core/bytes_map.py` is the compiled one of these, for the
topic trie alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Generic, TypeVar, cast, overload

PART_MIN = 2_048  # entries from which on it is kept in parts; chosen: to make a smaller dict anew holds nobody up
PARTS = 251  # a prime, so that all bits of a hash count; in a dict, keys alike in the low ones meet again and again
CHUNK = 2_730  # entries of a dict before it grows from 4,096 places

K = TypeVar("K")
V = TypeVar("V")


def mix_number(number: int) -> int:
    """Return a number that mixes all bits of another into its low ones, as if by chance: what `PartedMap` asks for.

    The square sees to that: numbers at equal distances would fill all parts alike, and all would grow at once.
    """
    mixed = number * 0x9E3779B1 >> 16
    return mixed * mixed >> 12


class PartedMap(Generic[K, V]):
    """Entries in no order.

    Args:
        entries: Its first ones; the map goes on with that very dict while it is small.
        mix: Gives a number that differs in its low bits from key to key.
    """

    __slots__ = ("_count", "_mix", "_parts")

    def __init__(self, entries: dict[K, V], mix: Callable[[K], int] = hash) -> None:
        self._mix = mix
        self._parts = [entries]
        self._count = len(entries)
        self._maybe_part()

    def __len__(self) -> int:
        return self._count

    def __contains__(self, key: object) -> bool:
        return key in self._part(cast("K", key))

    def __setitem__(self, key: K, value: V) -> None:
        part = self._part(key)
        before = len(part)
        part[key] = value
        if len(part) > before:
            self._count += 1
            self._maybe_part()

    @overload
    def get(self, key: K) -> V | None: ...

    @overload
    def get(self, key: K, default: V) -> V: ...

    def get(self, key: K, default: V | None = None) -> V | None:
        """Return the value of a key, `default` where there is none."""
        return self._part(key).get(key, default)

    def pop(self, key: K) -> V | None:
        """Remove a key; return its value, None where there was none."""
        part = self._part(key)
        before = len(part)
        found = part.pop(key, None)
        self._count += len(part) - before
        return found

    def list_keys(self) -> list[K]:
        """Return all keys."""
        return list(chain.from_iterable(self._parts))

    def items(self) -> Iterator[tuple[K, V]]:
        """Give all keys with their values; the map must not change meanwhile."""
        return chain.from_iterable(part.items() for part in self._parts)

    def _part(self, key: K) -> dict[K, V]:
        parts = self._parts
        return parts[0] if len(parts) == 1 else parts[self._mix(key) % PARTS]

    def _maybe_part(self) -> None:
        if len(self._parts) == 1 and self._count >= PART_MIN:
            self._parts = _divide(self._parts[0].items(), self._mix)


def _divide(entries: Iterable[tuple[K, V]], mix: Callable[[K], int]) -> list[dict[K, V]]:
    parts: list[dict[K, V]] = [{} for _ in range(PARTS)]
    for key, value in entries:
        parts[mix(key) % PARTS][key] = value
    return parts


class OrderedMap(Generic[K, V]):
    """Entries in the order in which their keys came, in chunks of that order; no value is None.

    It may change while it is walked: what comes meanwhile may be given or not, and what goes may be, too.

    Args:
        entries: Its first ones; the map goes on with that very dict.
    """

    __slots__ = ("_chunks", "_last", "_where")

    def __init__(self, entries: dict[K, V] | None = None) -> None:
        self._last: dict[K, V] = {} if entries is None else entries  # the chunk that new keys go to
        self._chunks = {id(self._last): self._last}
        self._where: PartedMap[K, dict[K, V]] | None = None  # the chunk of each key, where there are several

    def __len__(self) -> int:
        return len(self._last) if self._where is None else len(self._where)

    def __contains__(self, key: object) -> bool:
        return key in (self._last if self._where is None else self._where)

    def __getitem__(self, key: K) -> V:
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __setitem__(self, key: K, value: V) -> None:
        where = self._where
        chunk = None if where is None else where.get(key)
        if chunk is not None:
            chunk[key] = value
            return
        if len(self._last) >= CHUNK and key not in self._last:
            where = self._begin_chunk()
        self._last[key] = value
        if where is not None:
            where[key] = self._last

    def __delitem__(self, key: K) -> None:
        where = self._where
        chunk = self._last if where is None else where.pop(key)
        if chunk is None:
            raise KeyError(key)
        del chunk[key]
        if not chunk and chunk is not self._last:
            del self._chunks[id(chunk)]

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None."""
        if self._where is None:
            return self._last.get(key)
        chunk = self._where.get(key)
        return None if chunk is None else chunk[key]

    def __iter__(self) -> Iterator[K]:
        """Give all keys, the oldest first."""
        return chain.from_iterable(list(chunk) for chunk in list(self._chunks.values()))

    def values(self) -> Iterator[V]:
        """Give all values, the oldest first."""
        return chain.from_iterable(list(chunk.values()) for chunk in list(self._chunks.values()))

    def newest_values(self) -> Iterator[V]:
        """Give all values, the newest first."""
        return chain.from_iterable(list(chunk.values())[::-1] for chunk in list(self._chunks.values())[::-1])

    def _begin_chunk(self) -> PartedMap[K, dict[K, V]]:
        if self._where is None:
            self._where = PartedMap(dict.fromkeys(self._last, self._last))
        self._last = {}
        self._chunks[id(self._last)] = self._last
        return self._where


LongDict = dict[K, V] | OrderedMap[K, V]
"""Entries in the order in which their keys came: a dict, as most of very many have few, or chunks."""


def outgrow(entries: LongDict[K, V]) -> LongDict[K, V]:
    """Return what takes the next entry: the dict while it is small, else chunks that begin with it."""
    return OrderedMap(entries) if isinstance(entries, dict) and len(entries) >= CHUNK else entries
