"""How a connection is held back while there is no room: `connection.blocked`, as RabbitMQ does it."""

from __future__ import annotations

from pamqp.commands import Connection as Method

from gateway.amqp.connection import AmqpConnection
from gateway.amqp.output import ConnectionOutput
from gateway.amqp.states import State
from gateway.net.held_publishers import HeldPublishers

LOW_DISK, LOW_MEMORY = "low on disk", "low on memory"


class Blocking:
    """Holds a connection back that publishes, and tells the client if it said that it wants to know.

    A connection that has published is held at once when the room gets low, any other when it publishes. One that was
    held counts as publishing when it publishes again.

    Args:
        held: The door's.
        output: The connection's.
    """

    __slots__ = ("_connection", "_held", "_output", "transport")

    def __init__(self, held: HeldPublishers, output: ConnectionOutput) -> None:
        self.transport = output.transport
        self._held = held
        self._output = output
        self._connection: AmqpConnection | None = None  # None: it does not publish

    def note_published(self, connection: AmqpConnection) -> None:
        """Take note that messages came on this connection."""
        if self._connection is None:
            self._connection = connection
            self._held.note_publisher(self)

    def hold_if_low(self) -> None:
        """Hold the connection back, if it publishes and the room is low; what was read of it has been handled."""
        connection = self._connection
        if connection is not None and self._held.room.is_low and connection.state == State.OPEN:
            self._held.hold(self)

    def end(self) -> None:
        """The connection is gone."""
        self._connection = None
        self._held.forget(self)

    def on_held(self) -> None:
        """Say so, and do not wait for heartbeats that are not read."""
        connection = self._connection
        assert connection is not None
        self.transport.hold_reading()
        connection.heartbeat.pause()
        if "connection.blocked" in connection.client_capabilities:
            connection.send_method(0, Method.Blocked(LOW_DISK if self._held.room.is_disk_low else LOW_MEMORY))
            self._output.flush()

    def on_released(self, now_ms: int) -> None:
        """Say so, and wait for heartbeats from now on."""
        connection, self._connection = self._connection, None
        assert connection is not None
        connection.heartbeat.resume(now_ms)
        if "connection.blocked" in connection.client_capabilities:
            connection.send_method(0, Method.Unblocked())
            self._output.flush()
