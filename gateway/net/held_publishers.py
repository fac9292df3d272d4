"""The connections of one door that are held back while the disk is low on room: nothing that they publish is stored."""

from __future__ import annotations

import select
from typing import Protocol

from core.metrics import DoorMetrics
from core.room import Room
from gateway.net.protocol import Transport


class HeldConnection(Protocol):
    """A connection that may be held back."""

    @property
    def transport(self) -> Transport:
        """Its output, and the switch for its input."""

    def on_held(self) -> None:
        """It is held back: it stores nothing that the peer sends, and mostly reads nothing (`hold_reading`).

        The peer's silence is no fault of the peer's.
        """

    def on_released(self, now_ms: int) -> None:
        """It goes on."""


class PublishingConnection(HeldConnection, Protocol):
    """A connection that is to be held back as soon as the room is low."""

    def hold_if_low(self) -> None:
        """Have it held back, if the room is low and it can be now."""


class HeldPublishers:
    """Holds connections back, and lets all go on when the room is enough again.

    What was read of a connection before it is held is stored and acknowledged. Deliveries to it go on.
    """

    def __init__(self, room: Room, metrics: DoorMetrics) -> None:
        self.room = room
        self._metrics = metrics
        self._publishers: dict[HeldConnection, PublishingConnection] = {}
        self._held: dict[HeldConnection, None] = {}  # in their order
        self._transports: set[Transport] = set()  # theirs
        room.watch(self._hold_publishers, self._release_all)

    def note_publisher(self, connection: PublishingConnection) -> None:
        """Hold a connection as soon as the room is low, and not only when it publishes; until it was held once."""
        self._publishers[connection] = connection

    def hold(self, connection: HeldConnection) -> None:
        """Store nothing of a connection until the room is enough again; harmless where that is so already."""
        if connection in self._held:
            return
        self._held[connection] = None
        self._transports.add(connection.transport)
        self._metrics.publishers_held += 1
        self._metrics.holds += 1
        connection.on_held()
        connection.transport.deadline_changed()

    def is_held(self, connection: HeldConnection) -> bool:
        """Return whether a connection is held back."""
        return connection in self._held

    def is_held_at(self, transport: Transport) -> bool:
        """Return whether the connection of a transport is held back."""
        return transport in self._transports

    def forget(self, connection: HeldConnection) -> None:
        """Forget a connection that is gone."""
        self._publishers.pop(connection, None)
        if connection in self._held:
            del self._held[connection]
            self._transports.discard(connection.transport)
            self._metrics.publishers_held -= 1

    def read_departed(self) -> None:
        """Read on where the peer has closed its side: what it had sent is here already, and only the end follows.

        A socket that is not read does not say that its peer is gone: clients that connect, publish and leave would pile
        up until no file is left to be opened.
        """
        poll = select.poll()
        held = {connection.transport.fileno(): connection for connection in self._held}
        held.pop(-1, None)
        for fd in held:
            poll.register(fd, select.POLLRDHUP)
        for fd, _ in poll.poll(0):
            held[fd].transport.release_reading()

    def _hold_publishers(self) -> None:
        for connection in list(self._publishers.values()):
            connection.hold_if_low()

    def _release_all(self, now_ms: int) -> None:
        held, self._held = self._held, {}
        self._transports.clear()
        self._metrics.publishers_held = 0
        for connection in held:
            self._publishers.pop(connection, None)
            connection.on_released(now_ms)
            connection.transport.release_reading()
            connection.transport.deadline_changed()
