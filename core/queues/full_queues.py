"""Light queues that take no more than they have room for: what is told of them, and messages that go past them.

What is refused by one queue goes to the others all the same, whatever protocol it came by.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Protocol

from core.message import PublishBatch, Route
from core.queues.diversion import Diversion, MakeRoute, Members

NO_END = 1 << 62


class Room:
    """What a queue takes now: so many messages that consumers have at once, then so many more of so many bytes."""

    __slots__ = ("_bytes", "_for_consumers", "_messages")

    def __init__(self, for_consumers: int, messages: int = 0, body_bytes: int = NO_END) -> None:
        self._for_consumers = for_consumers
        self._messages = messages
        self._bytes = body_bytes

    def admit(self, body_bytes: int) -> bool:
        """Return whether a message has room, which is then its own."""
        if self._for_consumers > 0:
            self._for_consumers -= 1
            return True
        if self._messages <= 0 or self._bytes < body_bytes:
            return False
        self._messages -= 1
        self._bytes -= body_bytes
        return True


class Limited(Protocol):
    """A queue that refuses messages."""

    def find_room(self, wanted: int) -> Room:
        """Return what it takes now; `wanted` messages are not less than will come."""

    def refuse(self, count: int) -> None:
        """So many messages went past it."""


class FullQueues:
    """The queues that may refuse messages, by number.

    Args:
        make_route: Makes the route of a topic, its queue and prefix to light queues.
    """

    __slots__ = ("_diversion", "_instead", "_make_route", "_members", "limited", "refused")

    def __init__(self, make_route: MakeRoute) -> None:
        self.refused: list[int] = []  # of the batch that was looked at last, what some queue refused, in order
        self._make_route = make_route
        self.limited: dict[int, Limited] = {}  # by number; while there are none, nothing need be asked of this
        self._instead: dict[int, bytes] = {}
        self._members = Members(self.limited)
        self._diversion = Diversion()

    def add(self, queue_ref: int, queue: Limited, instead: bytes = b"") -> None:
        """Ask a queue from now on; what it refuses goes to the light queue `instead`, where that is said."""
        self.limited[queue_ref] = queue
        if instead:
            self._instead[queue_ref] = instead
        self._members.clear()

    def drop(self, queue_ref: int) -> None:
        """Ask it no more; harmless where it was not."""
        if self.limited.pop(queue_ref, None) is not None:
            self._instead.pop(queue_ref, None)
            self._members.clear()
            self.refused = []

    def divert(self, batch: PublishBatch) -> None:
        """Give messages that a full queue refuses routes without it, until `restore`; `refused` says which they are."""
        if not self.limited:
            return
        self.refused = []
        asked = [self._members.find(route) for route in batch.routes]
        if not any(asked):
            return
        self._diversion.begin(batch)
        rooms: dict[int, Room] = {}
        past: Counter[int] = Counter()
        for i in range(batch.count):
            index = batch.route_index[i]
            full: list[int] = []
            for queue_ref in asked[index]:
                if queue_ref not in rooms:
                    rooms[queue_ref] = self.limited[queue_ref].find_room(batch.count)
                if not rooms[queue_ref].admit(batch.body_end[i] - batch.body_start[i]):
                    full.append(queue_ref)
            if full:
                past.update(full)
                self.refused.append(i)
                self._diversion.move(batch, i, tuple(full), partial(self._without, batch.routes[index], full))
        for queue_ref, count in past.items():
            self.limited[queue_ref].refuse(count)

    def restore(self, batch: PublishBatch) -> None:
        """Give a batch that was appended the routes back that its front knows."""
        self._diversion.restore(batch)

    def _without(self, route: Route | None, full: list[int]) -> Route | None:
        if route is None:
            return None
        left = {self._members.find(route)[queue_ref] for queue_ref in full}
        names = {name for name in route.dispatch.names if name not in left}
        names |= {self._instead[queue_ref] for queue_ref in full if queue_ref in self._instead}
        return self._make_route(route.topic, route.queue_id, route.prefix, sorted(names))
