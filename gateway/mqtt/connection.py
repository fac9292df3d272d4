"""The state machine of one MQTT socket: bytes in, events out, and the two times that bound a silent peer."""

from __future__ import annotations

from gateway.mqtt.answers import PINGRESP_BYTES, encode_connack
from gateway.mqtt.codec import MORE, PACKET, PINGS as PING_RUN, PUBLISHES as PUBLISH_RUN, PacketReader, RunColumns
from gateway.mqtt.errors import ConnectTimeoutError, KeepAliveTimeoutError, ProtocolViolationError
from gateway.mqtt.events import ACKS, PINGS, PUBLISHES, Event
from gateway.mqtt.packets import (
    CONNECT,
    CONNECT_BYTES_MAX,
    OLD_LEVEL,
    Connect,
    Disconnect,
    decode_packet,
)
from gateway.mqtt.reason_codes import ConnectCode

_MORE = MORE
_PACKET = PACKET
_PUBLISH_RUN = PUBLISH_RUN
_PING_RUN = PING_RUN
_NEVER = -1


class MqttConnection:
    """One socket, from its first byte to its last.

    After each `receive_data`, ask `next_event` until it says None. An error ends the connection; `data_to_send` may
    still hold its last words. After `stop` and after a DISCONNECT nothing more comes. After a CONNECT nothing comes
    until `accept`: what came with it and after it waits.

    Args:
        columns: Where runs are decoded; shared by all connections of a door.
        packet_bytes_max: Largest packet once connected.
        connect_timeout_ms: How long it may take until the peer is let in, from the first call that tells the time.
    """

    def __init__(self, columns: RunColumns, packet_bytes_max: int, connect_timeout_ms: int) -> None:
        self.level = 0
        self.is_connected = False  # the client is let in
        self.is_waiting = False  # a CONNECT came, and the client is not let in yet
        self._reader = PacketReader(columns, CONNECT_BYTES_MAX + 5)
        self._packet_bytes_max = packet_bytes_max
        self._keep_alive_s = 0
        self._connect_timeout_ms = connect_timeout_ms
        self._deadline_ms = 0  # at once: then it is known what time it is
        self._patience_ms = 0  # one and a half times the keep-alive, 0 for none
        self._last_data_ms = 0
        self._is_stopped = False
        self._is_held = False
        self._late = b""  # came while the login was waited for
        self._out = bytearray()

    def receive_data(self, data: bytes, now_ms: int) -> None:
        """Take what the socket gave.

        Raises:
            MqttError: The bytes go on with a packet that cannot be.
        """
        if self._is_stopped:
            return
        self._last_data_ms = now_ms
        if self._deadline_ms == 0:
            self._deadline_ms = now_ms + self._connect_timeout_ms
        if self.is_waiting:
            self._late += data
        else:
            self._reader.receive_data(data)

    @property
    def has_more(self) -> bool:
        """Whether there is something that waits for the login."""
        return bool(self._late) or self._reader.has_more

    def note_heard(self, now_ms: int) -> None:
        """What the peer sent before waited here until now: it is not silent."""
        self._last_data_ms = now_ms

    def receive_eof(self) -> None:
        """Take note that the peer sends no more."""
        self.stop()

    def stop(self) -> None:
        """Take nothing more from the peer and run no deadline."""
        self._is_stopped = True
        self.is_waiting = False
        self._deadline_ms = _NEVER
        self._patience_ms = 0

    def hold(self) -> None:
        """Nothing is read from the peer from now on: its silence is no fault of its."""
        self._is_held = True

    def release(self, now_ms: int) -> None:
        """The peer is heard again: its keep-alive starts anew."""
        self._is_held = False
        self._last_data_ms = now_ms

    def next_event(self) -> Event | None:
        """Return what comes next, or None where the bytes are used up.

        Raises:
            MqttError: The peer broke a rule; the events before have been returned.
        """
        while not (self._is_stopped or self.is_waiting):
            found = self._reader.read_next()
            if found == _MORE:
                if not self._late:
                    return None
                self._take_late()
                continue
            if found == _PACKET or not self.is_connected:
                return self._take_packet(found)
            if found == _PING_RUN:
                self._out += PINGRESP_BYTES * self._reader.columns.ping_count
                return PINGS
            return PUBLISHES if found == _PUBLISH_RUN else ACKS
        return None

    def unread_publishes(self) -> None:
        """Give back what the batch has no more, because it was cut."""
        self._reader.unread_publishes()

    def _take_late(self) -> None:
        late, self._late = self._late, b""
        self._reader.receive_data(late)

    def _take_packet(self, found: int) -> Event:
        reader = self._reader
        is_connect = found == _PACKET and reader.packet_type == CONNECT
        if is_connect and self.is_connected:
            raise ProtocolViolationError("MQTT-3.1.0-2", "a second CONNECT")
        if not is_connect and not self.is_connected:
            raise ProtocolViolationError("MQTT-3.1.0-1", "the first packet is no CONNECT")
        event = decode_packet(reader.packet_type, reader.take_body())
        if isinstance(event, Connect):
            self._open(event)
        elif isinstance(event, Disconnect):
            self.stop()
        return event

    def _open(self, connect: Connect) -> None:
        if not connect.level:
            self._out += encode_connack(ConnectCode.UNACCEPTABLE_PROTOCOL, session_present=False)
            raise ProtocolViolationError("MQTT-3.1.2-2", "a protocol level that is not spoken here")
        self.is_waiting = True
        self.level = connect.level
        self._keep_alive_s = connect.keep_alive_s

    def accept(self, now_ms: int) -> None:
        """The client is let in: its packets are taken, and its keep-alive begins."""
        self.is_waiting = False
        self.is_connected = True
        self._reader.is_old = self.level == OLD_LEVEL
        self._reader.packet_bytes_max = self._packet_bytes_max
        self._deadline_ms = _NEVER
        self._last_data_ms = now_ms
        self._patience_ms = self._keep_alive_s * 1500

    def data_to_send(self) -> bytes:
        """Return what the connection itself has to say, each byte once."""
        if not self._out:
            return b""
        out, self._out = bytes(self._out), bytearray()
        return out

    def next_deadline_ms(self) -> int | None:
        """Return when `handle_timer` is due."""
        if self._patience_ms and not self._is_held:
            return self._last_data_ms + self._patience_ms
        return None if self._deadline_ms == _NEVER else self._deadline_ms

    def handle_timer(self, now_ms: int) -> None:
        """Check that the peer is not overdue.

        Raises:
            ConnectTimeoutError, KeepAliveTimeoutError: It is.
        """
        deadline_ms = self.next_deadline_ms()
        if deadline_ms is None or now_ms < deadline_ms:
            return
        if deadline_ms == 0:
            self._deadline_ms = now_ms + self._connect_timeout_ms
            return
        if self.is_connected:
            raise KeepAliveTimeoutError("MQTT-3.1.2-24", f"nothing heard for {now_ms - self._last_data_ms} ms")
        if self.is_waiting:
            self._out += encode_connack(ConnectCode.SERVER_UNAVAILABLE, session_present=False)
            raise ConnectTimeoutError("MQTT-3.1.4-1", "the login takes too long")
        raise ConnectTimeoutError("MQTT-3.1.4-1", "no CONNECT in time")
