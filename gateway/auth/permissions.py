"""What a user may do; pure questions, asked once for each distinct topic of a batch."""

from __future__ import annotations


class Permissions:
    """May this user publish, subscribe, make and remove things."""

    __slots__ = ("_configure", "_publish", "_subscribe")

    def __init__(self, *, publish: bool = True, subscribe: bool = True, configure: bool = True) -> None:
        self._publish = publish
        self._subscribe = subscribe
        self._configure = configure

    def become(self, other: Permissions) -> None:
        """Allow what `other` allows, from the next question on."""
        self._publish = other._publish
        self._subscribe = other._subscribe
        self._configure = other._configure

    def may_publish(self, topic: bytes) -> bool:
        """Return whether messages may be sent to `topic`, in MQTT's form."""
        return self._publish and bool(topic)

    def may_subscribe(self, topic_filter: bytes) -> bool:
        """Return whether what matches `topic_filter` may be read."""
        return self._subscribe and bool(topic_filter)

    def reads_less_than(self, other: Permissions) -> bool:
        """Return whether something that `other` may read may not be read by these."""
        return other._subscribe and not self._subscribe

    def may_configure(self, vhost: bytes, name: bytes) -> bool:
        """Return whether the queue or exchange `name` may be made or removed."""
        del vhost, name
        return self._configure


ALL = Permissions()
