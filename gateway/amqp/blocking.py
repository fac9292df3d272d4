"""How a connection is held back while there is no room: `connection.blocked`, as RabbitMQ does it."""

from __future__ import annotations

from pamqp.commands import Connection as Method

from core.message import PublishBatch
from gateway.amqp.connection import AmqpConnection
from gateway.amqp.output import ConnectionOutput
from gateway.amqp.publishing import body_bytes
from gateway.amqp.states import State
from gateway.net.held_publishers import HeldPublishers
from gateway.pacing import Pacing

LOW_DISK, LOW_MEMORY = "low on disk", "low on memory"


class Blocking:
    """Holds back a connection that publishes, and tells the client, if it asked for that (`connection.blocked`).

    A connection that has published is held at once when the room gets low, any other when it publishes. One that was
    held counts as publishing when it publishes again.

    Args:
        held: The door's.
        output: The connection's.
    """

    __slots__ = ("_connection", "_held", "_output", "_paused", "_until_ms", "is_paused", "pacing", "transport")

    def __init__(self, held: HeldPublishers, output: ConnectionOutput) -> None:
        self.transport = output.transport
        self._held = held
        self._output = output
        self._connection: AmqpConnection | None = None  # None: it does not publish
        self.pacing: Pacing | None = None  # where there is a limit to what it may publish
        self.is_paused = False  # it was too fast, and is not read for a while
        self._paused: AmqpConnection | None = None
        self._until_ms = 0

    def note_published(self, connection: AmqpConnection, batch: PublishBatch, now_ms: int) -> None:
        """Take note that messages came on this connection; those that are too fast are cut off."""
        if self._connection is None:
            self._connection = connection
            self._held.note_publisher(self)
        if self.pacing is not None:
            batch.count = min(batch.count, self.pacing.allow(now_ms))

    def note_taken(self, connection: AmqpConnection, batch: PublishBatch, now_ms: int) -> None:
        """Take note of messages that were taken; a connection that is too fast is not read for a while."""
        if self.pacing is not None and self.pacing.note(batch.count, body_bytes(batch), now_ms):
            self.pause(connection, self.pacing.until_ms)

    def pause(self, connection: AmqpConnection, until_ms: int) -> None:
        """Do not read the connection until a moment."""
        self.is_paused = True
        self._until_ms = until_ms
        self._paused = connection
        self.transport.hold_reading()
        connection.heartbeat.pause()
        self.transport.deadline_changed()

    def end_pause(self, now_ms: int) -> None:
        """Read on, if a pause is over; not while the connection is held."""
        if self.is_paused and now_ms >= self._until_ms:
            self.is_paused = False
            connection, self._paused = self._paused, None
            if connection is not None and not self._held.is_held(self):
                connection.heartbeat.resume(now_ms)
                self.transport.release_reading()
                self.transport.request_turn()

    def next_deadline_ms(self, connection: AmqpConnection | None) -> int | None:
        """Return the end of a pause, or the connection's own deadline where that is earlier; 0: it has not begun."""
        found = 0 if connection is None else connection.next_deadline_ms()
        pace = self._output.pace
        for until_ms in (self._until_ms if self.is_paused else 0, 0 if pace is None else pace.until_ms):
            if until_ms and (found is None or until_ms < found):
                found = until_ms
        return found

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
        if self.pacing is not None or self._output.pace is not None:  # a pause is over, too
            self.is_paused = False
            self.transport.request_turn()
        if "connection.blocked" in connection.client_capabilities:
            connection.send_method(0, Method.Unblocked())
            self._output.flush()
