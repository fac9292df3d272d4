"""The MQTT door: events of connections to the broker, and sessions to connections."""

from __future__ import annotations

import logging
from functools import partial

from core.broker import Broker
from core.errors import LmqError
from core.properties import encode_origin
from gateway.auth.authenticator import Authenticator, Identity, LoginAnswer
from gateway.auth.denials import Denials
from gateway.auth.login_log import log_login, log_refusal
from gateway.auth.password_checks import Attempt
from gateway.auth.permissions import Permissions
from gateway.auth.recheck import TURNED_OUT
from gateway.logs import said
from gateway.mqtt.attachments import Attachments
from gateway.mqtt.catch_up import CatchUps
from gateway.mqtt.codec import RunColumns
from gateway.mqtt.connection import MqttConnection
from gateway.mqtt.delivery import Delivery
from gateway.mqtt.errors import MqttError, reason_code
from gateway.mqtt.events import ACKS, PUBLISHES, Event
from gateway.mqtt.login import CODES, check_client_id, credentials_of
from gateway.mqtt.packets import (
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
from gateway.mqtt.wills import Wills
from gateway.net.held_publishers import HeldPublishers
from gateway.net.protocol import ConnectionHandler, Transport
from gateway.settings import MqttSettings

LOGGER = logging.getLogger(__name__)


class MqttHandler(ConnectionHandler):
    """One connection of the door."""

    __slots__ = (
        "_attempt",
        "_connection",
        "_denials",
        "_door",
        "_has_ended",
        "_may",
        "_origin",
        "_unkept",
        "_will",
        "identity",
        "session",
        "transport",
    )

    def __init__(self, door: MqttDoor, transport: Transport, connection: MqttConnection) -> None:
        self.transport = transport
        self.session: Session | None = None
        self._door = door
        self._connection = connection
        self._may: Permissions | None = None  # of who is connected
        self.identity: Identity | None = None
        self._attempt: Attempt | None = None  # a login under way
        self._has_ended = False  # the peer sends no more, and its login is under way
        self._denials: Denials | None = None  # made when something is denied
        self._origin = b""
        self._will: StoredWill | None = None
        self._unkept = 0  # answers that wait until a change is written down

    # The transport calls these.

    def on_data(self, data: bytes, now_ms: int) -> None:
        """Decode what came and act on it."""
        connection = self._connection
        if connection.is_waiting:  # this much is kept, and no more is read
            self.transport.pause_reading()
        try:
            connection.receive_data(data, now_ms)
        except MqttError as error:
            self._close_for(error.kind, str(error), now_ms)
        self._go_on(now_ms)

    def _go_on(self, now_ms: int) -> None:
        """Act on what came, up to a login that is under way."""
        connection = self._connection
        try:
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
        if self._connection.is_waiting and self._connection.has_more:
            self._has_ended = True  # what came is done after the login
            return
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
        if self._denials is not None:
            self._denials.end()
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
        if door.publishing.denied:
            self._note_denied("publish", door.publishing.denied)
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
            self._hang_up("disconnect")

    def _connect(self, connect: Connect, now_ms: int) -> None:
        door = self._door
        code, client_id = check_client_id(connect, door.settings.client_id_bytes_max)
        if code is not ConnectCode.ACCEPTED:
            self._refuse(connect, code, "client identifier", now_ms)
            return
        credentials = credentials_of(connect, self.transport.peer)
        attempt = door.authenticator.begin(credentials, partial(self._finish_login, connect, client_id))
        if self._connection.is_waiting:
            self._attempt = attempt

    def _finish_login(self, connect: Connect, client_id: bytes, answer: LoginAnswer, now_ms: int) -> None:
        """Let the client in or not; then go on with what came with its CONNECT, where that had to wait."""
        attempt, self._attempt = self._attempt, None
        if isinstance(answer, Identity):
            self._enter(connect, client_id, answer, now_ms)
        else:
            self._refuse(connect, CODES[answer], answer.value, now_ms)
        if attempt is None:
            return
        self.transport.resume_reading()
        self._go_on(now_ms)
        self.transport.deadline_changed()
        if self._has_ended:
            self.on_eof(now_ms)

    def _enter(self, connect: Connect, client_id: bytes, identity: Identity, now_ms: int) -> None:
        door = self._door
        self.identity = identity
        found = door.attachments.attach(self, client_id, identity, is_clean=connect.is_clean, now_ms=now_ms)
        if found is None:
            why = f"the session belongs to another user: {said(door.sessions.owner_of(client_id))}"
            self._refuse(connect, ConnectCode.NOT_AUTHORIZED, why, now_ms)
            return
        door.strangers.discard(self)
        self._connection.accept(now_ms)
        self._may = identity.may
        user = identity.user.encode()
        self._origin = encode_origin(PROTOCOL, client_id, user)
        self.session = found.session
        transport = self.transport
        is_known = bool(identity.user)
        log_login(transport.conn_id, transport.peer, client_id, connect.user or b"", is_known=is_known)
        if found.denied:
            self._note_denied("subscription", found.denied)
            door.metrics.refuse("subscription", len(found.denied))
        if connect.will is not None:
            self._will = StoredWill(client_id, user, self.transport.peer_host, connect.will)
            door.wills.keep(self._will)
        self.transport.write(encode_connack(ConnectCode.ACCEPTED, session_present=found.is_present))
        self.session.outlet = self.transport
        door.delivery.resume(self.session)

    def _refuse(self, connect: Connect, code: ConnectCode, why: str, now_ms: int) -> None:
        transport = self.transport
        log_refusal(transport.conn_id, transport.peer, connect.client_id, connect.user or b"", why)
        self._door.metrics.refuse(code.name.lower())
        self.transport.write(encode_connack(code, session_present=False))
        self._connection.stop()
        self._leave(now_ms)
        self._hang_up(f"refused: {why}")

    def _subscribe(self, packet: Subscribe) -> None:
        assert self.session is not None
        assert self._may is not None
        door = self._door
        codes = door.subscribing.subscribe(self.session, packet, self._may)
        if SUBSCRIBE_FAILURE in codes:
            door.metrics.refuse("subscription", codes.count(SUBSCRIBE_FAILURE))
            self._note_denied("subscription", [name for name, _ in packet.filters if not self._may.may_subscribe(name)])
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
        self._end("taken over by a new connection", now_ms)

    def shut_down(self, now_ms: int) -> None:
        """Close because the gateway stops."""
        self._end("the gateway stops", now_ms)

    def _end(self, why: str, now_ms: int) -> None:
        self._connection.stop()
        self._leave(now_ms)
        self._hang_up(why)

    def _hang_up(self, why: str) -> None:
        self.transport.end_reason = self.transport.end_reason or why
        self.transport.close()

    def turn_out(self, now_ms: int) -> None:
        """Close because the user may not come in any more."""
        self._door.metrics.refuse("turned_out")
        self._end(TURNED_OUT, now_ms)

    def _note_denied(self, action: str, names: list[bytes]) -> None:
        if self._denials is None:
            self._denials = Denials(self.transport.conn_id, self.identity.user if self.identity is not None else "")
        for name in names:
            self._denials.note(action, name)

    def _close_for(self, kind: str, text: str, now_ms: int) -> None:
        LOGGER.warning(
            "closing connection: %s conn=%d peer=%s reason=%s", text, self.transport.conn_id, self.transport.peer, kind
        )
        self._door.metrics.refuse(kind)
        self._connection.stop()
        self.transport.write(self._connection.data_to_send())
        self._leave(now_ms)
        self._hang_up(kind)

    def _leave(self, now_ms: int) -> None:
        """Publish the will, if it is still wanted, and let go of the session; harmless when done before."""
        attempt, self._attempt = self._attempt, None
        if attempt is not None:
            self._door.authenticator.cancel(attempt)
        session, self.session = self.session, None
        if session is not None:
            self._door.attachments.detach(session, now_ms)
        will = self._will
        if will is not None:
            self._forget_will()
            self._door.wills.publish(will, self._may, now_ms)

    def _forget_will(self) -> None:
        if self._will is not None:
            self._door.wills.forget(self._will)
            self._will = None


class MqttDoor:
    """All MQTT connections and sessions of the gateway."""

    def __init__(self, broker: Broker, settings: MqttSettings, authenticator: Authenticator) -> None:
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
        self.wills = Wills(self.sessions, self.publishing, authenticator, self.metrics)
        self.authenticator = authenticator
        self.attachments = Attachments(self.sessions, self.subscribing, self.delivery, authenticator, self.metrics)
        self.strangers: set[MqttHandler] = set()  # not let in yet
        self.settings = settings
        broker.hold(self.sessions.held_positions)

    def start(self, now_ms: int) -> None:
        """Bring back durable sessions, and publish the wills of connections that a killed process left."""
        self.sessions.load(self.subscribing.open_queue, self.broker.max_offset, self.broker.written_until, now_ms)
        for session in self.sessions:
            self.delivery.restore(session)
        self.metrics.sessions = len(self.sessions)
        self.wills.publish_left(now_ms)

    def stop(self, now_ms: int) -> None:
        """Close all connections; their wills are published."""
        for handler in [*self.attachments, *self.strangers]:
            handler.shut_down(now_ms)

    def expire_sessions(self, now_ms: int) -> None:
        """End durable sessions that nobody has come back to in time."""
        if self.settings.session_expiry_s:
            for session in self.sessions.find_idle(now_ms - 1000 * self.settings.session_expiry_s):
                LOGGER.info("session expired client=%r", session.client_id)
                self.subscribing.end_session(session)
            self.metrics.sessions = len(self.sessions)

    def reload(self, settings: MqttSettings) -> None:
        """Go by other settings from now on."""
        self.settings = settings
        self.delivery.inflight_max = settings.inflight_max
        self.delivery.lag_count_max = settings.lag_count_max
        self.subscribing.count_max = settings.subscription_count_max

    @property
    def handlers(self) -> Attachments:
        """The connections of clients that were let in."""
        return self.attachments

    def connect(self, transport: Transport) -> MqttHandler:
        """Return the handler of a new connection."""
        settings = self.settings
        connection = MqttConnection(self.columns, settings.packet_bytes_max, settings.connect_timeout_ms)
        self.metrics.connections += 1
        self.metrics.connections_total += 1
        handler = MqttHandler(self, transport, connection)
        self.strangers.add(handler)
        return handler

    def forget(self, handler: MqttHandler) -> None:
        """A connection is closed."""
        self.strangers.discard(handler)
        self.held.forget(handler)
        self.metrics.connections -= 1
