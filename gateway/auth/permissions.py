"""What a user may do; pure questions, asked once for each distinct topic of a batch and each name of an operation."""

from __future__ import annotations


class Permissions:
    """May this user publish, subscribe, make and remove things; topics and filters are in MQTT's form."""

    __slots__ = ("_configure", "_publish", "_subscribe", "version")

    def __init__(self, *, publish: bool = True, subscribe: bool = True, configure: bool = True) -> None:
        self._publish = publish
        self._subscribe = subscribe
        self._configure = configure
        self.version = 0  # another one: what was answered before may be wrong

    def become(self, other: Permissions) -> None:
        """Allow what `other` allows, from the next question on."""
        self._publish = other._publish
        self._subscribe = other._subscribe
        self._configure = other._configure
        self.version += 1

    def may_publish(self, topic: bytes) -> bool:
        """Return whether messages may be sent to `topic`."""
        return self._publish and bool(topic)

    def may_subscribe(self, topic_filter: bytes) -> bool:
        """Return whether all that matches `topic_filter` may be read."""
        return self._subscribe and bool(topic_filter)

    def reads_less_than(self, other: Permissions) -> bool:
        """Return whether something that `other` may read may not be read by these."""
        return other._subscribe and not self._subscribe

    def may_enter(self, vhost: bytes) -> bool:
        """Return whether the virtual host may be used at all."""
        del vhost
        return True

    def may_configure(self, vhost: bytes, name: bytes) -> bool:
        """Return whether the queue, exchange, topic or group `name` may be made, changed or removed."""
        del vhost, name
        return self._configure

    def may_write(self, vhost: bytes, name: bytes) -> bool:
        """Return whether messages may be sent to the exchange or topic `name`."""
        del vhost, name
        return self._publish

    def may_bind(self, vhost: bytes, name: bytes) -> bool:
        """Return whether a binding may be made that leads to the queue or exchange `name`."""
        del vhost, name
        return self._configure

    def may_read(self, vhost: bytes, name: bytes) -> bool:
        """Return whether the queue or topic `name` may be read, or the exchange be bound from."""
        del vhost, name
        return self._subscribe


ALL = Permissions()
