"""What all detours of a batch have in common: which queues of a route are asked, and routes for one append only."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from core.message import DispatchSet, PublishBatch, Route

MakeRoute = Callable[[bytes, int, bytes, Sequence[bytes]], Route]
Asked = TypeVar("Asked")  # what stands for a queue, and is asked about its messages


class Members:
    """Which queues of a dispatch set are among some, looked up once for each set.

    Args:
        among: Numbers of light queues; `clear` has to follow when they change.
    """

    __slots__ = ("_among", "_sets")

    def __init__(self, among: Container[int]) -> None:
        self._among = among
        self._sets: WeakKeyDictionary[DispatchSet, dict[int, bytes]] = WeakKeyDictionary()

    def find(self, route: Route | None) -> dict[int, bytes]:
        """Return those of a route, with their names."""
        if route is None:
            return {}
        dispatch = route.dispatch
        found = self._sets.get(dispatch)
        if found is None:
            refs = dispatch.queue_refs
            found = {refs[k]: dispatch.names[k] for k in range(dispatch.count) if refs[k] in self._among}
            self._sets[dispatch] = found
        return found

    def clear(self) -> None:
        """Look all of them up again."""
        self._sets.clear()


class Diversion:
    """Messages of one batch with other routes than their front gave them, until `restore`."""

    __slots__ = ("_moved", "_route_count", "_routes")

    def __init__(self) -> None:
        self._moved: list[tuple[int, int]] = []  # messages, and the index of the route that they had
        self._route_count = 0  # before others were added
        self._routes: dict[tuple[object, ...], int] = {}

    def begin(self, batch: PublishBatch) -> None:
        """Take up a batch; the last one was restored."""
        self._route_count = len(batch.routes)
        self._routes = {}

    def move(self, batch: PublishBatch, i: int, key: tuple[object, ...], make: Callable[[], Route | None]) -> None:
        """Give message `i` the route that stands for `key` and the route it has, made where there is none yet."""
        index = batch.route_index[i]
        key = (index, *key)
        if key not in self._routes:
            route = make()
            self._routes[key] = len(batch.routes)
            batch.routes.append(route)
        self._moved.append((i, index))
        batch.route_index[i] = self._routes[key]

    def restore(self, batch: PublishBatch) -> None:
        """Give a batch that was appended the routes back that its front knows."""
        if not self._moved:
            return
        for i, index in self._moved:
            batch.route_index[i] = index
        self._moved = []
        del batch.routes[self._route_count :]


class Detour(Generic[Asked]):
    """Queues that are asked about messages before these are appended, by number.

    Args:
        make_route: Makes the route of a topic, its queue and prefix to light queues.
    """

    __slots__ = ("_diversion", "_make_route", "_members", "asked")

    def __init__(self, make_route: MakeRoute) -> None:
        self.asked: dict[int, Asked] = {}  # while there are none, nothing need be asked of this
        self._make_route = make_route
        self._members = Members(self.asked)
        self._diversion = Diversion()

    def add(self, queue_ref: int, queue: Asked) -> None:
        """Ask `queue` about the messages of a light queue from now on."""
        self.asked[queue_ref] = queue
        self._members.clear()

    def drop(self, queue_ref: int) -> None:
        """Ask about that light queue's messages no more; harmless where nothing was asked."""
        if self.asked.pop(queue_ref, None) is not None:
            self._members.clear()

    def restore(self, batch: PublishBatch) -> None:
        """Give a batch that was appended the routes back that its front knows."""
        self._diversion.restore(batch)

    def _begin(self, batch: PublishBatch) -> list[dict[int, bytes]] | None:
        """Take up a batch; return for each route the queues to ask, with their names; None if there are none."""
        if not self.asked:
            return None
        members = [self._members.find(route) for route in batch.routes]
        if not any(members):
            return None
        self._diversion.begin(batch)
        return members

    def _lead(self, route: Route, names: Sequence[bytes]) -> Route:
        """Return a route like `route` that leads to the light queues `names`."""
        return self._make_route(route.topic, route.queue_id, route.prefix, names)
