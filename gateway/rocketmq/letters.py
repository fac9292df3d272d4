"""Which dead letters of a group wait: those that were sent back stay on its topic until the log loses them."""

from __future__ import annotations

from typing import NamedTuple

from core.broker import Broker
from gateway.rocketmq.topic_table import DEAD_PREFIX, SENT_GROUP, TopicTable, queue_key


class Waiting(NamedTuple):
    """The letters of one group that were not sent back: offsets [first, end) of a queue, -1 where none ever came."""

    key: bytes
    queue_ref: int
    first: int
    end: int


class Letters:
    """Knows how far the letters of each group were sent back.

    Args:
        broker: Keeps the places.
        topics: Say which groups have letters.
    """

    def __init__(self, broker: Broker, topics: TopicTable) -> None:
        self._broker = broker
        self._topics = topics
        self.moving: set[bytes] = set()  # topics whose letters are being sent back

    def find(self, topic: bytes) -> Waiting | None:
        """Return what waits on a topic of dead letters, whose queue is open; None where there is no such topic."""
        if not topic.startswith(DEAD_PREFIX) or self._topics.find(topic) is None:
            return None
        broker, key = self._broker, queue_key(topic, 0)
        queue_ref = broker.find_queue(key)
        if queue_ref < 0:
            return Waiting(key, -1, 0, 0)
        first, end = broker.min_offset(queue_ref), broker.max_offset(queue_ref)
        return Waiting(key, queue_ref, min(max(first, broker.consumer_offsets.get(SENT_GROUP, key) or 0), end), end)

    def note_sent(self, topic: bytes, next_offset: int) -> None:
        """Count the letters before an offset as sent back."""
        self._broker.consumer_offsets.commit(SENT_GROUP, queue_key(topic, 0), next_offset)
