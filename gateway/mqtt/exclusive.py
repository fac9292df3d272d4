"""Exclusive subscriptions: `$exclusive/filter` is one session's at a time.

It excludes other exclusive subscriptions to the same filter, and no others. It is free again when its session gives it
up or ends: a durable session keeps it while its client is away.
"""

from __future__ import annotations

from gateway.mqtt.topics import EXCLUSIVE_PREFIX


class Exclusive:
    """Which session has which exclusive subscription."""

    def __init__(self) -> None:
        self._holders: dict[bytes, bytes] = {}  # clients, by filter

    def is_free(self, topic_filter: bytes) -> bool:
        """Return whether a filter, of whatever form, may be subscribed to by one more session."""
        return topic_filter not in self._holders

    def take(self, client_id: bytes, topic_filter: bytes) -> None:
        """Note whose an exclusive subscription is; harmless for any other."""
        if topic_filter.startswith(EXCLUSIVE_PREFIX):
            self._holders[topic_filter] = client_id

    def give_back(self, client_id: bytes, topic_filter: bytes) -> None:
        """Let an exclusive subscription be had by others; harmless for any other."""
        if self._holders.get(topic_filter) == client_id:
            del self._holders[topic_filter]
