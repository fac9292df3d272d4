"""Queues that go when they are not in use (`x-expires`), of all virtual hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gateway.amqp.shared_queue import SharedQueue

IN_USE = -1
STEP_COUNT = 32  # queues looked at in one step; chosen: one that goes takes its bindings with it
Remover = Callable[[SharedQueue], object]


class Leases:
    """Since when such a queue is seen unused; a lease begins when a client declares, reads or consumes the queue."""

    def __init__(self) -> None:
        self._since: dict[SharedQueue, tuple[int, Remover]] = {}

    def __len__(self) -> int:
        """Return how many queues have one."""
        return len(self._since)

    def begin(self, queue: SharedQueue, remove: Remover) -> None:
        """Begin the lease of a queue, where it has one: at its end `remove` is called."""
        if queue.lease_ms >= 0:
            self._since[queue] = (IN_USE, remove)
        else:  # it may have had one
            self._since.pop(queue, None)

    def end(self, queue: SharedQueue) -> None:
        """Forget a queue that is gone."""
        self._since.pop(queue, None)

    def run(self, now_ms: int) -> Iterator[None]:
        """Remove the queues whose lease is over, in steps."""
        for i, queue in enumerate(list(self._since)):
            if i % STEP_COUNT == STEP_COUNT - 1:
                yield
            since_ms, remove = self._since.get(queue, (IN_USE, None))
            if remove is None:
                continue
            if queue.consumers or queue.streams:
                self._since[queue] = (IN_USE, remove)
            elif since_ms == IN_USE:
                self._since[queue] = (now_ms, remove)
            elif now_ms - since_ms >= queue.lease_ms:
                remove(queue)
                yield
