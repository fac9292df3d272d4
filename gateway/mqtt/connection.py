"""The state machine of one MQTT socket: bytes in, events out, and the two times that bound a silent peer."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.mqtt.answers import PINGRESP_BYTES, Items, encode_auth, encode_connack, encode_disconnect
from gateway.mqtt.codec import (
    ACKS,
    MORE,
    PACKET,
    PINGS,
    PUBLISHES,
    PacketReader,
)
from gateway.mqtt.errors import ConnectTimeoutError, KeepAliveTimeoutError, MqttError, ProtocolViolationError
from gateway.mqtt.events import Event, PingRun, PublishRun, RunPool, make_ack_run, make_publish_run
from gateway.mqtt.packets import (
    AUTH,
    CONNECT,
    CONNECT_BYTES_MAX,
    DISCONNECT,
    HEAD_OF_5,
    LEVEL_5,
    OLD_LEVEL,
    Connect,
    Subscribe,
    decode_packet,
    subscribe_of_bridge,
)
from gateway.mqtt.properties import Property
from gateway.mqtt.reason_codes import REASON_BY_CONNECT_CODE, ConnectCode, ReasonCode
from gateway.mqtt.states import State, Step, follow

_MORE = MORE
_PACKET = PACKET
_PUBLISHES = PUBLISHES
_ACKS = ACKS
_PINGS = PINGS
_NEW = int(State.NEW)
_LOGIN = int(State.LOGIN)
_PROVING = int(State.PROVING)
_OPEN = int(State.OPEN)
_OVER = int(State.OVER)
_NEVER = -1
REASON_BYTES_MAX = 256  # of the text that a DISCONNECT gives; chosen: a sentence
AUTH_BYTES_MAX = 8_192  # of a packet while the client proves its name: as many as a password may have
DISCONNECT_BYTES = 4  # of one that gives no text
REASSURE_MS = 5_000  # half of the shortest time that a usual client waits for a PINGRESP
_STEPS = {CONNECT: Step.CONNECT, DISCONNECT: Step.DISCONNECT, AUTH: Step.AUTH}  # by packet type; any other is a PACKET
_ANY_STEP = Step.PACKET
_ACCEPT_STEP = Step.ACCEPT
_STOP_STEP = Step.STOP


class MqttConnection:
    """One socket, from its first byte to its last.

    After each `receive_data`, go through `events`. An error ends the connection; `data_to_send` may still hold its last
    words. After `stop` and after a DISCONNECT nothing more comes. After a CONNECT nothing comes until `accept`: what
    came with it and after it waits.

    Args:
        pool: Where runs are decoded; shared by all connections of a door.
        packet_bytes_max: Largest packet once connected.
        connect_timeout_ms: How long it may take until the peer is let in, from the first call that tells the time.
    """

    def __init__(self, pool: RunPool, packet_bytes_max: int, connect_timeout_ms: int) -> None:
        self.level = 0
        self.state = _NEW  # a `State`
        self._pool = pool
        self._reader = PacketReader(pool.show(), CONNECT_BYTES_MAX + 5)
        self._packet_bytes_max = packet_bytes_max
        self._keep_alive_s = 0
        self._connect_timeout_ms = connect_timeout_ms
        self._deadline_ms = 0  # at once: then it is known what time it is
        self._patience_ms = 0  # one and a half times the keep-alive, 0 for none
        self._last_data_ms = 0
        self._is_bridge = False
        self._is_held = False
        self._reassure_at_ms = 0  # when the peer gets its next PINGRESP unasked, 0 for never
        self._was_let_in = False
        self._told_bytes_max = 0  # largest packet that the peer takes, 0 for any
        self._late = b""  # came while the login was waited for
        self._out = bytearray()

    # In

    def receive_data(self, data: bytes, now_ms: int) -> None:
        """Take what the socket gave.

        Raises:
            MqttError: The bytes go on with a packet that cannot be, or begin with one that is no CONNECT.
        """
        if self.state > _OPEN:
            return
        self._last_data_ms = now_ms
        if self._deadline_ms == 0:
            self._deadline_ms = now_ms + self._connect_timeout_ms
        if self.state == _LOGIN:
            self._late += data
            return
        if data and self.state == _NEW and not self._reader.has_more:  # its packet may claim a length that never comes
            follow(_NEW, _STEPS.get(data[0] >> 4, _ANY_STEP))
        self._reader.receive_data(data)

    def receive_eof(self) -> None:
        """Take note that the peer sends no more."""
        self.stop()

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
        if self._reassure_at_ms:
            self._out += PINGRESP_BYTES
            self.reassure(now_ms)
            return
        if self.state == _OPEN:
            raise KeepAliveTimeoutError("MQTT-3.1.2-24", f"nothing heard for {now_ms - self._last_data_ms} ms")
        if self.state in {_LOGIN, _PROVING}:
            self.say_no(ConnectCode.SERVER_UNAVAILABLE)
            self.stop()
            raise ConnectTimeoutError("MQTT-3.1.4-1", "the login takes too long")
        raise ConnectTimeoutError("MQTT-3.1.4-1", "no CONNECT in time")

    # Out

    def events(self) -> Iterator[Event]:
        """Return what came, one event after the other; it ends where the bytes are used up, and goes on with more.

        Raises:
            MqttError: The peer broke a rule; the events before have been returned.
        """
        return self

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        while self.state != _LOGIN and self.state <= _OPEN:
            self._reader.columns = self._pool.show()
            found = self._reader.read_next()
            if self.state == _OPEN:
                if found == _PUBLISHES:
                    return make_publish_run(self._pool)
                if found == _ACKS:
                    return make_ack_run(self._pool)
            if found != _MORE:
                return self._take_packet(found)
            if not self._late:
                break
            self._take_late()
        raise StopIteration

    def unread(self, run: PublishRun) -> None:
        """Give back what the batch of the last event has no more, because it was cut."""
        self._reader.columns = run.columns
        self._reader.unread_publishes()

    def take_tail(self) -> bytes:
        """Give up the packet that is not all there; every event was taken."""
        return self._reader.take_tail()

    def data_to_send(self) -> bytes:
        """Return what the connection itself has to say, each byte once."""
        if not self._out:
            return b""
        out, self._out = bytes(self._out), bytearray()
        return out

    def next_deadline_ms(self) -> int | None:
        """Return when `handle_timer` is due."""
        if self._reassure_at_ms:
            return self._reassure_at_ms
        if self._patience_ms and not self._is_held:
            return self._last_data_ms + self._patience_ms
        return None if self._deadline_ms == _NEVER else self._deadline_ms

    @property
    def has_more(self) -> bool:
        """Whether there is something that waits for the login."""
        return bool(self._late) or self._reader.has_more

    def _take_late(self) -> None:
        late, self._late = self._late, b""
        self._reader.receive_data(late)

    def _take_packet(self, found: int) -> Event:
        reader = self._reader
        step = _STEPS.get(reader.packet_type, _ANY_STEP) if found == _PACKET else _ANY_STEP
        state = follow(self.state, step)
        if found == _PINGS:
            self._out += PINGRESP_BYTES * reader.columns.ping_count
            return PingRun(reader.columns.ping_count)
        body = reader.take_body()
        try:
            event = decode_packet(reader.packet_type, body, self.level)
        except MqttError as error:
            if reader.packet_type == CONNECT and body.startswith(HEAD_OF_5):
                self._out += encode_connack(error.code, session_present=False, level=LEVEL_5)
            raise
        if isinstance(event, Connect):
            self._note_connect(event)
        elif self._is_bridge and isinstance(event, Subscribe):
            event = subscribe_of_bridge(event)
        self.state = int(state)
        if self.state == _OVER:
            self.stop()
        return event

    def _note_connect(self, connect: Connect) -> None:
        if not connect.level:
            self._out += encode_connack(ConnectCode.UNACCEPTABLE_PROTOCOL, session_present=False)
            raise ProtocolViolationError("MQTT-3.1.2-2", "a protocol level that is not spoken here")
        self.level = connect.level
        self._is_bridge = connect.is_bridge
        self._keep_alive_s = connect.keep_alive_s

    # What the handler says

    def accept(self, now_ms: int, keep_alive_s: int = -1, told_bytes_max: int = 0, alias_max: int = 0) -> None:
        """The client is let in: its packets are taken, and its keep-alive, or another in its place, begins.

        It is told nothing in a packet that is larger than `told_bytes_max`, 0 for any, and may use `alias_max` topic
        aliases.
        """
        self.state = follow(self.state, _ACCEPT_STEP)
        if keep_alive_s >= 0:
            self._keep_alive_s = keep_alive_s
        self._was_let_in = True
        self._told_bytes_max = told_bytes_max
        self._reader.is_old = self.level == OLD_LEVEL
        self._reader.level = self.level
        self._reader.alias_max = alias_max
        self._reader.packet_bytes_max = self._packet_bytes_max
        self._deadline_ms = _NEVER
        self._last_data_ms = now_ms
        self._patience_ms = self._keep_alive_s * 1500

    def ask(self, items: Items) -> None:
        """Have the client go on with an enhanced authentication that its CONNECT began."""
        self.state = follow(self.state, Step.ASK)
        self._reader.level = self.level
        self._reader.packet_bytes_max = AUTH_BYTES_MAX
        self.say_auth(ReasonCode.CONTINUE_AUTHENTICATION, items)

    def say_auth(self, code: ReasonCode, items: Items) -> None:
        """Say what comes next in an enhanced authentication."""
        self._out += encode_auth(code, items)

    def say_welcome(self, *, session_present: bool, properties: Items) -> None:
        """Answer a CONNECT."""
        self._out += encode_connack(0, session_present=session_present, level=self.level, properties=properties)

    def say_no(self, code: ConnectCode, reason: ReasonCode | None = None) -> None:
        """Refuse a CONNECT; a client of MQTT 5 is told the reason, which mostly follows from the code."""
        is_5 = self.level == LEVEL_5
        told = (reason or REASON_BY_CONNECT_CODE[code]) if is_5 else code
        self._out += encode_connack(told, session_present=False, level=self.level)

    def say_why(self, code: ReasonCode, text: str = "") -> None:
        """Tell a client of MQTT 5 why its connection ends, once it was let in or was asked for more."""
        if self.state == _PROVING:
            told = ReasonCode.SERVER_UNAVAILABLE if code == ReasonCode.SERVER_SHUTTING_DOWN else code
            self._out += encode_connack(told, session_present=False, level=LEVEL_5)
        if self.level != LEVEL_5 or not self._was_let_in:
            return
        reason = text.encode()[:REASON_BYTES_MAX]
        said = encode_disconnect(code, [(Property.REASON, reason)] if reason else ())
        if self.takes(len(said)):
            self._out += said
        elif self.takes(DISCONNECT_BYTES):  # MQTT-3.14.2-3
            self._out += encode_disconnect(code)

    def takes(self, size: int) -> bool:
        """Return whether the peer takes a packet of `size` bytes."""
        return not 0 < self._told_bytes_max < size

    def stop(self) -> None:
        """Take nothing more from the peer and run no deadline."""
        self.state = follow(self.state, _STOP_STEP)
        self._deadline_ms = _NEVER
        self._patience_ms = 0
        self._reassure_at_ms = 0

    def note_heard(self, now_ms: int) -> None:
        """What the peer sent before waited here until now: it is not silent."""
        self._last_data_ms = now_ms

    def hold(self) -> None:
        """Nothing is read from the peer from now on: its silence is no fault of its."""
        self._is_held = True

    def reassure(self, now_ms: int) -> None:
        """Not even the pings of a peer that is held are read: it gets a PINGRESP at intervals until it is released.

        So its own keep-alive does not fail because of us. Clients take one that they did not ask for.
        """
        if self._patience_ms:
            self._reassure_at_ms = now_ms + min(self._keep_alive_s * 500, REASSURE_MS)

    def release(self, now_ms: int) -> None:
        """The peer is heard again: its keep-alive starts anew."""
        self._is_held = False
        self._reassure_at_ms = 0
        self._last_data_ms = now_ms
