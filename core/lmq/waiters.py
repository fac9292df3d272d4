"""Who waits for which queue to grow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar, cast

ReaderT = TypeVar("ReaderT")


class Waiters(Generic[ReaderT]):
    """Readers parked on queues; a reader may be parked on many queues, and many on one.

    One reader on a queue costs a dict entry; only where there are several do they get a dict of their own. Readers are
    told apart by identity and are not dicts themselves.
    """

    def __init__(self) -> None:
        self._parked: dict[int, ReaderT | dict[int, ReaderT]] = {}

    def park(self, queue_ref: int, reader: ReaderT) -> None:
        """Note that `reader` waits for the queue; again is the same as once."""
        found = self._parked.get(queue_ref)
        if found is None:
            self._parked[queue_ref] = reader
        elif type(found) is dict:
            found[id(reader)] = reader
        elif found is not reader:
            other = cast("ReaderT", found)
            self._parked[queue_ref] = {id(other): other, id(reader): reader}

    def unpark(self, queue_ref: int, reader: ReaderT) -> None:
        """Forget that `reader` waits for the queue; harmless where it does not."""
        found = self._parked.get(queue_ref)
        if found is reader:
            del self._parked[queue_ref]
        elif type(found) is dict:
            found.pop(id(reader), None)
            if len(found) == 1:
                self._parked[queue_ref] = next(iter(found.values()))

    def is_waited_for(self, queue_ref: int) -> bool:
        """Return whether anybody waits for the queue."""
        return queue_ref in self._parked

    def parked(self, queue_ref: int) -> list[ReaderT]:
        """Return the readers that wait for the queue, those parked first before later ones."""
        found = self._parked.get(queue_ref)
        if found is None:
            return []
        return list(found.values()) if type(found) is dict else [cast("ReaderT", found)]

    def wake(self, queue_refs: Iterable[int]) -> list[ReaderT]:
        """Return the readers that wait for any of the queues, each once, those parked first before later ones."""
        woken: dict[int, ReaderT] = {}
        for queue_ref in queue_refs:
            found = self._parked.get(queue_ref)
            if type(found) is dict:
                woken.update(found)
            elif found is not None:
                reader = cast("ReaderT", found)
                woken[id(reader)] = reader
        return list(woken.values())
