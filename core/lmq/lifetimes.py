"""How long the messages of light queues live that have a time of their own, besides what each message says.

A queue's own readers know it; this tells the doors that read a queue which another door made.
"""

from __future__ import annotations

from core.lmq.expiry import take_expired
from core.message import StoredBatch

KEPT = -2  # a queue gives its messages whatever their time to live
_OWN = -1  # what each message says holds
_ALL = 1 << 62


class Lifetimes:
    """The times to live of light queues, by name."""

    __slots__ = ("_limits",)

    def __init__(self) -> None:
        self._limits: dict[bytes, int] = {}

    def put(self, queue: bytes, limit_ms: int) -> None:
        """Say how long messages live in a light queue: -1 as each says itself, `KEPT` for ever."""
        if limit_ms == _OWN:
            self._limits.pop(queue, None)
        else:
            self._limits[queue] = limit_ms

    def drop(self, queue: bytes) -> None:
        """Say nothing more of a light queue; harmless where nothing was said."""
        self._limits.pop(queue, None)

    def take_expired(self, stored: StoredBatch, queue: bytes, now_ms: int) -> list[int]:
        """Take the messages of a queue that have outlived their time out of `stored`; return their queue offsets."""
        limit_ms = self._limits.get(queue, _OWN)
        return [] if limit_ms == KEPT else take_expired(stored, now_ms, limit_ms, _ALL)
