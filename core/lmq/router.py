"""From a topic to the route of a message: the light queues of all filters that match, cached by topic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from core.lmq.topic_trie import TopicTrie, is_wildcard
from core.message import Route

CHANGES_MAX = 4096  # changed wildcard filters that cached routes are checked against, before all are dropped instead
EVICTED_AT_ONCE = 16  # one in so many routes goes when the cache is full


class Router:
    """Filters bound to light queues, and the routes that follow from them.

    A change of an exact filter drops the one route it touches. A wildcard filter that comes or goes is noted; a cached
    route is checked against the noted ones when it is asked for next, and made anew only if one of them matches.

    Args:
        make_route: Makes the route of a topic to the light queues of these names, which are distinct and sorted.
        cache_max: Routes that are kept; the oldest go first.
    """

    def __init__(self, make_route: Callable[[bytes, Sequence[bytes]], Route], cache_max: int) -> None:
        self.generation = 0  # counts changes: a front that keeps routes drops them when it is another
        self._make_route = make_route
        self._cache_max = cache_max
        self._trie = TopicTrie()
        self._routes: dict[bytes, tuple[Route, int]] = {}  # with the change that it was last checked against
        self._changes = TopicTrie()  # wildcard filter -> number of the change
        self._change_number = 0

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

    def route(self, topic: bytes) -> Route:
        """Return the route of `topic`, the same object until a binding changes what it says."""
        cached = self._routes.get(topic)
        if cached is not None and (cached[1] == self._change_number or self._is_still_right(topic, cached)):
            return cached[0]
        route = self._make_route(topic, self.matches(topic))
        if len(self._routes) >= self._cache_max:
            self._evict()
        self._routes[topic] = (route, self._change_number)
        return route

    def matches(self, topic: bytes) -> list[bytes]:
        """Return the names of the light queues that `topic` leads to, sorted, so that equal sets are recognised."""
        names: list[object] = []
        self._trie.match(topic, names)
        return sorted(cast("list[bytes]", names))

    def explain(self, topic: bytes) -> dict[bytes, dict[bytes, int]]:
        """Return the light queues that `topic` leads to, each with the filters that lead there and their bindings.

        Both are sorted by name.
        """
        found: dict[bytes, dict[bytes, int]] = {}
        for topic_filter, counts in sorted(self._trie.explain(topic).items()):
            for queue, count in cast("dict[bytes, int]", counts).items():
                found.setdefault(queue, {})[topic_filter] = count
        return {queue: found[queue] for queue in sorted(found)}

    def _note_change(self, topic_filter: bytes) -> None:
        self.generation += 1
        if not is_wildcard(topic_filter):
            self._routes.pop(topic_filter, None)
            return
        if not self._routes:
            return
        if len(self._changes) >= CHANGES_MAX:
            self._routes.clear()
            self._changes = TopicTrie()
            return
        self._change_number += 1
        self._changes.insert(topic_filter, self._change_number)

    def _is_still_right(self, topic: bytes, cached: tuple[Route, int]) -> bool:
        numbers: list[object] = []
        self._changes.match(topic, numbers)
        if any(cast("int", number) > cached[1] for number in numbers):
            return False
        self._routes[topic] = (cached[0], self._change_number)
        return True

    def _evict(self) -> None:
        """Drop the oldest routes, many at once, so that a full cache costs little for each new topic."""
        count = max(1, self._cache_max // EVICTED_AT_ONCE)
        for topic in list(self._routes)[:count]:
            del self._routes[topic]
