"""The MQTT door: events of connections to the broker, and sessions to connections."""

from __future__ import annotations

import logging
import secrets
from functools import partial
from typing import Protocol

from core.broker import Broker
from core.errors import LmqError
from core.properties import encode_origin
from gateway.auth.authenticator import Authenticator, Identity
from gateway.auth.permissions import Permissions
from gateway.mqtt.catch_up import CatchUps
from gateway.mqtt.codec import RunColumns
from gateway.mqtt.connection import MqttConnection
from gateway.mqtt.delivery import Delivery
from gateway.mqtt.errors import MqttError, reason_code
from gateway.mqtt.events import ACKS, PUBLISHES, Event
from gateway.mqtt.packets import (
    OLD_LEVEL,
    Connect,
    Disconnect,
    Subscribe,
    Unsubscribe,
    encode_connack,
    encode_suback,
    encode_unsuback,
)
from gateway.mqtt.publishing import PROTOCOL, Publishing
from gateway.mqtt.reason_codes import SUBSCRIBE_FAILURE, ConnectCode
from gateway.mqtt.session import Session
from gateway.mqtt.session_table import SessionTable, StoredWill
from gateway.mqtt.subscribing import Subscribing
from gateway.net.held_publishers import HeldPublishers
from gateway.net.protocol import ConnectionHandler, Transport

LOGGER = logging.getLogger(__name__)

LOGGED_BYTES_MAX = 128  # of what a client that is not let in says of itself


class Settings(Protocol):
    """What the door is told; `MqttSettings` has it."""

    @property
    def connect_timeout_ms(self) -> int:
        """How long a connection may take to send its CONNECT."""

    @property
    def packet_bytes_max(self) -> int:
        """Size of the largest packet."""

    @property
    def inflight_max(self) -> int:
        """Messages at QoS 1 sent and not acknowledged."""

    @property
    def lag_count_max(self) -> int:
        """Messages that a slow subscriber at QoS 0 may be behind."""

    @property
    def subscription_count_max(self) -> int:
        """Subscriptions of one session."""

    @property
    def client_id_bytes_max(self) -> int:
        """Size of the longest client identifier."""

    @property
    def session_expiry_s(self) -> int:
        """How long a session lives without a connection, 0 for ever."""


class MqttHandler(ConnectionHandler):
    """One connection of the door."""

    __slots__ = ("_connection", "_door", "_may", "_origin", "_unkept", "_will", "session", "transport")

    def __init__(self, door: MqttDoor, transport: Transport, connection: MqttConnection) -> None:
        self.transport = transport
        self.session: Session | None = None
        self._door = door
        self._connection = connection
        self._may: Permissions | None = None  # of who is connected
        self._origin = b""
        self._will: StoredWill | None = None
        self._unkept = 0  # answers that wait until a change is written down

    # The transport calls these.

    def on_data(self, data: bytes, now_ms: int) -> None:
        """Decode what came and act on it."""
        connection = self._connection
        try:
            connection.receive_data(data, now_ms)
            while (event := connection.next_event()) is not None:
                if event is PUBLISHES:
                    self._publish(now_ms)
                elif event is ACKS:
                    self._acknowledge()
                else:
                    self._take(event, now_ms)
        except MqttError as error:
            self._close_for(error.kind, str(error), now_ms)
        except LmqError as error:
            self._close_for(reason_code(error).name.lower(), str(error), now_ms)
        out = connection.data_to_send()
        if out:
            self.transport.write(out)

    def on_eof(self, now_ms: int) -> None:
        """The peer sends no more: its connection ends, and not by a DISCONNECT. What came is answered."""
        self._connection.receive_eof()
        if self._unkept:
            self._door.durability.when_kept(self.transport.close)
        else:
            self._door.durability.when_durable(self.transport.close)
        self._leave(now_ms)

    def on_writable(self, now_ms: int) -> None:
        """Go on with what waited for the output."""
        del now_ms
        self.transport.resume_reading()
        if self.session is not None:
            self._door.delivery.wake(self.session)

    def on_closed(self, now_ms: int) -> None:
        """Let go of the session."""
        self._connection.stop()
        self._leave(now_ms)
        self._door.forget(self)

    def on_timer(self, now_ms: int) -> None:
        """Close a connection whose peer is overdue."""
        try:
            self._connection.handle_timer(now_ms)
        except MqttError as error:
            self._close_for(error.kind, str(error), now_ms)

    def next_deadline_ms(self) -> int | None:
        """Return when the peer is overdue."""
        return self._connection.next_deadline_ms()

    # While the disk is low on room

    def on_held(self) -> None:
        """Do not wait for what is not read."""
        self._connection.hold()

    def on_released(self, now_ms: int) -> None:
        """Wait for the peer again."""
        self._connection.release(now_ms)

    # The data path

    def _publish(self, now_ms: int) -> None:
        door = self._door
        assert self._may is not None
        acks = door.publishing.publish_run(self._origin, self.transport.peer_host, self._may, now_ms)
        if acks:
            door.durability.when_stored(partial(self._send_acks, acks))
        if door.room.is_low:
            door.held.hold(self)

    def _send_acks(self, acks: bytes) -> None:
        transport = self.transport
        transport.write(acks)
        if not transport.is_writable:  # whoever does not read acknowledgements gets no more to be acknowledged
            transport.pause_reading()

    def _acknowledge(self) -> None:
        if self.session is not None:
            self._door.delivery.acknowledge(self.session, self._door.columns)

    # Control packets

    def _take(self, event: Event, now_ms: int) -> None:
        if isinstance(event, Connect):
            self._connect(event, now_ms)
        elif isinstance(event, Subscribe):
            self._subscribe(event)
        elif isinstance(event, Unsubscribe):
            self._unsubscribe(event)
        elif isinstance(event, Disconnect):
            self._forget_will()
            self._leave(now_ms)
            self.transport.close()

    def _connect(self, connect: Connect, now_ms: int) -> None:
        code, client_id = self._door.check_client_id(connect)
        identity = None
        if code is ConnectCode.ACCEPTED:
            identity = self._door.authenticate(connect, self.transport.peer)
            if identity is None:
                code = ConnectCode.NOT_AUTHORIZED if connect.user is None else ConnectCode.BAD_CREDENTIALS
        if identity is None:
            self._refuse(connect, code)
            return
        self._may = identity.may
        user = identity.user.encode()
        self._origin = encode_origin(PROTOCOL, client_id, user)
        self.session, is_present = self._door.attach(self, client_id, is_clean=connect.is_clean, now_ms=now_ms)
        if connect.will is not None:
            self._will = StoredWill(client_id, user, self.transport.peer_host, connect.will)
            self._door.sessions.keep_will(self._will)
        self.transport.write(encode_connack(ConnectCode.ACCEPTED, session_present=is_present))
        self.session.outlet = self.transport
        self._door.delivery.resume(self.session)

    def _refuse(self, connect: Connect, code: ConnectCode) -> None:
        LOGGER.info(
            "refused client conn=%d peer=%s client=%r code=%d",
            self.transport.conn_id,
            self.transport.peer,
            connect.client_id[:LOGGED_BYTES_MAX],
            code,
        )
        self._door.metrics.refuse(code.name.lower())
        self.transport.write(encode_connack(code, session_present=False))
        self._connection.stop()
        self.transport.close()

    def _subscribe(self, packet: Subscribe) -> None:
        assert self.session is not None
        assert self._may is not None
        door = self._door
        codes = door.subscribing.subscribe(self.session, packet, self._may)
        if SUBSCRIBE_FAILURE in codes:
            door.metrics.refuse("subscription", codes.count(SUBSCRIBE_FAILURE))
        self._when_kept(partial(self._subscribed, self.session, packet, codes))

    def _subscribed(self, session: Session, packet: Subscribe, codes: list[int]) -> None:
        self.transport.write(encode_suback(packet.packet_id, codes))
        if self.session is session:
            self._door.subscribing.start(session, packet, codes)

    def _unsubscribe(self, packet: Unsubscribe) -> None:
        assert self.session is not None
        self._door.subscribing.unsubscribe(self.session, packet)
        self._when_kept(partial(self._send_acks, encode_unsuback(packet.packet_id)))

    def _when_kept(self, callback: partial[None]) -> None:
        """Call back when a durable session's change is written down, at once for any other session."""
        if self.session is not None and self.session.is_persistent:
            self._unkept += 1
            self._door.durability.when_kept(partial(self._kept, callback))
        else:
            callback()

    def _kept(self, callback: partial[None]) -> None:
        self._unkept -= 1
        callback()

    # The end

    def take_over(self, now_ms: int) -> None:
        """Give way to a newer connection of the same client."""
        LOGGER.info("taken over by a new connection conn=%d peer=%s", self.transport.conn_id, self.transport.peer)
        self._connection.stop()
        self._leave(now_ms)
        self.transport.close()

    def shut_down(self, now_ms: int) -> None:
        """Close because the gateway stops."""
        self._connection.stop()
        self._leave(now_ms)
        self.transport.close()

    def _close_for(self, kind: str, text: str, now_ms: int) -> None:
        LOGGER.warning(
            "closing connection: %s conn=%d peer=%s reason=%s", text, self.transport.conn_id, self.transport.peer, kind
        )
        self._door.metrics.refuse(kind)
        self._connection.stop()
        self.transport.write(self._connection.data_to_send())
        self._leave(now_ms)
        self.transport.close()

    def _leave(self, now_ms: int) -> None:
        """Publish the will, if it is still wanted, and let go of the session; harmless when done before."""
        session, self.session = self.session, None
        if session is not None:
            self._door.detach(session, now_ms)
        will = self._will
        if will is not None:
            self._forget_will()
            self._door.publish_will(will, self._may, now_ms)

    def _forget_will(self) -> None:
        if self._will is not None:
            self._door.sessions.forget_will(self._will.client_id)
            self._will = None


class MqttDoor:
    """All MQTT connections and sessions of the gateway."""

    def __init__(self, broker: Broker, settings: Settings, authenticator: Authenticator) -> None:
        self.broker = broker
        self.durability = broker.durability
        self.metrics = broker.metrics.door("mqtt")
        self.room = broker.room
        self.held = HeldPublishers(broker.room, self.metrics)
        self.columns = RunColumns()
        places = broker.places("mqtt")
        catch_ups = CatchUps(broker.journal("mqtt_retained"), places)
        self.sessions = SessionTable(broker.table, places, catch_ups, broker.durability.when_kept)
        self.delivery = Delivery(broker, settings, places, catch_ups, self.metrics)
        self.subscribing = Subscribing(broker, self.sessions, self.delivery, settings.subscription_count_max)
        self.publishing = Publishing(broker, self.columns, self.metrics)
        self._settings = settings
        self._authenticator = authenticator
        self._handlers: dict[bytes, MqttHandler] = {}  # by client identifier
        self._strangers: set[MqttHandler] = set()  # no CONNECT yet
        broker.hold(self.sessions.held_positions)

    def start(self, now_ms: int) -> None:
        """Bring back durable sessions, and publish the wills of connections that a killed process left."""
        self.sessions.load(self.subscribing.open_queue, self.broker.max_offset, self.broker.written_until, now_ms)
        for session in self.sessions:
            self.delivery.restore(session)
        self.metrics.sessions = len(self.sessions)
        for stored in self.sessions.wills():
            self.sessions.forget_will(stored.client_id)
            self.publish_will(stored, None, now_ms)

    def stop(self, now_ms: int) -> None:
        """Close all connections; their wills are published."""
        for handler in [*self._handlers.values(), *self._strangers]:
            handler.shut_down(now_ms)

    def expire_sessions(self, now_ms: int) -> None:
        """End durable sessions that nobody has come back to in time."""
        if self._settings.session_expiry_s:
            for session in self.sessions.find_idle(now_ms - 1000 * self._settings.session_expiry_s):
                LOGGER.info("session expired client=%r", session.client_id)
                self.subscribing.end_session(session)
            self.metrics.sessions = len(self.sessions)

    def connect(self, transport: Transport) -> MqttHandler:
        """Return the handler of a new connection."""
        settings = self._settings
        connection = MqttConnection(self.columns, settings.packet_bytes_max, settings.connect_timeout_ms)
        self.metrics.connections += 1
        self.metrics.connections_total += 1
        handler = MqttHandler(self, transport, connection)
        self._strangers.add(handler)
        return handler

    def forget(self, handler: MqttHandler) -> None:
        """A connection is closed."""
        self._strangers.discard(handler)
        self.held.forget(handler)
        self.metrics.connections -= 1

    # What connections ask for

    def check_client_id(self, connect: Connect) -> tuple[ConnectCode, bytes]:
        """Return whether the client identifier is taken, and the one that the client has from now on."""
        client_id = connect.client_id
        if not client_id:
            if not connect.is_clean or connect.level == OLD_LEVEL:  # MQTT-3.1.3-8
                return ConnectCode.IDENTIFIER_REJECTED, client_id
            return ConnectCode.ACCEPTED, b"lmq-" + secrets.token_hex(8).encode()
        if len(client_id) > self._settings.client_id_bytes_max:
            return ConnectCode.IDENTIFIER_REJECTED, client_id
        return ConnectCode.ACCEPTED, client_id

    def authenticate(self, connect: Connect, peer: str) -> Identity | None:
        """Return who a client is, or None where it may not come in."""
        user = None if connect.user is None else connect.user.decode()
        return self._authenticator.authenticate("mqtt", user, connect.password, peer)

    def attach(self, handler: MqttHandler, client_id: bytes, *, is_clean: bool, now_ms: int) -> tuple[Session, bool]:
        """Return the session of a client for its new connection, and whether it was there before."""
        self._strangers.discard(handler)
        older = self._handlers.get(client_id)
        if older is not None:  # MQTT-3.1.4-2
            older.take_over(now_ms)
        self._handlers[client_id] = handler
        session = self.sessions.find(client_id)
        if session is not None and is_clean:  # MQTT-3.1.2-6
            self.subscribing.end_session(session)
            session = None
        is_present = session is not None
        if session is None:
            session = self.sessions.create(client_id, is_persistent=not is_clean)
        else:
            self.sessions.note_online(session)
        self.metrics.sessions = len(self.sessions)
        return session, is_present

    def detach(self, session: Session, now_ms: int) -> None:
        """Take a session from its connection: a clean one ends, a durable one waits."""
        del self._handlers[session.client_id]
        self.delivery.pause(session)
        session.outlet = None
        if session.is_persistent:
            self.sessions.note_idle(session, now_ms)
        else:
            self.subscribing.end_session(session)
        self.metrics.sessions = len(self.sessions)

    def publish_will(self, stored: StoredWill, may: Permissions | None, now_ms: int) -> None:
        """Publish a will; one that cannot be published is logged, its client is gone."""
        try:
            self.publishing.publish_will(stored, may, now_ms)
        except LmqError as error:
            LOGGER.warning("will not published client=%r cause=%s", stored.client_id, error)
            self.metrics.drop("will")
