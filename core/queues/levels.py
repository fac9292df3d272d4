"""Queues with priorities: each level in use is a light queue of its own, and a message goes to that of its level.

A message's level is its property `x-amqp-priority`, whatever protocol it came by, at most what the queue has.
"""

from __future__ import annotations

from typing import Protocol
from weakref import WeakKeyDictionary

from core.errors import LmqError
from core.message import DispatchSet, PublishBatch, Route
from core.queues.full_queues import MakeRoute

PRIORITY_NAME = b"x-amqp-priority"
DIGITS_MAX = 3  # of a priority: it is an octet
_MARK = PRIORITY_NAME + b"\x01"
_END = 2  # of a property


class Levelled(Protocol):
    """A queue with levels."""

    def use_level(self, level: int) -> bytes:
        """Return the light queue of a level, at most that of the highest; it takes messages from now on.

        Raises:
            QueueLimitError: There is no room for another light queue.
        """


class Levels:
    """The queues with priorities, by the number of the light queue of their lowest level.

    Args:
        make_route: Makes the route of a topic, its queue and prefix to light queues.
    """

    __slots__ = ("_make_route", "_moved", "_route_count", "_sets", "levelled")

    def __init__(self, make_route: MakeRoute) -> None:
        self.levelled: dict[int, Levelled] = {}  # while there are none, nothing need be asked of this
        self._make_route = make_route
        self._moved: list[tuple[int, int]] = []  # messages with other routes, and the index of the one they had
        self._route_count = 0  # before others were added
        self._sets: WeakKeyDictionary[DispatchSet, dict[int, bytes]] = WeakKeyDictionary()

    def add(self, queue_ref: int, queue: Levelled) -> None:
        """Ask a queue for its levels from now on."""
        self.levelled[queue_ref] = queue
        self._sets.clear()

    def drop(self, queue_ref: int) -> None:
        """Ask it no more; harmless where it was not."""
        if self.levelled.pop(queue_ref, None) is not None:
            self._sets.clear()

    def divert(self, batch: PublishBatch) -> None:
        """Give messages above the lowest level routes to the light queues of theirs, until `restore`."""
        if not self.levelled:
            return
        asked = [self._find(route) for route in batch.routes]
        if not any(asked):
            return
        self._route_count = len(batch.routes)
        routes: dict[tuple[int, int], int] = {}
        extra = bytes(batch.extra)
        for i in range(batch.count):
            index = batch.route_index[i]
            if not asked[index]:
                continue
            level = find_priority(extra, batch.extra_start[i], batch.extra_end[i])
            if not level:
                continue
            key = (index, level)
            if key not in routes:
                routes[key] = len(batch.routes)
                batch.routes.append(self._at_level(batch.routes[index], level))
            self._moved.append((i, index))
            batch.route_index[i] = routes[key]

    def restore(self, batch: PublishBatch) -> None:
        """Give a batch that was appended the routes back that it had."""
        if not self._moved:
            return
        for i, index in self._moved:
            batch.route_index[i] = index
        self._moved = []
        del batch.routes[self._route_count :]

    def _find(self, route: Route | None) -> dict[int, bytes]:
        """Return the queues of a route that have levels, with the names of their lowest."""
        if route is None:
            return {}
        dispatch = route.dispatch
        found = self._sets.get(dispatch)
        if found is None:
            refs = dispatch.queue_refs
            found = {refs[k]: dispatch.names[k] for k in range(dispatch.count) if refs[k] in self.levelled}
            self._sets[dispatch] = found
        return found

    def _at_level(self, route: Route | None, level: int) -> Route | None:
        """Return a route with the light queues of a level; where there is no room for one, with the lowest."""
        if route is None:
            return None
        names = set(route.dispatch.names)
        for queue_ref, lowest in self._find(route).items():
            try:
                at_level = self.levelled[queue_ref].use_level(level)
            except LmqError:
                continue
            names.discard(lowest)
            names.add(at_level)
        return self._make_route(route.topic, route.queue_id, route.prefix, sorted(names))


def find_priority(extra: bytes, pos: int, end: int) -> int:
    """Return the priority that the properties in [pos, end) say, 0 where they say none."""
    at = extra.find(_MARK, pos, end)
    while at > pos and extra[at - 1] != _END:  # it is the end of another name, or stands in a value
        at = extra.find(_MARK, at + 1, end)
    if at < 0:
        return 0
    start = at + len(_MARK)
    digits = extra[start : extra.find(_END, start, end)]
    return int(digits) if len(digits) <= DIGITS_MAX and digits.isdigit() else 0
