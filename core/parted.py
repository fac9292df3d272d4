"""A map of very many entries that grows without a pause: one dict of a million takes 70 ms to grow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Generic, TypeVar, cast

PART_MIN = 4_096  # entries from which on it is kept in parts
PARTS = 256

K = TypeVar("K")
V = TypeVar("V")


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

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None."""
        return self._part(key).get(key)

    def pop(self, key: K) -> V | None:
        """Remove a key; return its value, None where there was none."""
        part = self._part(key)
        before = len(part)
        found = part.pop(key, None)
        self._count += len(part) - before
        return found

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
