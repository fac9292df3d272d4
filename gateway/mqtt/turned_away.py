"""A client that comes when there are too many, or too fast: its CONNECT is answered, and that is all."""

from __future__ import annotations

from gateway.mqtt.connection import MqttConnection
from gateway.mqtt.errors import MqttError
from gateway.mqtt.events import RunPool
from gateway.mqtt.packets import Connect
from gateway.mqtt.properties import Property
from gateway.mqtt.reason_codes import ConnectCode, ReasonCode
from gateway.net.paces import DOOR_FAST
from gateway.net.protocol import ConnectionHandler, Transport

WAIT_MS = 2_000  # for its CONNECT; chosen: a client sends it at once
CONNECT_BYTES_MAX = 16 * 1024  # a client that sends more is closed without an answer
REFUSAL_BYTES = 5  # of a CONNACK that refuses


class TurnedAway(ConnectionHandler):
    """Such a connection.

    Args:
        pool: The door's.
        transport: Its.
    """

    __slots__ = ("_connection", "_left_bytes", "_transport")

    def __init__(self, pool: RunPool, transport: Transport) -> None:
        self._connection = MqttConnection(pool, CONNECT_BYTES_MAX, WAIT_MS)
        self._transport = transport
        self._left_bytes = CONNECT_BYTES_MAX

    def on_data(self, data: bytes, now_ms: int) -> bool:
        """Answer a CONNECT; close as soon as it is answered, or can be none."""
        self._left_bytes -= len(data)
        try:
            self._connection.receive_data(data, now_ms)
            event = next(self._connection.events(), None)
        except MqttError:
            self._end()
            return False
        if isinstance(event, Connect):
            if event.properties.number(Property.PACKET_BYTES_MAX, REFUSAL_BYTES) >= REFUSAL_BYTES:
                is_fast = self._transport.refusal.endswith(DOOR_FAST)
                reason = ReasonCode.CONNECTION_RATE_EXCEEDED if is_fast else ReasonCode.QUOTA_EXCEEDED
                self._connection.say_no(ConnectCode.SERVER_UNAVAILABLE, reason)
            self._end()
        elif self._left_bytes < 0:
            self._end()
        return False

    def go_on(self, now_ms: int) -> bool:
        """Nothing is left to be done."""
        del now_ms
        return False

    def on_eof(self, now_ms: int) -> None:
        """It gave up."""
        del now_ms
        self._end()

    def on_writable(self, now_ms: int) -> None:
        """Nothing waits."""

    def on_closed(self, now_ms: int) -> None:
        """Nothing is known of it elsewhere."""

    def on_timer(self, now_ms: int) -> None:
        """Close a connection that does not say what it is."""
        try:
            self._connection.handle_timer(now_ms)
        except MqttError:
            self._end()

    def next_deadline_ms(self) -> int | None:
        """Return when it is to have said so."""
        return self._connection.next_deadline_ms()

    def _end(self) -> None:
        said = self._connection.data_to_send()
        self._connection.stop()
        if said:
            self._transport.write(said)
        self._transport.close()
