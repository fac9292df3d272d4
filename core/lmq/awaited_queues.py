"""Readers that wait for queues to be made: a name is kept for good, so a reader that only waits must not make one."""

from __future__ import annotations

from collections.abc import Callable

from core.lmq.waiters import Reader


class AwaitedQueues:
    """Readers by the key of a queue that is not there yet.

    Args:
        queue_count: Tells how many queues there are; their numbers go up from 0.
        queue_key: Gives the key of a number.
    """

    def __init__(self, queue_count: Callable[[], int], queue_key: Callable[[int], bytes]) -> None:
        self._queue_count = queue_count
        self._queue_key = queue_key
        self._readers: dict[bytes, dict[int, Reader]] = {}
        self._looked_until = 0

    def __len__(self) -> int:
        return len(self._readers)

    def add(self, key: bytes, reader: Reader) -> None:
        """Note that `reader` waits for the queue `key`, which is not there."""
        if not self._readers:
            self._looked_until = self._queue_count()
        self._readers.setdefault(key, {})[id(reader)] = reader

    def discard(self, key: bytes, reader: Reader) -> None:
        """Forget that; harmless where the reader does not wait."""
        waiting = self._readers.get(key)
        if waiting is not None:
            waiting.pop(id(reader), None)
            if not waiting:
                del self._readers[key]

    def take_made(self) -> dict[int, Reader]:
        """Return those whose queue was made since the last call, by their `id`; they wait no more."""
        made: dict[int, Reader] = {}
        count = self._queue_count()
        for queue_ref in range(self._looked_until, count):
            made.update(self._readers.pop(self._queue_key(queue_ref), {}))
        self._looked_until = count
        return made
