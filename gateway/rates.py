"""How fast something may go: so much a second, and as much at once after a quiet second."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Kept = TypeVar("Kept")
RECENT_MAX = 16_384  # of some 300 bytes: 5 MB


class Rate:
    """So many units a second; more than there are may be taken, and are waited for.

    Args:
        per_s: Units a second, at least 1.
        now_ms: The time.
    """

    __slots__ = ("_at_ms", "_left", "per_s")

    def __init__(self, per_s: int, now_ms: int) -> None:
        self.per_s = per_s
        self._left = float(per_s)
        self._at_ms = now_ms

    def left(self, now_ms: int) -> int:
        """Return how many may be taken now; below 0 where too many were."""
        passed_ms = max(now_ms - self._at_ms, 0)
        self._left = min(self._left + passed_ms * self.per_s / 1_000, float(self.per_s))
        self._at_ms = now_ms
        return int(self._left // 1)

    def take(self, count: int) -> None:
        """Take some."""
        self._left -= count

    def wait_ms(self) -> int:
        """Return in how many milliseconds there is at least one, 0 where there is."""
        return 0 if self._left >= 1 else int((1 - self._left) * 1_000 / self.per_s) + 1


class Recent(Generic[Kept]):
    """What was asked for last, by name: a client that comes again at once finds what it left there.

    Args:
        count_max: Names that are kept; the one that was asked for longest ago goes first.
    """

    def __init__(self, count_max: int = RECENT_MAX) -> None:
        self._count_max = count_max
        self._kept: dict[str | bytes, tuple[object, Kept]] = {}

    def find(self, name: str | bytes, limits: object, make: Callable[[], Kept]) -> Kept:
        """Return what is kept by a name, made anew where other limits count for it now."""
        known = self._kept.pop(name, None)
        if known is None or known[0] != limits:
            known = limits, make()
        self._kept[name] = known
        if len(self._kept) > self._count_max:
            del self._kept[next(iter(self._kept))]
        return known[1]
