"""A client that comes when there are too many, or too fast, or memory is low: it is told so once it opens.

Nobody looks at its login: only a client that is through with the handshake is certain to hear connection.close.
"""

from __future__ import annotations

from pamqp.commands import Connection

from gateway.amqp.connection import AmqpConnection
from gateway.amqp.errors import AmqpError, PeerSilentError
from gateway.amqp.events import LoginAsked, OpenAsked
from gateway.amqp.offer import limits_of
from gateway.amqp.reply_codes import ReplyCode
from gateway.amqp.services import AmqpServices
from gateway.net.protocol import ConnectionHandler, Transport
from gateway.net.watermarks import MEMORY_LOW
from gateway.version import VERSION

WAIT_MS = 2_000  # for its handshake; chosen: a client goes through with it at once
BYTES_MAX = 16 * 1_024  # of it: two frames of the largest size before both sides agreed; one that sends more is closed
RATES = "connects_rate"  # with this word ends the name of each limit to how fast connections come


class TurnedAway(ConnectionHandler):
    """Such a connection.

    Args:
        door: What it would have been offered, without mechanisms that go in steps.
        transport: Its.
    """

    __slots__ = ("_connection", "_door", "_left_bytes", "_transport")

    def __init__(self, door: AmqpServices, transport: Transport) -> None:
        self._door = door
        self._transport = transport
        self._connection: AmqpConnection | None = None  # begins with the first bytes, which tell the time
        self._left_bytes = BYTES_MAX

    def _begin(self, now_ms: int) -> AmqpConnection:
        if self._connection is None:
            door = self._door
            is_certified = bool(self._transport.peer_name)
            limits = limits_of(door.settings, door.broker.message_bytes_max, is_certified=is_certified)
            limits.handshake_ms = WAIT_MS
            self._connection = AmqpConnection(limits, door.cutters, now_ms, VERSION, door.metrics)
        return self._connection

    def on_data(self, data: bytes, now_ms: int) -> bool:
        """Go on with the handshake; refuse the client where it opens its virtual host."""
        connection = self._begin(now_ms)
        self._left_bytes -= len(data)
        connection.receive_data(data, now_ms)
        for event in connection.events():
            if isinstance(event, OpenAsked):
                connection.fail(reason_of(self._transport.refusal), None)
            elif isinstance(event, LoginAsked):
                connection.accept_login(b"")
        if self._left_bytes < 0:
            connection.receive_eof()
        self._send(connection)
        return False

    def go_on(self, now_ms: int) -> bool:
        """Nothing is left to be done."""
        del now_ms
        return False

    def on_eof(self, now_ms: int) -> None:
        """It gave up."""
        connection = self._begin(now_ms)
        connection.receive_eof()
        self._send(connection)

    def on_writable(self, now_ms: int) -> None:
        """Nothing waits."""

    def on_closed(self, now_ms: int) -> None:
        """Nothing is known of it elsewhere."""

    def on_timer(self, now_ms: int) -> None:
        """Close a connection that does not go on."""
        connection = self._begin(now_ms)
        try:
            connection.handle_timer(now_ms)
        except PeerSilentError:
            self._send(connection)

    def next_deadline_ms(self) -> int | None:
        """Return when it is to have gone on; at once while the time is not known."""
        return 0 if self._connection is None else self._connection.next_deadline_ms()

    def _send(self, connection: AmqpConnection) -> None:
        said = connection.data_to_send()
        if said:
            self._transport.write(said)
        if connection.is_closed:
            self._transport.finish()


def reason_of(refusal: str) -> AmqpError:
    """Return what a client is told that is refused, by the reason that the log names."""
    index = Connection.Open.index
    if refusal == MEMORY_LOW:
        return AmqpError(ReplyCode.RESOURCE_ERROR, "memory is low: no new connections, try again later", index)
    if refusal.endswith(RATES):
        return AmqpError(ReplyCode.CONNECTION_FORCED, "too many connections come at once, try again later", index)
    return AmqpError(ReplyCode.NOT_ALLOWED, "connection refused: connection limit is reached", index)
