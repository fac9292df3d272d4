"""How a client of the MQTT door arrives: from its CONNECT to its session and its CONNACK."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from core.errors import DiskFullError, LmqError
from core.room import DISK_LOW
from gateway.auth.credentials import OWN_PEER, Identity, LoginAnswer, Refusal
from gateway.auth.left_logins import pack_login
from gateway.auth.login_log import log_login, log_refusal, outcome_of, reason_of
from gateway.auth.mechanisms import PROOF_ERRORS
from gateway.auth.topic_rights import PUBLISH, Wanted, reading
from gateway.door import ClientLimits
from gateway.events import Kind
from gateway.logs import said
from gateway.mqtt.attachments import Attachment
from gateway.mqtt.auto_subscribe import auto_filters
from gateway.mqtt.connection import MqttConnection
from gateway.mqtt.entering import Entering
from gateway.mqtt.errors import ProtocolViolationError
from gateway.mqtt.holding import Holding
from gateway.mqtt.login import CODES, PROTOCOL, REASONS, check_client_id, credentials_of
from gateway.mqtt.pacing import Outflow, make_client_pacing, make_outflow
from gateway.mqtt.packets import Auth, Connect, Subscribe, Will
from gateway.mqtt.properties import Property
from gateway.mqtt.proving import Proving
from gateway.mqtt.queued_limits import WaitingMax
from gateway.mqtt.reason_codes import ConnectCode, ReasonCode
from gateway.mqtt.services import MqttServices
from gateway.mqtt.session import Session
from gateway.mqtt.session_rows import StoredWill
from gateway.mqtt.states import State
from gateway.mqtt.terms import apply_terms, connack_items, make_terms, takes_connack
from gateway.mqtt.topics import plain_filter
from gateway.net.protocol import Transport

_LOGIN = int(State.LOGIN)
_OVER = int(State.OVER)
REFUSAL_BYTES = 5  # of a CONNACK that refuses


class Arriving(Holding):
    """A connection whose client is to be let in."""

    __slots__ = ("_limits", "_proving")

    def __init__(
        self, door: MqttServices, transport: Transport, connection: MqttConnection, limits: ClientLimits
    ) -> None:
        super().__init__(door, transport, connection)
        self._limits = limits  # of the address that it came in by
        self._proving: Proving | None = None  # by a client that has an authentication method

    def _connect(self, connect: Connect, now_ms: int) -> None:
        door = self._door
        if not door.may_connect(now_ms):
            why = "too many clients connect"
            self._refuse(connect, ConnectCode.SERVER_UNAVAILABLE, why, now_ms, ReasonCode.CONNECTION_RATE_EXCEEDED)
            return
        code, client_id = check_client_id(connect, door.settings.client_id_bytes_max, self.transport.peer_client)
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
        if method is not None:
            proving = Proving(door.authenticator, connect, client_id, self.transport.peer, self.transport.ways)
            if proving.is_under_way:
                self._proving = proving
                self._prove(connect, now_ms)
                return
            why = f"no such authentication method here: {said(method)}"
            self._refuse(connect, ConnectCode.NOT_AUTHORIZED, why, now_ms, ReasonCode.BAD_AUTHENTICATION_METHOD)
            return
        transport = self.transport
        credentials = credentials_of(
            connect, client_id, transport.peer, transport.peer_name, transport.peer_certificate, ways=transport.ways
        )
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
        except PROOF_ERRORS as error:
            self._deny(proving, str(error), now_ms)
            return
        except ProtocolViolationError as error:
            if self.session is None:
                self._connection.say_no(ConnectCode.NOT_AUTHORIZED, error.code)
            raise
        if asked is None and proving.refused is not None:
            self._end_proof(proving, proving.refused, now_ms)
        elif asked is None:
            attempt = proving.check(partial(self._finish_proof, proving))
            is_answered = self._entering is not None or proving.refused is not None or not proving.is_under_way
            if not is_answered and self._connection.state < _OVER:
                self._attempt = attempt
        else:
            self._ask(proving, asked)

    def _ask(self, proving: Proving, asked: bytes) -> None:
        """Ask the client for the next step of its proof."""
        if self.session is None:
            self._connection.ask(proving.items_of(asked))
        else:
            self._connection.say_auth(ReasonCode.CONTINUE_AUTHENTICATION, proving.items_of(asked))

    def _finish_proof(self, proving: Proving, answer: LoginAnswer, now_ms: int) -> None:
        """Let the client in or not, or stay where it is."""
        certified = self.transport.peer_name
        if isinstance(answer, Identity) and certified not in {"", answer.user}:
            answer = Refusal.WRONG
        complaint = proving.complain(answer)
        if not complaint:
            self._end_proof(proving, answer, now_ms)
            return
        attempt, self._attempt = self._attempt, None
        self._ask(proving, complaint)
        if attempt is not None:
            self.transport.write(self._connection.data_to_send())
            self.transport.resume_reading()
            self.transport.request_turn()

    def _end_proof(self, proving: Proving, answer: LoginAnswer, now_ms: int) -> None:
        if self.session is None:
            self._finish_login(proving.connect, proving.client_id, answer, now_ms)
            return
        self._attempt = None
        if isinstance(answer, Identity) and self.identity is not None and answer.user == self.identity.user:
            self.identity = answer
            self._may, self._topics = answer.may, answer.topics
            if self._will is not None:
                self._will.login = pack_login(answer)
                self._door.wills.keep(self._will)
            self._connection.say_auth(ReasonCode.SUCCESS, proving.end())
            self.transport.write(self._connection.data_to_send())
        else:
            why = answer.value if isinstance(answer, Refusal) else "another user"
            self._deny(proving, self._door.authenticator.tokens.why_refused(proving.token) or why, now_ms)

    def _deny(self, proving: Proving, why: str, now_ms: int) -> None:
        """End the connection of a client that did not prove its name."""
        if self.session is None:
            self._refuse(proving.connect, ConnectCode.NOT_AUTHORIZED, why, now_ms)
        else:
            self._close_for("not_authorized", f"not proved who it is: {why}", ReasonCode.NOT_AUTHORIZED, now_ms)

    def _finish_login(self, connect: Connect, client_id: bytes, answer: LoginAnswer, now_ms: int) -> None:
        """Let the client in or not; then go on with what came with its CONNECT, where that had to wait."""
        attempt, self._attempt = self._attempt, None
        self._door.metrics.log_in(outcome_of(answer))
        if isinstance(answer, Identity) and not self._door.may_come(answer.user, client_id, now_ms):
            why = "the client connects too often"
            self._refuse(connect, ConnectCode.SERVER_UNAVAILABLE, why, now_ms, ReasonCode.CONNECTION_RATE_EXCEEDED)
        elif isinstance(answer, Identity):
            self.identity = answer
            self._entering = Entering(connect, client_id, answer)
        elif self._proving is not None and answer not in {Refusal.BUSY, Refusal.PENALTY}:
            self._deny(self._proving, answer.value, now_ms)
        else:
            why = reason_of(answer, self.transport.peer_name)
            self._refuse(connect, CODES[answer], why, now_ms, REASONS.get(answer))
        if attempt is not None:
            if self._entering is not None:
                self._enter(self._entering, now_ms)
            self.transport.resume_reading()
            self.transport.request_turn()

    def _enter(self, entering: Entering, now_ms: int) -> bool:
        """Take up the client's session, or a new one; False where that is not ours yet, or still being let go of.

        The client is welcomed at once, or in a later turn when what is durable of that is written down.
        """
        if entering.found is not None:
            self._welcome(entering, entering.found, now_ms)
            return True
        connect, client_id, identity = entering.connect, entering.client_id, entering.identity
        door = self._door
        refused = self._find_refusal(entering)
        if refused is not None:
            self._refuse(connect, *refused, now_ms)
            return True
        if self._must_ask_first(entering):
            return False
        before = door.sessions.outline(client_id)
        entering.had_durable |= before is not None and before.is_persistent
        if not (
            entering.is_claimed
            and door.attachments.make_way(client_id, identity, is_clean=connect.is_clean, now_ms=now_ms)
        ):
            return False
        over = door.authenticator.quotas.enter(identity.user, self)
        if over is not None:
            reason = ReasonCode.CONNECTION_RATE_EXCEEDED if over.is_rate else ReasonCode.QUOTA_EXCEEDED
            self._refuse(connect, ConnectCode.SERVER_UNAVAILABLE, str(over), now_ms, reason)
            return True
        terms = entering.terms = make_terms(connect, door.settings, self._limits)
        found = entering.found = door.attachments.attach(self, client_id, identity, terms.expiry_s)
        door.strangers.discard(self)
        self.session = found.session
        own_max = WaitingMax(self._limits.queued_count_max, self._limits.queued_bytes_max)
        door.delivery.queued.limits.note(found.session, own_max)
        kind = Kind.SESSION_RESUMED if found.is_present else Kind.SESSION_CREATED
        door.tell_session(kind, found.session, self.transport)
        if found.is_present:
            door.wills.come_back(client_id, identity.user.encode())
        else:
            door.wills.note_client(client_id, identity.user.encode())
            door.wills.publish_delayed(client_id, now_ms)
        if connect.will is not None:
            self._keep_will(connect.will, client_id, identity)
        if self._must_wait(entering, found):
            self._await_kept(entering, found)
        else:
            entering.note_kept(None)
        if entering.is_over:
            self._welcome(entering, found, now_ms)
        else:
            self._await(entering)
        return True

    def _must_ask_first(self, entering: Entering) -> bool:
        """Return whether a client has to wait until a back end has said what its session may have, and ask once."""
        topics = entering.identity.topics
        if topics is None or entering.is_judged:
            return False
        entering.is_judged = True
        asking = topics.ask(self._find_topics(entering), keeps=True)
        if asking is not None:
            self._await(asking)
        return asking is not None

    def _find_topics(self, entering: Entering) -> Iterator[Wanted]:
        """Give what a client is to be allowed that did not ask for it now: its will, and what its session has."""
        door, connect, client_id = self._door, entering.connect, entering.client_id
        user = entering.identity.user.encode()
        if connect.will is not None:
            yield PUBLISH, door.publishing.rewriting.will(connect.will, client_id, user).topic
        if not connect.is_clean:
            yield from reading(filter(None, map(plain_filter, door.sessions.filters_to_read(client_id))))
        automatic = auto_filters(door.settings.auto_subscribe, client_id, user)
        yield from reading(filter(None, (plain_filter(one) for one, _ in automatic)))

    def _welcome(self, entering: Entering, found: Attachment, now_ms: int) -> None:
        """Let the client in: what it was promised is kept."""
        connect, client_id, identity, terms = entering.connect, entering.client_id, entering.identity, entering.terms
        if entering.kept_error is not None:
            self._refuse(connect, ConnectCode.SERVER_UNAVAILABLE, f"not stored: {entering.kept_error}", now_ms)
            return
        assert terms is not None
        self._entering = None
        door = self._door
        self._connection.accept(now_ms, terms.keep_alive_s, terms.packet_bytes_max, terms.own_alias_max)
        self._may, self._topics = identity.may, identity.topics
        user = identity.user.encode()
        session = found.session
        self._tells_why = terms.tells_why
        apply_terms(terms, session, connect.level, door.delivery.inflight_max)
        transport = self.transport
        is_known = bool(identity.user)
        named = user or connect.user or b""
        log_login(door.actor(transport, identity.user), client_id, named, is_known=is_known)
        if found.denied:
            self._note_denied("subscription", found.denied)
            door.metrics.refuse("subscription", len(found.denied))
        items = connack_items(connect, terms, client_id)
        if self._proving is not None:
            items += self._proving.end()
        self._connection.say_welcome(session_present=found.is_present, properties=items)
        transport.write(self._connection.data_to_send())
        session.outlet = transport
        if transport.peer != OWN_PEER:
            session.pace = self._make_outflow(identity.user, now_ms)
        door.delivery.resume(session)
        door.sys_tree.watch_all(session)
        self._begin(session, user, now_ms)

    def _leave(self, now_ms: int) -> None:
        """Let go of the session; a client that was not let in has no will."""
        if self._entering is not None:
            self._forget_will()
        super()._leave(now_ms)

    def _find_refusal(self, entering: Entering) -> tuple[ConnectCode, str] | None:
        """Return why a client does not get its session, None where nothing is known against it; the engine is asked."""
        door, client_id = self._door, entering.client_id
        if door.attachments.is_foreign(client_id, entering.identity):
            why = f"the session belongs to another user: {said(door.sessions.owner_of(client_id))}"
            return ConnectCode.NOT_AUTHORIZED, why
        identity = entering.identity
        if identity.token is not None and not door.authenticator.may_stay(PROTOCOL, identity):
            return ConnectCode.NOT_AUTHORIZED, "its token has ended meanwhile"
        if not entering.is_asked:
            entering.is_asked = True
            self._claimed = client_id
            door.claims.claim(client_id, entering.note_claim)
        if entering.claim_error is not None:
            return ConnectCode.SERVER_UNAVAILABLE, str(entering.claim_error)
        try:
            self._check_room(entering)
        except DiskFullError:
            return ConnectCode.SERVER_UNAVAILABLE, f"no session can be kept: {DISK_LOW}"
        return None

    def _check_room(self, entering: Entering) -> None:
        """Check that what is written down before a client is let in, is so soon: a session, its end, or a will.

        Raises:
            DiskFullError: It would wait for room.
        """
        connect, before = entering.connect, self._door.sessions.outline(entering.client_id)
        had_durable = before is not None and before.is_persistent
        has_durable = make_terms(connect, self._door.settings, self._limits).expiry_s > 0
        if connect.will is not None or (has_durable and (connect.is_clean or not had_durable)):
            self._door.broker.check_room()
        elif had_durable and connect.is_clean:
            self._door.broker.check_commits()

    def _must_wait(self, entering: Entering, found: Attachment) -> bool:
        """Return whether a client is let in only when what was changed is written down.

        Where no commit finds room, that keeps nobody from what is stored: a session that was there before is resumed
        nevertheless, unless it is not on the disk itself yet.
        """
        has_will = entering.connect.will is not None
        is_present = found.is_present and entering.client_id not in self._door.attachments.unkept
        if not (found.session.is_persistent or has_will or entering.had_durable):
            return False
        return not is_present or has_will or self._can_commit()

    def _await_kept(self, entering: Entering, found: Attachment) -> None:
        if found.session.is_persistent and not found.is_present:
            self._door.attachments.unkept.add(entering.client_id)
        self._door.broker.when_kept(partial(self._note_kept, entering))

    def _note_kept(self, entering: Entering, error: LmqError | None) -> None:
        if error is None:
            self._door.attachments.unkept.discard(entering.client_id)
        entering.note_kept(error)

    def _can_commit(self) -> bool:
        try:
            self._door.broker.check_commits()
        except DiskFullError:
            return False
        return True

    def _keep_will(self, will: Will, client_id: bytes, identity: Identity) -> None:
        user = identity.user.encode()
        will = self._door.publishing.rewriting.will(will, client_id, user)
        login = pack_login(identity)
        self._will = StoredWill(client_id, user, self.transport.peer_host, will, login=login)
        self._door.wills.keep(self._will)

    def _begin(self, session: Session, user: bytes, now_ms: int) -> None:
        """Begin with what a client has without asking: a pace, and subscriptions."""
        door = self._door
        of_user = door.authenticator.quotas.find_rates(user.decode(), now_ms)
        self._pacing = make_client_pacing(door.settings, self._limits, of_user, now_ms, *self.transport.shared.incoming)
        if door.settings.auto_subscribe and self.transport.peer != OWN_PEER:
            assert self._may is not None
            wanted = Subscribe(0, auto_filters(door.settings.auto_subscribe, session.client_id, user))
            self._steps = door.subscribing.subscribe(session, wanted, self._may, now_ms, self._note_auto)

    def _make_outflow(self, user: str, now_ms: int) -> Outflow | None:
        transport = self.transport
        of_user = self._door.authenticator.quotas.find_out_rates(user, now_ms)
        others = transport.shared.outgoing
        return make_outflow(self._door.settings, self._limits, of_user, now_ms, transport.deadline_changed, *others)

    def _refuse(
        self, connect: Connect, code: ConnectCode, why: str, now_ms: int, reason: ReasonCode | None = None
    ) -> None:
        transport = self.transport
        proved = None if self._proving is None else self._proving.user
        token = None if self._proving is None else self._proving.token
        user = proved or connect.user or b""
        # A token that is wrong, or a certificate of another user, says nothing of this user's password.
        is_password = proved != "" and not transport.peer_name
        authenticator = self._door.authenticator
        token_why = authenticator.tokens.why_refused(connect.password if self._proving is None else token)
        logged = authenticator.explain(why, user, token_why) if is_password or (token and token_why) else why
        log_refusal(self._door.actor(transport, ""), connect.client_id, user, why, logged)
        self._door.metrics.refuse(code.name.lower())
        if connect.properties.number(Property.PACKET_BYTES_MAX, REFUSAL_BYTES) >= REFUSAL_BYTES:
            self._connection.say_no(code, reason)
        self._connection.stop()
        transport.write(self._connection.data_to_send())
        self._leave(now_ms)
        self._hang_up(f"refused: {why}")
