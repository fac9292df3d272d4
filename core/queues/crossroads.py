"""Light queues that stand for a choice: a message that would go to one goes where its properties lead instead.

Nothing is ever in such a queue. What a topic alone cannot say, such as the way through an exchange that looks at
headers, is found for each message so, and the routes of topics stay what caches keep.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Protocol

from core.message import PublishBatch, Route
from core.queues.diversion import Diversion, MakeRoute, Members


class Crossroad(Protocol):
    """What such a queue stands for."""

    def lead(self, route_properties: bytes, properties: bytes, flag: int, born_ms: int) -> Iterable[bytes]:
        """Return the light queues that a message goes to, by what its record will say.

        `properties` are its publisher's and its own.
        """


class Crossroads:
    """All of them, by the numbers of the light queues that stand for them.

    Args:
        make_route: Makes the route of a topic, its queue and prefix to light queues.
    """

    __slots__ = ("_diversion", "_make_route", "_members", "standing")

    def __init__(self, make_route: MakeRoute) -> None:
        self.standing: dict[int, Crossroad] = {}  # while there are none, nothing need be asked of this
        self._make_route = make_route
        self._members = Members(self.standing)
        self._diversion = Diversion()

    def add(self, queue_ref: int, crossroad: Crossroad) -> None:
        """Let a light queue stand for a choice from now on."""
        self.standing[queue_ref] = crossroad
        self._members.clear()

    def drop(self, queue_ref: int) -> None:
        """Let it stand for nothing; harmless where it did not."""
        if self.standing.pop(queue_ref, None) is not None:
            self._members.clear()

    def divert(self, batch: PublishBatch, now_ms: int) -> None:
        """Give messages that come now routes to where their choices lead, until `restore`."""
        if not self.standing:
            return
        asked = [self._members.find(route) for route in batch.routes]
        if not any(asked):
            return
        self._diversion.begin(batch)
        extra = bytes(batch.extra)
        for i in range(batch.count):
            index = batch.route_index[i]
            route = batch.routes[index]
            if route is None or not asked[index]:
                continue
            names = set(route.dispatch.names).difference(asked[index].values())
            properties = batch.origin + extra[batch.extra_start[i] : batch.extra_end[i]]
            born_ms = batch.born_ms[i] or now_ms
            for queue_ref in asked[index]:
                names.update(self.standing[queue_ref].lead(route.prefix, properties, batch.flag[i], born_ms))
            ways = tuple(sorted(names))
            self._diversion.move(batch, i, ways, partial(self._lead_to, route, ways))

    def restore(self, batch: PublishBatch) -> None:
        """Give a batch that was appended the routes back that its front knows."""
        self._diversion.restore(batch)

    def _lead_to(self, route: Route, names: tuple[bytes, ...]) -> Route:
        return self._make_route(route.topic, route.queue_id, route.prefix, names)
