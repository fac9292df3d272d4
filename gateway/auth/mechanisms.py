"""The mechanisms of SASL that go in steps, the same at every door: a client is asked until it has proved its name.

Source: RFC 4422; docs/decisions/0052-certificates.md.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol

from gateway.auth import bearer, scram
from gateway.auth.authenticator import Authenticator
from gateway.auth.credentials import Credentials, Identity, LoginAnswer, Refusal, Then
from gateway.auth.password_checks import Attempt
from gateway.settings.way_names import JWT, USERS, Ways

PROOF_ERRORS = (scram.ScramError, bearer.BearerError)


class Proof(Protocol):
    """One exchange. Call `take` with what the client says until it returns None, then `check`, then read `final`."""

    @property
    def method(self) -> str:
        """The name of the mechanism."""

    @property
    def user(self) -> str:
        """The user whose secret is to be proved, as the client names it; empty: none was named, or it is a token."""

    @property
    def token(self) -> bytes | None:
        """The token that the client gave; None where it gave none."""

    @property
    def final(self) -> bytes:
        """What the client is told beside that it was let in; empty where the mechanism has nothing to say."""

    @property
    def complaint(self) -> bytes:
        """What a client is asked, and answers, whose proof was found wrong, before it is refused; empty: nothing."""

    def take(self, data: bytes) -> bytes | None:
        """Take what the client says; return what it is asked for next, None where its proof is complete.

        Raises:
            ScramError, BearerError: It is no message of the mechanism, or not of this exchange.
        """

    def check(self, who: Credentials, then: Then) -> Attempt | None:
        """Have the proof checked, and call `then` as `Authenticator.begin` does; `who` says more of the peer."""


class ScramProof:
    """SCRAM-SHA-256."""

    method = scram.METHOD
    token = None
    complaint = b""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator
        self._exchange = authenticator.begin_scram()
        self._is_first_taken = False

    @property
    def user(self) -> str:
        """The user that the first message names."""
        return self._exchange.user

    @property
    def final(self) -> bytes:
        """Our own proof: we know the password too."""
        return self._exchange.final

    def take(self, data: bytes) -> bytes | None:
        """Take the first or the second message."""
        if not self._is_first_taken:
            self._is_first_taken = True
            return self._exchange.answer_first(data)
        self._exchange.take_final(data)
        return None

    def check(self, who: Credentials, then: Then) -> Attempt | None:
        """Check the proof in its turn."""
        return self._authenticator.check_scram(self._exchange, who, then)


class BearerProof:
    """OAUTHBEARER."""

    method = bearer.METHOD
    user = ""
    final = b""
    complaint = bearer.COMPLAINT

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator
        self._wanted = ""
        self.token: bytes | None = None

    def take(self, data: bytes) -> bytes | None:
        """Take the one message."""
        self._wanted, self.token = bearer.read_bearer(data)
        if not self._authenticator.tokens.takes(self.token):  # else it would be a password
            raise bearer.BearerError("it does not hold a token")
        return None

    def check(self, who: Credentials, then: Then) -> Attempt | None:
        """Check the token, and that it is for the user that the client wants to be."""
        credentials = who._replace(user=None, password=self.token, certified="")
        return self._authenticator.begin(credentials, partial(_compare, self._wanted, then))


def _compare(wanted: str, then: Then, answer: LoginAnswer, now_ms: int) -> None:
    is_other = isinstance(answer, Identity) and wanted not in {"", answer.user}
    then(Refusal.WRONG if is_other else answer, now_ms)


def offered_proofs(authenticator: Authenticator, ways: Ways = None) -> tuple[str, ...]:
    """Return the mechanisms that a client could come in by now, at a listener with these ways in."""
    has_users, has_tokens = (ways is None or way in ways for way in (USERS, JWT))
    found = (
        (scram.METHOD, has_users and authenticator.known.has_scram),
        (bearer.METHOD, has_tokens and authenticator.tokens.is_on),
    )
    return tuple(method for method, is_offered in found if is_offered)


def find_proof(method: str, authenticator: Authenticator, ways: Ways = None) -> Proof | None:
    """Return a proof that is to be made by a mechanism, None where there is none of that name at such a listener."""
    if method == scram.METHOD and (ways is None or USERS in ways):
        return ScramProof(authenticator)
    if method == bearer.METHOD and method in offered_proofs(authenticator, ways):
        return BearerProof(authenticator)
    return None
