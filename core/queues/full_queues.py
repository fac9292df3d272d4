"""Light queues that take no more than they have room for: who is told of them, and messages that go past them.

What is refused by one queue goes to the others all the same, whatever protocol it came by.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol
from weakref import WeakKeyDictionary

from core.message import DispatchSet, PublishBatch, Route

MakeRoute = Callable[[bytes, int, bytes, Sequence[bytes]], Route]


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

    __slots__ = ("_instead", "_make_route", "_moved", "_route_count", "_sets", "limited", "refused")

    def __init__(self, make_route: MakeRoute) -> None:
        self.refused: list[int] = []  # of the batch that was looked at last, what some queue refused, in order
        self._make_route = make_route
        self.limited: dict[int, Limited] = {}  # by number; while there are none, nothing need be asked of this
        self._instead: dict[int, bytes] = {}
        self._moved: list[tuple[int, int]] = []  # messages with other routes, and the index of the one they had
        self._route_count = 0  # before others were added
        self._sets: WeakKeyDictionary[DispatchSet, dict[int, bytes]] = WeakKeyDictionary()

    def add(self, queue_ref: int, queue: Limited, instead: bytes = b"") -> None:
        """Ask a queue from now on; what it refuses goes to the light queue `instead`, where that is said."""
        self.limited[queue_ref] = queue
        if instead:
            self._instead[queue_ref] = instead
        self._sets.clear()

    def drop(self, queue_ref: int) -> None:
        """Ask it no more; harmless where it was not."""
        if self.limited.pop(queue_ref, None) is not None:
            self._instead.pop(queue_ref, None)
            self._sets.clear()
            self.refused = []

    def divert(self, batch: PublishBatch) -> None:
        """Give messages that a full queue refuses routes without it, until `restore`; `refused` says which they are."""
        if not self.limited:
            return
        self.refused = []
        asked = [self._find(route) for route in batch.routes]
        if not any(asked):
            return
        self._route_count = len(batch.routes)
        rooms: dict[int, Room] = {}
        past: Counter[int] = Counter()
        routes: dict[tuple[int, ...], int] = {}
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
                key = (index, *full)
                if key not in routes:
                    routes[key] = len(batch.routes)
                    batch.routes.append(self._without(batch.routes[index], full))
                self._moved.append((i, index))
                batch.route_index[i] = routes[key]
        for queue_ref, count in past.items():
            self.limited[queue_ref].refuse(count)

    def restore(self, batch: PublishBatch) -> None:
        """Give a batch that was appended the routes back that its front knows."""
        if not self._moved:
            return
        for i, index in self._moved:
            batch.route_index[i] = index
        self._moved = []
        del batch.routes[self._route_count :]

    def _find(self, route: Route | None) -> dict[int, bytes]:
        """Return the queues of a route that may refuse, with their names."""
        if route is None:
            return {}
        dispatch = route.dispatch
        found = self._sets.get(dispatch)
        if found is None:
            refs = dispatch.queue_refs
            found = {refs[k]: dispatch.names[k] for k in range(dispatch.count) if refs[k] in self.limited}
            self._sets[dispatch] = found
        return found

    def _without(self, route: Route | None, full: list[int]) -> Route | None:
        if route is None:
            return None
        left = {self._find(route)[queue_ref] for queue_ref in full}
        names = {name for name in route.dispatch.names if name not in left}
        names |= {self._instead[queue_ref] for queue_ref in full if queue_ref in self._instead}
        return self._make_route(route.topic, route.queue_id, route.prefix, sorted(names))
