"""Light queues that take no more than they have room for: their limits, and the messages that go past them.

What is refused by one queue goes to the others all the same, whatever protocol it came by.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Protocol

from core.message import PublishBatch, Route
from core.queues.diversion import Detour, MakeRoute

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


class FullQueues(Detour[Limited]):
    """The queues that may refuse messages, by number."""

    __slots__ = ("_instead", "refused")

    def __init__(self, make_route: MakeRoute) -> None:
        super().__init__(make_route)
        self.refused: list[int] = []  # of the batch that was looked at last, what some queue refused, in order
        self._instead: dict[int, bytes] = {}

    def send_instead(self, queue_ref: int, instead: bytes) -> None:
        """Let what a queue refuses go to the light queue `instead`, while that queue is asked."""
        self._instead[queue_ref] = instead

    def drop(self, queue_ref: int) -> None:
        """Ask about that light queue's messages no more; harmless where nothing was asked."""
        if queue_ref in self.asked:
            super().drop(queue_ref)
            self._instead.pop(queue_ref, None)
            self.refused = []

    def divert(self, batch: PublishBatch) -> None:
        """Give messages that a full queue refuses routes without it, until `restore`; `refused` says which they are."""
        self.refused = []
        members = self._begin(batch)
        if members is None:
            return
        rooms: dict[int, Room] = {}
        past: Counter[int] = Counter()
        for i in range(batch.count):
            index = batch.route_index[i]
            full: list[int] = []
            for queue_ref in members[index]:
                if queue_ref not in rooms:
                    rooms[queue_ref] = self.asked[queue_ref].find_room(batch.count)
                if not rooms[queue_ref].admit(batch.body_end[i] - batch.body_start[i]):
                    full.append(queue_ref)
            if full:
                past.update(full)
                self.refused.append(i)
                self._diversion.move(batch, i, tuple(full), partial(self._without, batch.routes[index], full))
        for queue_ref, count in past.items():
            self.asked[queue_ref].refuse(count)

    def _without(self, route: Route | None, full: list[int]) -> Route | None:
        if route is None:
            return None
        left = {self._members.find(route)[queue_ref] for queue_ref in full}
        names = {name for name in route.dispatch.names if name not in left}
        names |= {self._instead[queue_ref] for queue_ref in full if queue_ref in self._instead}
        return self._lead(route, sorted(names))
