"""The queues of a virtual host, or what each of them has one of, as a part of a long list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from gateway.admin.rosters.part import Part
from gateway.amqp.queue_rows import FOUND_A_STEP
from gateway.amqp.queues import VirtualHost
from gateway.amqp.shared_queue import SharedQueue

Thing = TypeVar("Thing")
Binding = tuple[VirtualHost, str, tuple[str, str, None]]


class RowsPart(Part[Thing]):
    """What has the numbers of queues, which all lists of them share.

    Args:
        vhost: The virtual host.
    """

    names_at_once = FOUND_A_STEP

    def __init__(self, vhost: VirtualHost) -> None:
        self._vhost = vhost
        self._rows = vhost.rows
        self.gone = self._rows.gone

    def arrivals(self) -> Iterator[None]:
        """Take those that came after the last one that is still there."""
        for _ in self._rows.take_in():
            yield
        self.size = len(self._rows)
        yield

    @property
    def is_left(self) -> bool:
        """Return whether queues have other numbers now."""
        return self._rows.is_retired

    def alive(self) -> int:
        """Return how many there are of those that have numbers."""
        if self._rows.is_retired:  # it is told of none any more that goes
            return len(self._vhost)
        gone = self.gone if self.size == len(self._rows) else [number for number in self.gone if number < self.size]
        return self.size - len(gone)

    def there(self, first: int, end: int) -> bytes:
        """Return for each queue from one number to before another whether it is there."""
        return bytes([not queue.is_deleted for queue in self._rows.queues[first:end]])

    def _find(self, number: int) -> SharedQueue | None:
        queue = self._rows.queues[number]
        return None if queue.is_deleted else queue


class DefaultBindings(RowsPart[Binding]):
    """The binding that each queue of a virtual host has to the exchange without a name, which is its own name."""

    def name(self, number: int) -> str:
        """Return that of the exchange."""
        del number
        return ""

    def names(self, first: int, end: int) -> str:
        """Return it once for each."""
        return "\n" * (end - first - 1)

    def take(self, number: int) -> Binding | None:
        """Return a binding; None where its queue is deleted."""
        queue = self._find(number)
        return None if queue is None else (self._vhost, "", (queue.name, queue.name, None))
