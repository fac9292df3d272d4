"""From a topic to the route of a message: the light queues of all filters that match, cached by topic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, cast

from core.cache_budget import Cache, CacheBudget
from core.lmq.topic_trie import TopicTrie, is_wildcard
from core.message import Route
from core.reserved import SYS_ROOT, is_bridge_state

CHANGES_MAX = 4096  # changed wildcard filters that cached routes are checked against, before all are dropped instead
_RELAY = "a relay"  # what a filter of relays is marked with
LEVEL_BYTES = 208  # of a changed filter's level in a trie, besides its letters: a node, and the way to it


class Relay(Protocol):
    """Finds light queues for a topic by rules of its own, as an exchange does that is bound to `amq.topic`."""

    def names(self, topic: bytes) -> list[bytes]:
        """Return the light queues that a topic leads to."""

    def __hash__(self) -> int:
        """Return the same for equal relays."""


class Router:
    """Filters bound to light queues, and the routes that follow from them.

    A change of an exact filter drops the one route it touches. A wildcard filter that comes or goes is noted; a cached
    route is checked against the noted ones when it is asked for next, and made anew only if one of them matches.

    Args:
        make_route: Makes the route of a topic to the light queues of these names, which are distinct and sorted.
        caches: Bounds the routes that are kept, by their topics.
    """

    def __init__(self, make_route: Callable[[bytes, Sequence[bytes]], Route], caches: CacheBudget) -> None:
        self.generation = 0  # counts changes: a front that keeps routes drops them when it is another
        self.made_count = 0  # routes that were made: each is dear, and a front may want to stop after some
        self._make_route = make_route
        self._trie = TopicTrie()
        self._caches = caches
        self._routes = Cache(caches, "routes", Route.measure)
        self._changes = TopicTrie()  # wildcard filter -> number of the change
        self._change_number = 0
        self._relays = TopicTrie()  # the filters of relays, each with one value, however many relays it leads to
        self._renewed_at = 0  # number of the change by which all relays may have come to say something else

    def bind(self, topic_filter: bytes, queue: bytes, *, hides_dollar: bool) -> None:
        """Let topics that match lead to the light queue too; bindings are counted.

        Args:
            topic_filter: In canonical form, see topic_space.
            queue: The name of the light queue.
            hides_dollar: MQTT's rule: a leading wildcard does not match topics that start with `$`.
        """
        if self._trie.insert(topic_filter, queue, hides_dollar=hides_dollar):
            self._note_change(topic_filter)

    def unbind(self, topic_filter: bytes, queue: bytes) -> None:
        """Take back one `bind`.

        Raises:
            KeyError: There is none.
        """
        if self._trie.remove(topic_filter, queue):
            self._note_change(topic_filter)

    def bind_relay(self, topic_filter: bytes, relay: Relay) -> None:
        """Let topics that match lead to what a relay says, too; bindings are counted."""
        if self._trie.insert(topic_filter, relay):
            self._relays.insert(topic_filter, _RELAY)
            self._note_change(topic_filter)

    def unbind_relay(self, topic_filter: bytes, relay: Relay) -> None:
        """Take back one `bind_relay`.

        Raises:
            KeyError: There is none.
        """
        if self._trie.remove(topic_filter, relay):
            self._relays.remove(topic_filter, _RELAY)
            self._note_change(topic_filter)

    def renew_relays(self) -> None:
        """Have the routes found out anew that lead by relays, when they are asked for: relays say something else now.

        It costs the same however many relays there are, as it is called for each binding of a virtual host.
        """
        if len(self._relays):
            self.generation += 1
            self._change_number += 1
            self._renewed_at = self._change_number

    def route(self, topic: bytes) -> Route:
        """Return the route of `topic`, the same object until a binding changes what it says."""
        cached: Route | None = self._routes.young.get(topic)
        if cached is None:
            cached = cast("Route | None", self._routes.get(topic))
        else:
            self._routes.hits.count += 1
        if cached is not None and (cached.checked_at == self._change_number or self._is_still_right(topic, cached)):
            return cached
        self.made_count += 1
        route = self._make_route(topic, self.matches(topic))
        route.checked_at = self._change_number
        self._routes.put(topic, route)
        return route

    def matches(self, topic: bytes) -> list[bytes]:
        """Return the names of the light queues that `topic` leads to, sorted, so that equal sets are recognised.

        Below `SYS_ROOT` there are none, whatever way a message came, but for the state of bridges: subscribers there
        hear the gateway alone.
        """
        if topic.startswith(SYS_ROOT) and not is_bridge_state(topic):
            return []
        names: list[object] = []
        self._trie.match(topic, names)
        if len(self._relays):
            return sorted({queue for name in names for queue in _queues_of(name, topic)})
        return sorted(cast("list[bytes]", names))

    def explain(self, topic: bytes) -> dict[bytes, dict[bytes, int]]:
        """Return the light queues that `topic` leads to, each with the filters that lead there and their bindings.

        Both are sorted by name.
        """
        if topic.startswith(SYS_ROOT) and not is_bridge_state(topic):
            return {}
        found: dict[bytes, dict[bytes, int]] = {}
        for topic_filter, counts in sorted(self._trie.explain(topic).items()):
            for name, count in counts.items():
                for queue in _queues_of(name, topic):
                    filters = found.setdefault(queue, {})
                    filters[topic_filter] = filters.get(topic_filter, 0) + count
        return {queue: found[queue] for queue in sorted(found)}

    def _note_change(self, topic_filter: bytes) -> None:
        self.generation += 1
        if not is_wildcard(topic_filter):
            self._routes.drop(topic_filter)
            return
        if self._routes.is_empty():
            self._forget_changes()
            return
        size = len(topic_filter) + LEVEL_BYTES * (topic_filter.count(b"/") + 1)
        if len(self._changes) >= CHANGES_MAX or self._routes.aside_bytes + size > self._caches.aside_bytes:
            self._routes.clear()
            self._forget_changes()
            return
        self._routes.aside_bytes += size
        self._change_number += 1
        self._changes.insert(topic_filter, self._change_number)

    def _forget_changes(self) -> None:
        """No route is left that is older than they are."""
        if self._routes.aside_bytes:
            self._routes.aside_bytes = 0
            self._changes = TopicTrie()

    def _is_still_right(self, topic: bytes, cached: Route) -> bool:
        numbers: list[object] = []
        self._changes.match(topic, numbers)
        for number in numbers:
            if cast("int", number) > cached.checked_at:
                return False
        if self._renewed_at > cached.checked_at:
            relays: list[object] = []
            self._relays.match(topic, relays)
            if relays:
                return False
        cached.checked_at = self._change_number
        return True


def _queues_of(bound: object, topic: bytes) -> list[bytes]:
    """Return the light queues that something which is bound stands for."""
    return [bound] if isinstance(bound, bytes) else cast("Relay", bound).names(topic)
