"""Topic aliases that the gateway gives on one connection: to the topics that come most often."""

from __future__ import annotations

ALIAS_COUNT_MAX = 64  # given on one connection, where the client takes as many
ALIAS_BYTES_MAX = 16_384  # of all topics with an alias: what a connection may cost, ALIAS_COUNT_MAX of 256 bytes
TOPIC_BYTES_MIN = 6  # a shorter topic costs about as much as its alias
COUNTED_MAX = 256  # topics without an alias that are counted at a time: four times those that get one
PERIOD = 1_024  # messages after which counts are halved
_BYTES_MAX = ALIAS_BYTES_MAX
_TOPIC_BYTES_MIN = TOPIC_BYTES_MIN
_COUNTED_MAX = COUNTED_MAX
_PERIOD = PERIOD


class TopicAlias:
    """One alias: the topic that it is of, and how often that came of late."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.topic = b""
        self.uses = 0


class TopicAliases:
    """The aliases of one connection.

    A topic is given one when it comes a second time, while there are some left; after that one passes on to a topic
    that comes more than twice as often. What is found is to be sent, in the order of the calls.

    Args:
        count_max: How many the client takes, at least 1.
    """

    def __init__(self, count_max: int) -> None:
        self.count_max = min(count_max, ALIAS_COUNT_MAX)
        self._by_topic: dict[bytes, TopicAlias] = {}
        self._counts: dict[int, int] = {}  # of topics without one, by hash
        self._bytes = 0
        self._left = _PERIOD

    def find(self, topic: bytes) -> int:
        """Count a topic; return its alias, negative where the client is to be told what it means, 0 for none."""
        if len(topic) < _TOPIC_BYTES_MIN or len(topic) > _BYTES_MAX:
            return 0
        self._left -= 1
        if self._left <= 0:
            self._age()
        alias = self._by_topic.get(topic)
        if alias is not None:
            alias.uses += 1
            return alias.number
        return self._count(topic)

    def _count(self, topic: bytes) -> int:
        """Count a topic that has no alias; give it one where it has earned it."""
        key = hash(topic)
        count = self._counts.get(key, 0) + 1
        alias = self._take_alias(count, len(topic)) if count > 1 else None
        if alias is None:
            if len(self._counts) >= _COUNTED_MAX and key not in self._counts:
                self._counts.clear()
            self._counts[key] = count
            return 0
        self._counts.pop(key, None)
        self._bytes += len(topic)
        alias.topic = topic
        alias.uses = count
        self._by_topic[topic] = alias
        return -alias.number

    def _take_alias(self, count: int, size: int) -> TopicAlias | None:
        """Return a free alias, or one of a topic that comes less than half as often; None where neither is."""
        has_room = self._bytes + size <= _BYTES_MAX
        if len(self._by_topic) < self.count_max and has_room:
            return TopicAlias(len(self._by_topic) + 1)
        if count & (count - 1):  # the least used is looked for after 2, 4, 8 and so on
            return None
        least = min(self._by_topic.values(), key=_uses)
        if 2 * least.uses >= count or self._bytes - len(least.topic) + size > _BYTES_MAX:
            return None
        self._bytes -= len(least.topic)
        del self._by_topic[least.topic]
        return least

    def _age(self) -> None:
        """Halve what was counted, so that it tells of late times."""
        self._left = _PERIOD
        for alias in self._by_topic.values():
            alias.uses >>= 1
        self._counts = {key: count >> 1 for key, count in self._counts.items() if count > 1}


def _uses(alias: TopicAlias) -> int:
    return alias.uses
