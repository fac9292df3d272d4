"""One connection of the MQTT door: its events to the broker, and its session to it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial

from core.errors import LmqError
from core.properties import encode_origin
from gateway.auth.authenticator import Identity, LoginAnswer
from gateway.auth.denials import Denials
from gateway.auth.login_log import log_login, log_refusal
from gateway.auth.password_checks import Attempt
from gateway.auth.permissions import Permissions
from gateway.auth.recheck import TURNED_OUT
from gateway.logs import said
from gateway.mqtt.answers import encode_connack, encode_suback, encode_unsuback
from gateway.mqtt.columns import encode_id_packets
from gateway.mqtt.connection import MqttConnection
from gateway.mqtt.errors import MqttError, reason_code
from gateway.mqtt.events import AckRun, Event, PingRun, PublishRun
from gateway.mqtt.login import CODES, check_client_id, credentials_of
from gateway.mqtt.packets import (
    LEVEL_5,
    PUBREC,
    PUBREL,
    Connect,
    Disconnect,
    Subscribe,
    Unsubscribe,
)
from gateway.mqtt.publishing import PROTOCOL
from gateway.mqtt.reason_codes import SUBSCRIBE_FAILURE, ConnectCode
from gateway.mqtt.services import MqttServices
from gateway.mqtt.session import Session
from gateway.mqtt.session_table import Entering, StoredWill
from gateway.mqtt.states import State
from gateway.mqtt.subscribing import Answer, Granted
from gateway.net.protocol import ConnectionHandler, Transport

LOGGER = logging.getLogger(__name__)

_LOGIN = int(State.LOGIN)
_END = object()
PUBREL_FIRST = 0x62


class MqttHandler(ConnectionHandler):
    """One connection of the door."""

    __slots__ = (
        "_answers",
        "_attempt",
        "_connection",
        "_denials",
        "_door",
        "_entering",
        "_has_ended",
        "_may",
        "_origin",
        "_steps",
        "_unkept",
        "_will",
        "identity",
        "session",
        "transport",
    )

    def __init__(self, door: MqttServices, transport: Transport, connection: MqttConnection) -> None:
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
        self._entering: Entering | None = None  # a client that waits until its last session is let go of
        self._steps: Iterator[None] | None = None  # what is left of a packet that goes on in further turns
        self._answers: list[Answer] = []  # to what was done in this turn
        self._unkept = 0  # calls that wait until a change is written down

    # The transport calls these.

    def on_data(self, data: bytes, now_ms: int) -> bool:
        """Decode what came and act on it."""
        if self._connection.state == _LOGIN:  # this much is kept, and no more is read
            self.transport.pause_reading()
        return self._work(data, now_ms)

    def go_on(self, now_ms: int) -> bool:
        """Act on what is left of what came."""
        self._connection.note_heard(now_ms)
        has_more = self._work(b"", now_ms)
        if self._has_ended and not has_more:
            self._has_ended = False
            self.on_eof(now_ms)
        return has_more

    def _work(self, data: bytes, now_ms: int) -> bool:
        connection = self._connection
        has_more = False
        try:
            if data:
                connection.receive_data(data, now_ms)
            has_more = self._act(now_ms)
        except MqttError as error:
            self._close_for(error.kind, str(error), now_ms)
        except LmqError as error:
            self._close_for(reason_code(error).name.lower(), str(error), now_ms)
        if self._answers:
            self._give_answers()
        out = connection.data_to_send()
        if out:
            self.transport.write(out)
        return has_more

    def _act(self, now_ms: int) -> bool:
        """Act on what came, step by step, up to a login that is under way.

        Returns:
            Whether something is left because others are to have their turn.
        """
        connection = self._connection
        transport = self.transport
        events = connection.events()
        while True:
            if self._entering is not None:
                if not self._enter(self._entering, now_ms):
                    return True
            elif self._steps is not None:
                self._step(self._steps)
            else:
                event = next(events, None)
                if event is None:
                    return False
                if isinstance(event, PublishRun):
                    self._publish(event, now_ms)
                elif isinstance(event, AckRun):
                    self._acknowledge(event)
                elif not isinstance(event, PingRun):
                    self._take(event, now_ms)
                    continue
            if transport.is_share_over():
                return True

    def _step(self, steps: Iterator[None]) -> None:
        if next(steps, _END) is _END and self._steps is steps:
            self._steps = None

    def on_eof(self, now_ms: int) -> None:
        """The peer sends no more: its connection ends, and not by a DISCONNECT. What came is answered."""
        if self._connection.state == _LOGIN and self._connection.has_more:
            self._has_ended = True  # what came is done after the login
            return
        self._connection.receive_eof()
        if self._unkept:
            self._door.broker.when_kept(self.transport.close)
        else:
            self._door.broker.when_durable(self.transport.close)
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

    def _publish(self, run: PublishRun, now_ms: int) -> None:
        door = self._door
        assert self._may is not None
        batch = run.columns.batch
        count = batch.count
        session = self.session
        assert session is not None
        acks = door.publishing.publish_run(run, self._origin, self.transport, session, self._may, now_ms)
        if batch.count < count:
            self._connection.unread(run)
        if run.denied:
            self._note_denied("publish", run.denied)
        if acks and run.columns.exact_count and session.is_persistent:
            door.broker.when_durable(partial(self._send_acks, acks))  # with the packet identifiers that were taken
        elif acks:
            door.broker.when_stored(partial(self._send_acks, acks))
        run.release()
        if door.room.is_low:
            door.held.hold(self)

    def _send_acks(self, acks: bytes) -> None:
        transport = self.transport
        transport.write(acks)
        if not transport.is_writable:  # whoever does not read acknowledgements gets no more to be acknowledged
            transport.pause_reading()

    def _acknowledge(self, run: AckRun) -> None:
        """Take a run of acknowledgements, and go on with what they are of at QoS 2."""
        door = self._door
        columns = run.columns
        session = self.session
        assert session is not None
        if columns.ack_type == PUBREL:
            self.transport.write(door.publishing.release_run(columns, session))
        else:
            door.delivery.acknowledge(session, columns)
        if columns.ack_type == PUBREC:
            if session.level != LEVEL_5:
                columns.forget_codes()
            self.transport.write(encode_id_packets(columns, PUBREL_FIRST))
        run.release()

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
        if self._entering is None and self._connection.state == _LOGIN:
            self._attempt = attempt

    def _finish_login(self, connect: Connect, client_id: bytes, answer: LoginAnswer, now_ms: int) -> None:
        """Let the client in or not; then go on with what came with its CONNECT, where that had to wait."""
        attempt, self._attempt = self._attempt, None
        if isinstance(answer, Identity):
            self.identity = answer
            self._entering = Entering(connect, client_id, answer)
        else:
            self._refuse(connect, CODES[answer], answer.value, now_ms)
        if attempt is not None:
            if self._entering is not None:
                self._enter(self._entering, now_ms)
            self.transport.resume_reading()
            self.transport.request_turn()

    def _enter(self, entering: Entering, now_ms: int) -> bool:
        """Take up the client's session, or a new one; False where the last one is still being let go of."""
        connect, client_id, identity = entering.connect, entering.client_id, entering.identity
        door = self._door
        if door.attachments.is_foreign(client_id, identity):
            why = f"the session belongs to another user: {said(door.sessions.owner_of(client_id))}"
            self._refuse(connect, ConnectCode.NOT_AUTHORIZED, why, now_ms)
            return True
        if not door.attachments.make_way(client_id, identity, is_clean=connect.is_clean, now_ms=now_ms):
            return False
        self._entering = None
        found = door.attachments.attach(self, client_id, identity, is_clean=connect.is_clean)
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
        return True

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
        self._steps = self._door.subscribing.subscribe(self.session, packet, self._may, self._note_subscribed)

    def _note_subscribed(self, packet_id: int, granted: Granted) -> None:
        assert self._may is not None
        failed = [topic_filter for topic_filter, code in granted if code == SUBSCRIBE_FAILURE]
        if failed:
            self._door.metrics.refuse("subscription", len(failed))
            self._note_denied("subscription", [name for name in failed if not self._may.may_subscribe(name)])
        self._answers.append(Answer(encode_suback(packet_id, [code for _, code in granted]), granted))

    def _unsubscribe(self, packet: Unsubscribe) -> None:
        assert self.session is not None
        self._steps = self._door.subscribing.unsubscribe(self.session, packet, self._note_unsubscribed)

    def _note_unsubscribed(self, packet_id: int) -> None:
        self._answers.append(Answer(encode_unsuback(packet_id, []), []))

    def _give_answers(self) -> None:
        """Answer when a durable session's changes are written down, at once for any other session."""
        answers, self._answers = self._answers, []
        session = self.session
        if session is not None and session.is_persistent:
            self._unkept += 1
            self._door.broker.when_kept(partial(self._give_kept, session, answers))
        else:
            self._answer(session, answers)

    def _give_kept(self, session: Session, answers: list[Answer]) -> None:
        self._unkept -= 1
        self._answer(session, answers)

    def _answer(self, session: Session | None, answers: list[Answer]) -> None:
        """Answer in one write, and begin to send for what was subscribed."""
        self._send_acks(b"".join([answer.data for answer in answers]))
        if session is not None and self.session is session:
            granted = [each for answer in answers for each in answer.granted]
            if granted:
                self._door.subscribing.start(session, granted)

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
        self._entering = self._steps = None
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
