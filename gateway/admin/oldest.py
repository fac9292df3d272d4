"""How old the oldest message of a queue is: read from the log, for some queues a walk, and remembered."""

from __future__ import annotations

from core.broker import Broker
from core.message import StoredBatch
from gateway.inventory import QueueEntry

LOOKS_MAX = 1_000  # records read in one walk: each may be a page that is not in memory


class OldestMessages:
    """Says when the first message of a queue that is not done was stored.

    Args:
        broker: Reads the messages.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._one = StoredBatch(1)
        self._known: dict[tuple[str, str], tuple[tuple[tuple[int, int], ...], int]] = {}
        self._before = self._known  # those of the last walk
        self._looks = 0

    def begin(self) -> None:
        """Begin a walk: what is not asked for in it is forgotten with the next."""
        self._before, self._known = self._known, {}
        self._looks = LOOKS_MAX

    def stored_ms(self, entry: QueueEntry) -> int:
        """Return the moment, 0 where it is not known.

        Where too many queues have another first message than in the last walk, the rest of them are as they were, so
        that they may seem older than they are; or not known, if they are new.
        """
        key = (entry.vhost, entry.name)
        found = self._before.get(key)
        if (found is None or found[0] != entry.first_waiting) and self._looks > 0:
            self._looks -= len(entry.first_waiting)
            found = entry.first_waiting, self.read(entry)
        if found is None or not found[1]:
            return 0
        self._known[key] = found
        return found[1]

    def read(self, entry: QueueEntry) -> int:
        """Return the moment as the log says it now, 0 where nothing waits or it is on its way."""
        moments = []
        for queue_ref, offset in entry.first_waiting:
            if self._broker.read(queue_ref, offset, self._one, 1, 1) > 0:
                moments.append(self._one.store_ms[0])
            self._one.clear()
        return min(moments, default=0)
