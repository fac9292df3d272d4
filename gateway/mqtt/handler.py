"""One connection of the MQTT door: its events to the broker, and its session to it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from core.errors import LmqError
from gateway.auth.authenticator import OWN_PEER, Identity, LoginAnswer, Refusal
from gateway.auth.login_log import log_login, log_refusal
from gateway.auth.scram import ScramError
from gateway.door import ClientLimits
from gateway.logs import said
from gateway.mqtt.auto_subscribe import auto_filters
from gateway.mqtt.connection import MqttConnection
from gateway.mqtt.entering import Entering
from gateway.mqtt.errors import MqttError, ProtocolViolationError, reason_code
from gateway.mqtt.events import AckRun, Event, PingRun, PublishRun
from gateway.mqtt.holding import Holding
from gateway.mqtt.login import CODES, check_client_id, credentials_of
from gateway.mqtt.opening import Opening
from gateway.mqtt.pacing import make_pacing
from gateway.mqtt.packets import Auth, Connect, Disconnect, Subscribe, Unsubscribe, Will
from gateway.mqtt.properties import Property
from gateway.mqtt.proving import METHOD_BYTES, Proving, items_of
from gateway.mqtt.reason_codes import ConnectCode, ReasonCode
from gateway.mqtt.services import MqttServices
from gateway.mqtt.session import Session
from gateway.mqtt.session_table import StoredWill
from gateway.mqtt.states import State
from gateway.mqtt.subscribing import Steps
from gateway.mqtt.terms import apply_terms, connack_items, make_terms, takes_connack
from gateway.net.protocol import Transport

_LOGIN = int(State.LOGIN)
_OVER = int(State.OVER)
_END = object()
REFUSAL_BYTES = 5  # of a CONNACK that refuses


class MqttHandler(Holding):
    """One connection of the door."""

    __slots__ = ("_has_ended", "_limits", "_proving")

    def __init__(
        self, door: MqttServices, transport: Transport, connection: MqttConnection, limits: ClientLimits
    ) -> None:
        super().__init__(door, transport, connection)
        self._limits = limits  # of the address that it came in by
        self._has_ended = False  # the peer sends no more, and its login is under way
        self._proving: Proving | None = None  # by a client that has an authentication method

    # The transport calls these.

    def on_data(self, data: bytes, now_ms: int) -> bool:
        """Decode what came and act on it."""
        if self._is_paused():
            self.transport.hold_reading()
        if self._aside is not None:
            data = self._set_aside(self._aside, data)
            if not data:
                return False
        if self._connection.state == _LOGIN or self._awaited is not None:  # this much is kept, and no more is read
            self.transport.pause_reading()
        return self._work(data, now_ms)

    def go_on(self, now_ms: int) -> bool:
        """Act on what is left of what came."""
        self._connection.note_heard(now_ms)
        has_more = self._work(b"", now_ms)
        aside = self._aside
        if aside is not None and not has_more and (self._has_ended or not self._door.held.is_held(self)):
            data = self._take_up(aside)
            has_more = data != b"" and self._work(data, now_ms)
        if self._has_ended and not has_more and not self._has_to_wait():
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
            self._close_for(error.kind, str(error), error.code, now_ms)
        except LmqError as error:
            code = reason_code(error)
            self._close_for(code.name.lower(), str(error), code, now_ms)
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
        while self._awaited is None and not self._is_paused():
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
        return False

    def _is_paused(self) -> bool:
        return self._pacing is not None and self._pacing.is_paused

    def _has_to_wait(self) -> bool:
        """Return whether something of what came is not done yet, for what the connection waits for."""
        is_stopped = self._connection.state == _LOGIN or self._is_paused()
        return self._awaited is not None or (is_stopped and self._connection.has_more)

    def _step(self, steps: Steps | Iterator[None]) -> None:
        found = next(steps, _END)
        if isinstance(found, Opening):
            self._await(found)
        elif found is _END and self._steps is steps:
            self._steps = None

    def on_eof(self, now_ms: int) -> None:
        """The peer sends no more: its connection ends, and not by a DISCONNECT. What came is answered."""
        if self._has_to_wait():
            self._has_ended = True  # what came is done first
            return
        if self._aside is not None and self._aside.has_left:
            self._has_ended = True
            self.transport.request_turn()  # in which it is taken up
            return
        self._connection.receive_eof()
        self._close_later()
        self._leave(now_ms)

    def on_closed(self, now_ms: int) -> None:
        """Let go of the session."""
        self._connection.stop()
        self._leave(now_ms)
        if self._aside is not None:
            self._aside.give_back()
        if self._denials is not None:
            self._denials.end()
        self._door.forget(self)

    def on_timer(self, now_ms: int) -> None:
        """Close a connection whose peer is overdue, or read on after a pause."""
        pacing = self._pacing
        if pacing is not None and pacing.is_paused and now_ms >= pacing.until_ms:
            self._end_pause(pacing, now_ms)
        if self._awaited is not None:  # nothing is read from the peer meanwhile
            self._connection.note_heard(now_ms)
        try:
            self._connection.handle_timer(now_ms)
        except MqttError as error:
            self._close_for(error.kind, str(error), error.code, now_ms)

    def next_deadline_ms(self) -> int | None:
        """Return when the peer is overdue, or a pause is over."""
        if self._pacing is not None and self._pacing.is_paused:
            return self._pacing.until_ms
        return self._connection.next_deadline_ms()

    # Control packets

    def _take(self, event: Event, now_ms: int) -> None:
        if isinstance(event, Connect):
            self._connect(event, now_ms)
        elif isinstance(event, Subscribe):
            self._subscribe(event, now_ms)
        elif isinstance(event, Unsubscribe):
            self._unsubscribe(event)
        elif isinstance(event, Disconnect):
            self._disconnect(event, now_ms)
        elif isinstance(event, Auth):
            self._prove(event, now_ms)

    def _disconnect(self, event: Disconnect, now_ms: int) -> None:
        session = self.session
        if session is not None and Property.SESSION_EXPIRY in event.properties.numbers:
            expiry_s = self._door.limit_expiry(event.properties.numbers[Property.SESSION_EXPIRY])
            if expiry_s and not session.expiry_s:
                raise ProtocolViolationError("MQTT-3.14.2-2", "a session expiry for a session that was to have none")
            session.expiry_s = expiry_s
        if event.code != ReasonCode.DISCONNECT_WITH_WILL:
            self._forget_will()
        if self._answers:  # to what came right before
            self._give_answers()
        out = self._connection.data_to_send()
        if out:
            self.transport.write(out)
        self._leave(now_ms)
        if not self._unkept and not self._pending:
            self._hang_up("disconnect")
            return
        self.transport.end_reason = self.transport.end_reason or "disconnect"
        self._close_later()

    def _connect(self, connect: Connect, now_ms: int) -> None:
        door = self._door
        if not door.may_connect(now_ms):
            why = "too many clients connect"
            self._refuse(connect, ConnectCode.SERVER_UNAVAILABLE, why, now_ms, ReasonCode.CONNECTION_RATE_EXCEEDED)
            return
        code, client_id = check_client_id(connect, door.settings.client_id_bytes_max)
        if code is not ConnectCode.ACCEPTED:
            self._refuse(connect, code, "client identifier", now_ms)
            return
        if not takes_connack(connect, client_id, door.settings):
            why = "its largest packet has no room for a CONNACK"
            self._refuse(connect, ConnectCode.NOT_AUTHORIZED, why, now_ms, ReasonCode.PACKET_TOO_LARGE)
            return
        fault = door.wills.find_fault(connect.will)
        if fault:
            self._refuse(connect, ConnectCode.NOT_AUTHORIZED, fault, now_ms, ReasonCode.TOPIC_NAME_INVALID)
            return
        method = connect.properties.texts.get(Property.AUTH_METHOD)
        if method == METHOD_BYTES:
            self._proving = Proving(door.authenticator, connect, client_id, self.transport.peer)
            self._prove(connect, now_ms)
            return
        if method is not None:
            why = f"no such authentication method here: {said(method)}"
            self._refuse(connect, ConnectCode.NOT_AUTHORIZED, why, now_ms, ReasonCode.BAD_AUTHENTICATION_METHOD)
            return
        credentials = credentials_of(connect, self.transport.peer, self.transport.peer_name)
        attempt = door.authenticator.begin(credentials, partial(self._finish_login, connect, client_id))
        if self._entering is None and self._connection.state == _LOGIN:
            self._attempt = attempt

    # Enhanced authentication

    def _prove(self, packet: Connect | Auth, now_ms: int) -> None:
        """Take a step of a proof, which a CONNECT begins, or an AUTH once the client was let in."""
        proving = self._proving
        if proving is None:
            raise ProtocolViolationError("MQTT-4.12.0-7", "an AUTH without an authentication method")
        try:
            asked = proving.begin(packet) if isinstance(packet, Connect) else proving.take(packet)
        except ScramError as error:
            self._deny(proving, str(error), now_ms)
            return
        except ProtocolViolationError as error:
            if self.session is None:
                self._connection.say_no(ConnectCode.NOT_AUTHORIZED, error.code)
            raise
        if asked is None:
            attempt = proving.check(partial(self._finish_proof, proving))
            if self._entering is None and proving.is_under_way and self._connection.state < _OVER:
                self._attempt = attempt
        elif self.session is None:
            self._connection.ask(items_of(asked))
        else:
            self._connection.say_auth(ReasonCode.CONTINUE_AUTHENTICATION, items_of(asked))

    def _finish_proof(self, proving: Proving, answer: LoginAnswer, now_ms: int) -> None:
        """Let the client in or not, or stay where it is."""
        certified = self.transport.peer_name
        if isinstance(answer, Identity) and certified not in {"", answer.user}:
            answer = Refusal.WRONG
        if self.session is None:
            self._finish_login(proving.connect, proving.client_id, answer, now_ms)
            return
        self._attempt = None
        if isinstance(answer, Identity) and self.identity is not None and answer.user == self.identity.user:
            self.identity = answer
            self._may = answer.may
            self._connection.say_auth(ReasonCode.SUCCESS, proving.end())
            self.transport.write(self._connection.data_to_send())
        else:
            why = answer.value if isinstance(answer, Refusal) else "another user"
            self._deny(proving, why, now_ms)

    def _deny(self, proving: Proving, why: str, now_ms: int) -> None:
        """End the connection of a client that did not prove who it is."""
        if self.session is None:
            self._refuse(proving.connect, ConnectCode.NOT_AUTHORIZED, why, now_ms)
        else:
            self._close_for("not_authorized", f"not proved who it is: {why}", ReasonCode.NOT_AUTHORIZED, now_ms)

    def _finish_login(self, connect: Connect, client_id: bytes, answer: LoginAnswer, now_ms: int) -> None:
        """Let the client in or not; then go on with what came with its CONNECT, where that had to wait."""
        attempt, self._attempt = self._attempt, None
        if isinstance(answer, Identity):
            self.identity = answer
            self._entering = Entering(connect, client_id, answer)
        elif self._proving is not None and answer is not Refusal.BUSY:
            self._deny(self._proving, answer.value, now_ms)
        else:
            self._refuse(connect, CODES[answer], answer.value, now_ms)
        if attempt is not None:
            if self._entering is not None:
                self._enter(self._entering, now_ms)
            self.transport.resume_reading()
            self.transport.request_turn()

    def _enter(self, entering: Entering, now_ms: int) -> bool:
        """Take up the client's session, or a new one; False where that is not ours yet, or still being let go of."""
        connect, client_id, identity = entering.connect, entering.client_id, entering.identity
        door = self._door
        refused = self._find_refusal(entering)
        if refused is not None:
            self._refuse(connect, *refused, now_ms)
            return True
        if not (
            entering.is_claimed
            and door.attachments.make_way(client_id, identity, is_clean=connect.is_clean, now_ms=now_ms)
        ):
            return False
        self._entering = None
        terms = make_terms(connect, door.settings, self._limits)
        found = door.attachments.attach(self, client_id, identity, terms.expiry_s)
        door.strangers.discard(self)
        self._connection.accept(now_ms, terms.keep_alive_s, terms.packet_bytes_max)
        self._may = identity.may
        user = identity.user.encode()
        session = self.session = found.session
        self._tells_why = terms.tells_why
        apply_terms(terms, session, connect.level, door.delivery.inflight_max)
        transport = self.transport
        is_known = bool(identity.user)
        named = user or connect.user or b""
        log_login(transport.conn_id, transport.peer, client_id, named, is_known=is_known)
        if found.denied:
            self._note_denied("subscription", found.denied)
            door.metrics.refuse("subscription", len(found.denied))
        if found.is_present:
            door.wills.come_back(client_id)
        else:
            door.wills.publish_delayed(client_id, now_ms)
        if connect.will is not None:
            self._keep_will(connect.will, client_id, user)
        items = connack_items(connect, terms, client_id)
        if self._proving is not None:
            items += self._proving.end()
        self._connection.say_welcome(session_present=found.is_present, properties=items)
        transport.write(self._connection.data_to_send())
        session.outlet = transport
        door.delivery.resume(session)
        door.sys_tree.watch_all(session)
        self._begin(session, user, now_ms)
        return True

    def _find_refusal(self, entering: Entering) -> tuple[ConnectCode, str] | None:
        """Return why a client does not get its session, None where nothing is known against it; the engine is asked."""
        door, client_id = self._door, entering.client_id
        if door.attachments.is_foreign(client_id, entering.identity):
            why = f"the session belongs to another user: {said(door.sessions.owner_of(client_id))}"
            return ConnectCode.NOT_AUTHORIZED, why
        if not entering.is_asked:
            entering.is_asked = True
            self._claimed = client_id
            door.claims.claim(client_id, entering.note_claim)
        if entering.claim_error is not None:
            return ConnectCode.SERVER_UNAVAILABLE, str(entering.claim_error)
        return None

    def _keep_will(self, will: Will, client_id: bytes, user: bytes) -> None:
        will = self._door.publishing.rewriting.will(will, client_id, user)
        self._will = StoredWill(client_id, user, self.transport.peer_host, will)
        self._door.wills.keep(self._will)

    def _begin(self, session: Session, user: bytes, now_ms: int) -> None:
        """Begin with what a client has without asking: a pace, and subscriptions."""
        door = self._door
        self._pacing = make_pacing(door.settings, self._limits, now_ms)
        if door.settings.auto_subscribe and self.transport.peer != OWN_PEER:
            assert self._may is not None
            wanted = Subscribe(0, auto_filters(door.settings.auto_subscribe, session.client_id, user))
            self._steps = door.subscribing.subscribe(session, wanted, self._may, now_ms, self._note_auto)

    def _refuse(
        self, connect: Connect, code: ConnectCode, why: str, now_ms: int, reason: ReasonCode | None = None
    ) -> None:
        transport = self.transport
        log_refusal(transport.conn_id, transport.peer, connect.client_id, connect.user or b"", why)
        self._door.metrics.refuse(code.name.lower())
        if connect.properties.number(Property.PACKET_BYTES_MAX, REFUSAL_BYTES) >= REFUSAL_BYTES:
            self._connection.say_no(code, reason)
        self._connection.stop()
        transport.write(self._connection.data_to_send())
        self._leave(now_ms)
        self._hang_up(f"refused: {why}")

    def _subscribe(self, packet: Subscribe, now_ms: int) -> None:
        assert self.session is not None
        assert self._may is not None
        self._steps = self._door.subscribing.subscribe(self.session, packet, self._may, now_ms, self._note_subscribed)

    def _unsubscribe(self, packet: Unsubscribe) -> None:
        assert self.session is not None
        self._steps = self._door.subscribing.unsubscribe(self.session, packet, self._note_unsubscribed)
