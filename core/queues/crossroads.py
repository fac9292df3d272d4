"""Light queues that stand for a choice: a message that would go to one goes where its properties lead instead.

Nothing is ever in such a queue. What a topic alone cannot say, such as the way through an exchange that looks at
headers, is found for each message so, and the routes of topics stay what caches keep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from core.message import PublishBatch, Route
from core.queues.diversion import Detour, MakeRoute


class Lead(NamedTuple):
    """Where a choice leads: to light queues, and to places where a copy waits first, for which `hold` makes routes."""

    names: Sequence[bytes]
    waits: Sequence[str] = ()
    hold: Callable[[Sequence[str], int], Sequence[Route]] | None = None


class Crossroad(Protocol):
    """What such a queue stands for."""

    def lead(self, route_properties: bytes, properties: bytes, flag: int, born_ms: int) -> Lead:
        """Return where a message goes, by what its record will say.

        `properties` are its publisher's and its own.
        """


class Crossroads(Detour[Crossroad]):
    """All of them, by the numbers of the light queues that stand for them."""

    __slots__ = ("_waits_kept",)

    def __init__(self, make_route: MakeRoute) -> None:
        super().__init__(make_route)
        self._waits_kept = 0  # those of a batch that its front named

    def find_lost(self, batch: PublishBatch, messages: Iterable[int], now_ms: int) -> set[int]:
        """Return those of `messages` that would go to such queues alone, and that their choices lead nowhere."""
        lost: set[int] = set()
        if not self.asked:
            return lost
        for i in messages:
            route = batch.routes[batch.route_index[i]]
            members = self._members.find(route)
            if route is None or not members or len(members) < route.dispatch.count:
                continue
            properties = batch.origin + bytes(batch.extra[batch.extra_start[i] : batch.extra_end[i]])
            born_ms = batch.born_ms[i] or now_ms
            leads = [self.asked[each].lead(route.prefix, properties, batch.flag[i], born_ms) for each in members]
            if not any(lead.names or lead.waits for lead in leads):
                lost.add(i)
        return lost

    def divert(self, batch: PublishBatch, now_ms: int) -> None:
        """Give messages that come now routes to where their choices lead, until `restore`."""
        self._waits_kept = len(batch.waits)
        members = self._begin(batch)
        if members is None:
            return
        extra = bytes(batch.extra)
        for i in range(batch.count):
            index = batch.route_index[i]
            route = batch.routes[index]
            if route is None or not members[index]:
                continue
            names = set(route.dispatch.names).difference(members[index].values())
            properties = batch.origin + extra[batch.extra_start[i] : batch.extra_end[i]]
            born_ms = batch.born_ms[i] or now_ms
            waits: dict[str, None] = {}
            hold = None
            for queue_ref in members[index]:
                lead = self.asked[queue_ref].lead(route.prefix, properties, batch.flag[i], born_ms)
                names.update(lead.names)
                waits |= dict.fromkeys(lead.waits)
                hold = lead.hold or hold
            if hold is not None:
                batch.waits.extend((i, each) for each in hold(list(waits), now_ms))
            ways = tuple(sorted(names))
            self._diversion.move(batch, i, ways, partial(self._lead, route, ways))

    def restore(self, batch: PublishBatch) -> None:
        """Give a batch that was appended back what its front knows: the routes, and what waits."""
        super().restore(batch)
        del batch.waits[self._waits_kept :]
