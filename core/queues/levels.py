"""Queues with priorities: each level in use is a light queue of its own, and a message goes to that of its level.

A message's level is its property `x-amqp-priority`, whatever protocol it came by, at most what the queue has.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol

from core.errors import LmqError
from core.message import PublishBatch, Route
from core.queues.diversion import Diversion, MakeRoute, Members

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

    __slots__ = ("_diversion", "_make_route", "_members", "levelled")

    def __init__(self, make_route: MakeRoute) -> None:
        self.levelled: dict[int, Levelled] = {}  # while there are none, nothing need be asked of this
        self._make_route = make_route
        self._members = Members(self.levelled)
        self._diversion = Diversion()

    def add(self, queue_ref: int, queue: Levelled) -> None:
        """Ask a queue for its levels from now on."""
        self.levelled[queue_ref] = queue
        self._members.clear()

    def drop(self, queue_ref: int) -> None:
        """Ask it no more; harmless where it was not."""
        if self.levelled.pop(queue_ref, None) is not None:
            self._members.clear()

    def divert(self, batch: PublishBatch) -> None:
        """Give messages above the lowest level routes to the light queues of theirs, until `restore`."""
        if not self.levelled:
            return
        asked = [self._members.find(route) for route in batch.routes]
        if not any(asked):
            return
        self._diversion.begin(batch)
        extra = bytes(batch.extra)
        for i in range(batch.count):
            index = batch.route_index[i]
            if not asked[index]:
                continue
            level = find_priority(extra, batch.extra_start[i], batch.extra_end[i])
            if level:
                self._diversion.move(batch, i, (level,), partial(self._at_level, batch.routes[index], level))

    def restore(self, batch: PublishBatch) -> None:
        """Give a batch that was appended the routes back that it had."""
        self._diversion.restore(batch)

    def _at_level(self, route: Route | None, level: int) -> Route | None:
        """Return a route with the light queues of a level; where there is no room for one, with the lowest."""
        if route is None:
            return None
        names = set(route.dispatch.names)
        for queue_ref, lowest in self._members.find(route).items():
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
