"""Queues with priorities: each level in use is a light queue of its own, and a message goes to that of its level.

A message's level is its property `x-amqp-priority`, whatever protocol it came by, at most what the queue has.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol

from core.errors import LmqError
from core.message import PublishBatch, Route
from core.queues.diversion import Detour

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


class Levels(Detour[Levelled]):
    """The queues with priorities, by the number of the light queue of their lowest level."""

    __slots__ = ()

    def divert(self, batch: PublishBatch) -> None:
        """Give messages above the lowest level routes to the light queues of theirs, until `restore`."""
        members = self._begin(batch)
        if members is None:
            return
        extra = bytes(batch.extra)
        for i in range(batch.count):
            index = batch.route_index[i]
            if not members[index]:
                continue
            level = find_priority(extra, batch.extra_start[i], batch.extra_end[i])
            if level:
                self._diversion.move(batch, i, (level,), partial(self._at_level, batch.routes[index], level))

    def _at_level(self, route: Route | None, level: int) -> Route | None:
        """Return a route with the light queues of a level; where there is no room for one, with the lowest."""
        if route is None:
            return None
        names = set(route.dispatch.names)
        for queue_ref, lowest in self._members.find(route).items():
            try:
                at_level = self.asked[queue_ref].use_level(level)
            except LmqError:
                continue
            names.discard(lowest)
            names.add(at_level)
        return self._lead(route, sorted(names))


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
