"""One connection of the RocketMQ door: requests in, answers out.

Source: docs/protocols/rocketmq.md.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from core.errors import LmqError
from core.properties import encode_origin
from gateway.auth.credentials import ADMINISTRATOR, Identity, LoginAnswer, Refusal
from gateway.auth.denials import Denials
from gateway.auth.login_log import log_login, log_refusal, outcome_of, reason_of
from gateway.auth.password_checks import Attempt
from gateway.auth.recheck import TURNED_OUT
from gateway.auth.rule import TOPIC
from gateway.events import Actor
from gateway.net.protocol import ConnectionHandler, Transport
from gateway.net.streams.first_bytes import told_of
from gateway.pacing import UserRates
from gateway.rocketmq.client import Client
from gateway.rocketmq.client_table import Beat
from gateway.rocketmq.connection import Connection, Login
from gateway.rocketmq.errors import CommandRefusedError, PeerSilentError, refusal_of
from gateway.rocketmq.functions import FUNCTIONS, PULLS, SENDS
from gateway.rocketmq.held import Held
from gateway.rocketmq.held_table import HeldTable
from gateway.rocketmq.login import CODES, REMARKS, credentials_of, is_proven
from gateway.rocketmq.name_rights import find_decider, may_consume, may_read, may_read_record, may_write
from gateway.rocketmq.send_pace import TOO_FAST, SendPace
from gateway.rocketmq.send_route import Sender
from gateway.rocketmq.send_run import SendRun
from gateway.rocketmq.services import RocketmqServices
from gateway.rocketmq.states import State
from gateway.rocketmq.store_host import plain_host
from lmq.remoting.commands import Command, answer
from lmq.remoting.errors import FrameError
from lmq.remoting.message_codec import Record
from lmq.remoting.request_codes import RequestCode
from lmq.remoting.response_codes import ResponseCode
from lmq.remoting.signature import ACCESS_KEY

LOGGER = logging.getLogger(__name__)
_NEW = int(State.NEW)
_LOGIN = int(State.LOGIN)


class RocketmqHandler(ConnectionHandler):
    """One connection: requests in, answers out, pulls held in between."""

    def __init__(self, door: RocketmqServices, transport: Transport) -> None:
        self.held = HeldTable(transport, door.broker.request_run)
        self._door = door
        self.transport = transport
        self.client = Client(transport)
        self._connection = Connection(door.frames, door.runs, door.bounds, door.uniq, plain_host(transport.peer_host))
        self._sender: Sender | None = None
        self.identity: Identity | None = None
        self.own_rates = UserRates(door.settings.messages_rate, door.settings.bytes_rate, 0)
        self.own_out_rates = UserRates(door.settings.messages_out_rate, door.settings.bytes_out_rate, 0)
        self._pace: SendPace | None = None  # where there is a limit to what it may send
        self._denials: Denials | None = None  # made when something is denied
        self._beat: Beat | None = None  # a heartbeat that is not all taken in
        self._attempt: Attempt | None = None  # a login that waits for its answer
        self._has_ended = False  # the peer sends no more, and its login is under way
        self._refused_user: str | None = None  # that the log has named last
        self._name_origin()

    # The transport calls these.

    def on_data(self, data: bytes, now_ms: int) -> bool:
        """Answer what came; a peer that sends no frames is closed."""
        if self._connection.state == _LOGIN:  # this much is kept, and no more is read
            self.transport.pause_reading()
        self._connection.receive_data(data, now_ms)
        return self._work(data, now_ms)

    def go_on(self, now_ms: int) -> bool:
        """Answer some more of it."""
        self._connection.take_up(now_ms)
        has_more = self._work(b"", now_ms)
        if self._has_ended and not has_more:
            self._has_ended = False
            self.on_eof(now_ms)
        return has_more

    def _work(self, data: bytes, now_ms: int) -> bool:
        has_more = False
        try:
            has_more = self._act(now_ms)
        except FrameError as error:
            self._door.metrics.refuse("malformed_frame")
            at, why = self.transport, error.reason
            if self._connection.state == _NEW:  # it never was one of RocketMQ: say what it is of
                why += told_of(data)
            LOGGER.warning("closing connection: malformed frame conn=%d peer=%s reason=%s", at.conn_id, at.peer, why)
            self._hang_up("malformed_frame")
            return False
        if not self.transport.is_writable:
            self.transport.pause_reading()
        return has_more

    def _act(self, now_ms: int) -> bool:
        """Answer what came, event by event; return whether something is left because others are to have their turn.

        Something is also left where the peer does not read its answers.
        """
        if self._beat is not None and not self._go_on_with_beat(self._beat):
            return True
        connection = self._connection
        transport = self.transport
        for event in connection.events():
            if isinstance(event, SendRun):
                self._store(event, now_ms)
            elif isinstance(event, Login):
                self._begin_login(event.request)
                if self.identity is not None:
                    continue  # the request itself comes now
            else:
                self._handle(event, now_ms)
            is_beating = self._beat is not None and not self._go_on_with_beat(self._beat)
            if is_beating or transport.is_share_over() or not transport.is_writable:
                return True
        return False

    def _go_on_with_beat(self, beat: Beat) -> bool:
        """Take in some more of a heartbeat; answer and return True once that is all."""
        while not self.transport.is_share_over():
            try:
                next(beat.steps)
            except StopIteration:
                self._beat = None
                self._name_origin()
                self.answer(beat.request, beat.answer)
                return True
        return False

    def _begin_login(self, request: Command) -> None:
        transport = self.transport
        credentials = credentials_of(request, transport.peer, transport.peer_name, transport.ways)
        attempt = self._door.authenticator.begin(credentials, partial(self._finish_login, request))
        if self._connection.state == _LOGIN:
            self._attempt = attempt

    def _finish_login(self, request: Command, answer: LoginAnswer, now_ms: int) -> None:
        """Go on with the login's request, or behind it; in a turn of its own, where that had to wait."""
        attempt, self._attempt = self._attempt, None
        self._door.metrics.log_in(outcome_of(answer))
        if isinstance(answer, Identity):
            self._come_in(answer, request, now_ms)
        else:
            self._refuse(answer, request)
        if attempt is not None:
            if self.transport.is_writable:
                self.transport.resume_reading()
            self.transport.request_turn()

    def _come_in(self, identity: Identity, request: Command, now_ms: int) -> None:
        if not self._door.may_be(self, identity):
            self._refuse(Refusal.QUOTA, request)
            return
        secret = b""
        if is_proven(identity, request, self.transport.peer_name):
            secret = self._door.authenticator.find_secret(identity.user)
        if secret and (self.identity is None or self.identity.user != identity.user):
            log_login(
                self._door.actor(self.transport, identity.user), self.client.client_id, identity.user, is_known=True
            )
        self.identity = identity
        self._pace = self._door.find_pace(self, now_ms)
        self.held.pacing = self._door.find_out_pacing(self, now_ms)
        self._connection.accept(secret)
        self._name_origin()

    def _refuse(self, why: Refusal, request: Command) -> None:
        user = request.ext.get(ACCESS_KEY, "")
        if user != self._refused_user:  # else a client that asks again and again fills the log
            self._refused_user = user
            reason = reason_of(why, self.transport.peer_name)
            logged = self._door.authenticator.explain(reason, user)
            log_refusal(self._door.actor(self.transport, ""), self.client.client_id, user, reason, logged)
        self.identity = None
        self._connection.refuse()
        self._name_origin()
        self.answer(request, answer(request, CODES[why], REMARKS[why]))

    def on_eof(self, now_ms: int) -> None:  # noqa: ARG002 - the interface says so
        """The peer sends no more: its sends are answered when they are durable, waiting pulls are not."""
        if self._connection.state == _LOGIN:
            self._has_ended = True  # what came is done after the login
            return
        self._connection.receive_eof()
        self._door.broker.when_durable(self._close_answered)

    def _close_answered(self, error: LmqError | None) -> None:
        del error  # the peer was told of each in its answer
        self.transport.close()

    def on_writable(self, now_ms: int) -> None:  # noqa: ARG002 - the interface says so
        """Go on reading requests and answering held pulls."""
        if self._connection.state != _LOGIN:
            self.transport.resume_reading()
        self.held.look_again()

    def on_closed(self, now_ms: int) -> None:  # noqa: ARG002 - the interface says so
        """Forget the client, its groups and its pulls."""
        self._connection.stop()
        if self._attempt is not None:
            self._door.authenticator.cancel(self._attempt)
            self._attempt = None
        self.held.forget_all()
        self._door.clients.drop(self.client)
        self._door.calls.drop(self.transport.conn_id)
        self._door.forget(self)
        self._door.queries.forget(self.transport.conn_id)
        self._door.tools.works.forget(self.transport.conn_id)
        if self._denials is not None:
            self._denials.end()
        self._sender = self._beat = None  # refer back here: what is closed is not to wait for the collector of cycles

    def on_timer(self, now_ms: int) -> None:
        """Answer the pulls whose time is over; close a connection that was silent for too long."""
        if self.held:
            self._connection.take_up(now_ms)
            self.held.handle_timer(now_ms)
            return
        try:
            self._connection.handle_timer(now_ms)
        except PeerSilentError as error:
            self._hang_up(str(error))

    def _hang_up(self, why: str) -> None:
        self.transport.end_reason = why
        self.transport.close()

    def next_deadline_ms(self) -> int | None:
        """Return when the next held pull, or the connection's patience, ends."""
        return self.held.next_deadline_ms() if self.held else self._connection.next_deadline_ms()

    # The request families call these.

    @property
    def is_writable(self) -> bool:
        """Whether an answer with messages may be written now."""
        return self.held.may_answer

    def write(self, data: bytes | memoryview) -> None:
        """Send `data`, which may be used again after the call where it is not `bytes`."""
        self.transport.write(data)

    def answer(self, request: Command, response: Command) -> None:
        """Send the answer to a request, at once or later."""
        if response.code != ResponseCode.SUCCESS:
            self._door.metrics.refuse(f"code_{response.code}")
        self._connection.answer(request, response)
        self._flush()

    def settle(self, request: Command, work: Callable[[], Command | None]) -> None:
        """Send what `work` returns, or what its error means: for what is answered later."""
        try:
            response = work()
        except (CommandRefusedError, LmqError) as error:
            response = refusal_of(request, error)
        if response is not None:
            self.answer(request, response)

    def store_one(self, request: Command, write: Callable[[bytes], None], now_ms: int) -> None:
        """Store one send; `write` gets its answer."""
        self._send_one(self._make_sender(write), request, now_ms)

    def is_share_over(self) -> bool:
        """Whether others are to have their turn."""
        return self.transport.is_share_over()

    def may_read(self, queue: bytes) -> bool:
        """Whether this client may read the queue or topic."""
        identity = self.identity
        is_allowed = identity is not None and may_read(identity.may, self._door.broker.parent_topic, queue)
        if not is_allowed:
            self._note_denied("read", queue, "" if identity is None else find_decider(identity.may, "read", queue))
        return is_allowed

    def may_read_record(self, record: Record) -> bool:
        """Whether this client may read a message."""
        identity = self.identity
        is_allowed = identity is not None and may_read_record(identity.may, self._door.broker.parent_topic, record)
        if not is_allowed:
            self._note_denied("read", record.topic)
        return is_allowed

    def may_publish(self, name: bytes) -> bool:
        """Whether this client may send to the topic or light queue."""
        is_allowed = self.identity is not None and may_write(self.identity.may, name)
        if not is_allowed:
            by = "" if self.identity is None else find_decider(self.identity.may, "write", name)
            self._note_denied("publish", name, by)
        return is_allowed

    def may_publish_topic(self, topic: bytes) -> bool:
        """Whether this client may send to the topic of the topic space."""
        is_allowed = self.identity is not None and self.identity.may.may_publish(topic)
        if not is_allowed:
            by = "" if self.identity is None else self.identity.may.find_decider("publish", topic)
            self._note_denied("publish", topic, by)
        return is_allowed

    def _note_denied(self, action: str, name: bytes, by: str = "") -> None:
        if self._denials is None:
            self._denials = Denials(self.actor())
        self._denials.note(action, name, by)

    def may_consume(self, group: bytes) -> bool:
        """Whether this client may consume as the group, where its rules tell groups from topics."""
        is_allowed = self.identity is not None and may_consume(self.identity.may, group)
        if not is_allowed:
            self._note_denied("consume", group)
        return is_allowed

    def may_configure(self, name: bytes, kind: str = TOPIC) -> bool:
        """Whether this client may make, change and remove the topic or group."""
        is_allowed = self.identity is not None and self.identity.may.may_configure(b"/", name, kind)
        if not is_allowed:
            self._note_denied("configure", name)
        return is_allowed

    def actor(self) -> Actor:
        """Return by whose doing things happen on this connection."""
        return self._door.actor(self.transport, "" if self.identity is None else self.identity.user)

    def find_administrator(self) -> Actor | None:
        """Return by whose doing something happens, where this client's user may do everything; else None."""
        user = "" if self.identity is None else self.identity.user
        if not user or ADMINISTRATOR not in self._door.authenticator.find_tags(user):
            self._note_denied("configure", b"users")
            return None
        return self.actor()

    def turn_out(self, now_ms: int, reason: str = "") -> None:  # noqa: ARG002 - as the other doors
        """Close because clients may not come in any more as this one did."""
        self._door.metrics.refuse("turned_out")
        self._hang_up(reason or TURNED_OUT)

    def hold(self, held: Held) -> None:
        """Keep a request that waits."""
        self.held.add(held)

    # Requests

    def _store(self, run: SendRun, now_ms: int) -> None:
        count = run.count
        if self._pace is None or self._pace.cut(run, now_ms):
            self._door.sends.store(self._get_sender(), run, now_ms)
        else:
            self._door.sends.send_away(self._get_sender(), run, TOO_FAST, "too_fast")
        if run.count < count:
            self._connection.unread(run)
        run.release()

    def _get_sender(self) -> Sender:
        if self._sender is None:
            self._sender = self._make_sender(self.write)
        return self._sender

    def _make_sender(self, write: Callable[[bytes], None]) -> Sender:
        host_hex = self._door.broker.store_host.hex().upper().encode()
        return Sender(write, self.may_publish, self.may_publish_topic, host_hex, self.is_share_over, actor=self.actor)

    def _handle(self, request: Command, now_ms: int) -> None:
        """Answer one request; none is so wrong that it costs the connection."""
        if request.is_response:
            self._door.calls.settle(self.transport.conn_id, request)
            return
        try:
            response = self._ask(request, now_ms)
        except (CommandRefusedError, LmqError) as error:
            response = refusal_of(request, error)
        if response is not None:
            self.answer(request, response)

    def _flush(self) -> None:
        data = self._connection.data_to_send()
        if data:
            self.transport.write(data)

    def _ask(self, request: Command, now_ms: int) -> Command | None:
        code = request.code
        if code in PULLS:
            pulls = self._door.pulls
            pulls.pull(self, request, now_ms)
            return None
        if code in SENDS:
            self._send_one(self._get_sender(), request, now_ms)
            return None
        if code == RequestCode.HEART_BEAT:
            clients = self._door.clients
            self._beat = Beat(request, clients.heart_beat(self.client, request, self.may_read, self.may_consume))
            return None
        function = FUNCTIONS.get(code)
        if function is None:
            raise CommandRefusedError(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, f" request type {code} not supported")
        return function(self._door, self, request, now_ms)

    def _send_one(self, sender: Sender, request: Command, now_ms: int) -> None:
        if self._pace is not None:
            self._pace.check(now_ms)
        run = self._door.runs.take()
        self._connection.begin(run, b"")
        try:
            self._door.sends.send_one(sender, run, request, now_ms)
        finally:
            if self._pace is not None:
                self._pace.note(run.count, len(request.body), now_ms)
            run.release()

    def _name_origin(self) -> None:
        user = self.identity.user if self.identity is not None else ""
        self._connection.origin = encode_origin(b"rocketmq", self.client.client_id.encode(), user.encode())
