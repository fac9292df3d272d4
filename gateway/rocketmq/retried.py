"""How often groups were given messages that they had before, since the start: by POP, and from their retry topics."""

from __future__ import annotations

from collections.abc import Iterable

from core.metrics import DoorMetrics
from gateway.rocketmq.topic_table import RETRY_PREFIX

KNOWN_MAX = 100_000  # groups and queues that had some; the one that had its first longest ago is forgotten


class Retried:
    """Counts by group and queue.

    Args:
        metrics: The door's.
    """

    def __init__(self, metrics: DoorMetrics) -> None:
        self._metrics = metrics
        self._counts: dict[tuple[bytes, bytes], int] = {}

    def note_pulled(self, key: bytes, count: int) -> None:
        """Count messages of a queue that were pulled: those of a retry topic were sent back by its group."""
        if count and key.startswith(RETRY_PREFIX):
            self.note(key[len(RETRY_PREFIX) :].rpartition(b"/")[0], key, count)

    def note(self, group: bytes, key: bytes, count: int) -> None:
        """Count messages of a queue that a group is given once more."""
        counts = self._counts
        if len(counts) >= KNOWN_MAX and (group, key) not in counts:
            del counts[next(iter(counts))]
        counts[group, key] = counts.get((group, key), 0) + count
        self._metrics.redelivered += count

    def find(self, group: bytes, key: bytes) -> int:
        """Return how often a group was given messages of a queue once more."""
        return self._counts.get((group, key), 0)

    def known(self) -> Iterable[tuple[bytes, bytes]]:
        """Return the groups and queues that had some."""
        return self._counts
