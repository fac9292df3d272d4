"""Readers, and the queues that each waits for to grow."""

from __future__ import annotations


class Reader:
    """A reader of queues; each `on_ready` must bound its own work."""

    __slots__ = ()

    def on_ready(self, now_ms: int) -> bool:
        """Read on: a queue that the reader is parked on grew, or it asked to run.

        Returns:
            Whether to be called again when all others of this turn were: there is more to read at once.
        """
        raise NotImplementedError

    def reader_count(self) -> int:
        """Return how many clients it reads for now."""
        return 0


class Waiters:
    """Readers parked on queues; a reader may be parked on many queues, and many on one.

    One reader on a queue costs a dict entry; only where there are several do they get a dict of their own. Readers are
    told apart by identity and are not dicts themselves.
    """

    def __init__(self) -> None:
        self._parked: dict[int, Reader | dict[int, Reader]] = {}

    def park(self, queue_ref: int, reader: Reader) -> None:
        """Note that `reader` waits for the queue; again is the same as once."""
        found = self._parked.get(queue_ref)
        if found is None:
            self._parked[queue_ref] = reader
        elif isinstance(found, dict):
            found[id(reader)] = reader
        elif found is not reader:
            self._parked[queue_ref] = {id(found): found, id(reader): reader}

    def unpark(self, queue_ref: int, reader: Reader) -> None:
        """Forget that `reader` waits for the queue; harmless where it does not."""
        found = self._parked.get(queue_ref)
        if found is reader:
            del self._parked[queue_ref]
        elif isinstance(found, dict):
            found.pop(id(reader), None)
            if len(found) == 1:
                self._parked[queue_ref] = next(iter(found.values()))

    def is_waited_for(self, queue_ref: int) -> bool:
        """Return whether anybody waits for the queue."""
        return queue_ref in self._parked

    def parked(self, queue_ref: int) -> list[Reader]:
        """Return the readers that wait for the queue, those parked first before later ones."""
        found = self._parked.get(queue_ref)
        if found is None:
            return []
        return list(found.values()) if isinstance(found, dict) else [found]

    def reader_counts(self, first: int, end: int) -> list[int]:
        """Return for how many clients each queue is read, from one number to before another."""
        counts: list[int] = []
        for queue_ref in range(first, end):
            found = self._parked.get(queue_ref)
            count = 0
            if isinstance(found, dict):
                for reader in found.values():
                    count += reader.reader_count()
            elif found is not None:
                count = found.reader_count()
            counts.append(count)
        return counts

    def wake(self, queue_refs: list[int]) -> dict[int, Reader]:
        """Return the readers that wait for any of the queues, by their `id`, those parked first before later ones.

        The dict is the caller's.
        """
        woken: dict[int, Reader] = {}
        for queue_ref in queue_refs:
            found = self._parked.get(queue_ref)
            if isinstance(found, dict):
                woken.update(found)
            elif found is not None:
                woken[id(found)] = found
        return woken
