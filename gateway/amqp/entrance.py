"""How the client of one connection proves its name: at connection.start-ok, in further steps, and again later."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from pamqp.commands import Connection as Method

from gateway.amqp.connection import AmqpConnection
from gateway.amqp.errors import AmqpError
from gateway.amqp.events import Credential, LoginAsked, ProofCame, SecretCame
from gateway.amqp.handshake import EXTERNAL, login_refused
from gateway.amqp.property_block import ANYBODY
from gateway.amqp.reply_codes import ReplyCode
from gateway.amqp.services import AmqpServices
from gateway.amqp.states import State, Step, follow
from gateway.auth.credentials import Credentials, Identity, LoginAnswer, Refusal
from gateway.auth.login_log import log_login, log_refusal, outcome_of, reason_of
from gateway.auth.mechanisms import PROOF_ERRORS, Proof, find_proof
from gateway.auth.password_checks import Attempt
from gateway.net.protocol import Transport

IMPERSONATOR = "impersonator"  # the tag of users whose messages may name another user, as in RabbitMQ
NOT_RENEWED = "New secret was refused by one of the backends"  # RabbitMQ's words


class Guest(Protocol):
    """The connection's handler."""

    @property
    def identity(self) -> Identity | None:
        """The user; None before the login."""

    def let_in(self, client: str, identity: Identity) -> None:
        """Go by a user, on a connection that the client calls `client`."""

    def renew(self, identity: Identity) -> None:
        """Go by a later login of the same user."""

    def go_on_later(self, error: AmqpError | None, now_ms: int) -> None:
        """Send what an answer that had to wait led to, fail with `error`, and go on with what came meanwhile."""


class Entrance:
    """The logins of one connection, one at a time.

    Args:
        door: Knows the users.
        transport: The client's.
    """

    __slots__ = ("_asked", "_at_once", "_door", "_login", "_proof", "_proven", "_refused", "_transport", "attempt")

    def __init__(self, door: AmqpServices, transport: Transport) -> None:
        self._door = door
        self._transport = transport
        self.attempt: Attempt | None = None  # a login under way
        self._login: LoginAsked | None = None
        self._proof: Proof | None = None  # by a mechanism that goes in steps, while it does
        self._proven: Identity | None = None  # the user that was found; the client has yet to hear our proof
        self._refused: Refusal | None = None  # the reason; told once the client has answered its mechanism's last step
        self._at_once: Callable[[LoginAnswer], None] | None = None  # takes an answer while it is asked for
        self._asked = 0  # secrets that were sent and not answered

    def cancel(self) -> None:
        """Forget what is under way: the connection is over."""
        attempt, self.attempt = self.attempt, None
        if attempt is not None:
            self._door.authenticator.cancel(attempt)
        self._proof = self._proven = self._refused = None

    def take(self, event: Credential, guest: Guest, connection: AmqpConnection) -> None:
        """Go by what the client says of itself.

        Raises:
            AmqpError: NOT_ALLOWED: a new secret is not right, or another user's.
        """
        if isinstance(event, SecretCame):
            self._renew(event.secret, guest, connection)
        elif isinstance(event, ProofCame):
            self._prove(event.response, guest, connection)
        else:
            self._begin(event, guest, connection)

    def _begin(self, event: LoginAsked, guest: Guest, connection: AmqpConnection) -> None:
        authenticator = self._door.authenticator
        self._login = event
        self._proof = find_proof(event.mechanism, authenticator, self._transport.ways)
        if self._proof is not None:
            if event.password:
                self._prove(event.password, guest, connection)
            else:
                _ask(connection, b"")  # for the first message
            return
        peer = self._transport.peer
        certified = self._transport.peer_name if event.mechanism == EXTERNAL else ""
        credentials = Credentials("amqp", event.user, event.password, peer, certified, ways=self._transport.ways)
        self._note(authenticator.begin(credentials, partial(self._finish, guest, connection)), connection)

    def _note(self, attempt: Attempt | None, connection: AmqpConnection) -> None:
        if connection.state == State.LOGIN:  # else it was answered at once
            self.attempt = attempt

    def _prove(self, response: bytes, guest: Guest, connection: AmqpConnection) -> None:
        """Take a step of a mechanism that has some."""
        proof = self._proof
        if self._refused is not None:
            self._refuse(self._refused, reason_of(self._refused, self._transport.peer_name), connection)
            return
        if self._proven is not None or proof is None:
            self._accept(self._proven, guest, connection)
            return
        try:
            asked = proof.take(response)
        except PROOF_ERRORS as error:
            self._refuse(Refusal.WRONG, str(error), connection)
            return
        if asked is not None:
            _ask(connection, asked)
            return
        who = Credentials("amqp", None, None, self._transport.peer, ways=self._transport.ways)
        self._note(proof.check(who, partial(self._finish, guest, connection)), connection)

    def _finish(self, guest: Guest, connection: AmqpConnection, answer: LoginAnswer, now_ms: int) -> None:
        """Let the user in or not; then go on with what came after its credentials, where that had to wait."""
        attempt, self.attempt = self.attempt, None
        final = b"" if self._proof is None else self._proof.final
        self._door.metrics.log_in(outcome_of(answer))
        if answer is Refusal.WRONG and self._proof is not None and self._proof.complaint:
            self._refused = answer
            _ask(connection, self._proof.complaint)
        elif isinstance(answer, Refusal):
            self._refuse(answer, reason_of(answer, self._transport.peer_name), connection)
        elif final:
            self._proven = answer
            _ask(connection, final)
        else:
            self._accept(answer, guest, connection)
        if attempt is not None:
            guest.go_on_later(None, now_ms)

    def _accept(self, identity: Identity | None, guest: Guest, connection: AmqpConnection) -> None:
        assert identity is not None
        assert self._login is not None
        client = self._login.client
        self._login = self._proof = self._proven = None
        log_login(self._door.actor(self._transport, identity.user), client, identity.user, is_known=True)
        guest.let_in(client, identity)
        tags = self._door.authenticator.find_tags(identity.user, identity.token)
        connection.accept_login(ANYBODY if IMPERSONATOR in tags else identity.user.encode())

    def _refuse(self, refusal: Refusal, why: str, connection: AmqpConnection) -> None:
        login, proof = self._login, self._proof
        self._login = self._proof = None
        assert login is not None
        user = login.user if proof is None else proof.user
        authenticator = self._door.authenticator
        password = login.password if proof is None else proof.token
        logged = authenticator.explain(why, user, authenticator.tokens.why_refused(password))
        log_refusal(self._door.actor(self._transport, ""), login.client, user, why, logged)
        self._door.metrics.refuse("login")
        self._transport.end_reason = self._transport.end_reason or f"refused: {why}"
        told = why if refusal is Refusal.PENALTY else ""
        connection.refuse_login(login_refused(login.mechanism, is_busy=refusal.is_busy, why=told))

    # Once the client was let in

    def _renew(self, secret: bytes, guest: Guest, connection: AmqpConnection) -> None:
        """Take a new token of a client that came in by one; a password does not run out, and is not looked at."""
        identity = guest.identity
        assert identity is not None
        if identity.token is None:
            connection.send_method(0, Method.UpdateSecretOk())
            return
        authenticator = self._door.authenticator
        if not authenticator.tokens.takes(secret):
            raise AmqpError(ReplyCode.NOT_ALLOWED, NOT_RENEWED, Method.UpdateSecret.index)
        self.cancel()  # of two the later one counts
        self._asked += 1
        credentials = Credentials("amqp", identity.user, secret, self._transport.peer, ways=self._transport.ways)
        answers: list[LoginAnswer] = []  # one that comes before `begin` returns
        later = partial(self._finish_renewal, guest, connection)
        self._at_once = answers.append
        attempt = authenticator.begin(credentials, later)
        self._at_once = None
        if answers:
            error = self._settle(guest, connection, answers[0])
            if error is not None:
                raise error
        else:
            self.attempt = attempt

    def _finish_renewal(self, guest: Guest, connection: AmqpConnection, answer: LoginAnswer, now_ms: int) -> None:
        if self._at_once is not None:
            self._at_once(answer)
            return
        self.attempt = None
        guest.go_on_later(self._settle(guest, connection, answer), now_ms)

    def _settle(self, guest: Guest, connection: AmqpConnection, answer: LoginAnswer) -> AmqpError | None:
        """Go by what became of a new secret; return what the connection ends with, None where it goes on."""
        count, self._asked = self._asked, 0
        known = guest.identity
        if known is None or not isinstance(answer, Identity) or answer.user != known.user:
            return AmqpError(ReplyCode.NOT_ALLOWED, NOT_RENEWED, Method.UpdateSecret.index)
        guest.renew(answer)
        for _ in range(count):
            connection.send_method(0, Method.UpdateSecretOk())
        return None


def _ask(connection: AmqpConnection, challenge: bytes) -> None:
    """Have the client go on with what it began."""
    connection.send_method(0, Method.Secure(challenge.decode()))
    connection.state = follow(connection.state, Step.SECURE)
