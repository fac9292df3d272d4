"""The chain of back ends: each is asked in order until one knows the user; a failure refuses the login."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from gateway.auth.backends.asked import AskedBackend
from gateway.auth.backends.question import Backend, BackendError, Question, Verdict
from gateway.auth.credentials import PASSWORD_BYTES_MAX, Credentials, Refusal
from gateway.auth.password_checks import Attempt, PasswordChecks
from gateway.auth.penalty_box import PenaltyBox
from gateway.auth.tokens import Token, is_name
from gateway.runtime.loop import Clock
from gateway.settings.way_names import BACKENDS

RUNNING_MAX = 256  # logins under way; each back end has a bound of its own
OF_ADDRESS_MAX = 64  # logins from one address: whole fleets may share one
CLIENT_CHARS_MAX = 1_024  # of a client identifier; chosen: longer ones would fill logs and requests


Found = Callable[[Token | Refusal | None], None]  # what a client comes in by, or why not; None: none knows the name


class BackendChain:
    """Back ends in order.

    Args:
        clock: The gateway's.
        box: Has the addresses that are refused; None: none is.
    """

    def __init__(self, clock: Clock, box: PenaltyBox | None = None) -> None:
        self._clock = clock
        self._key = os.urandom(32)
        self._backends: list[AskedBackend] = []
        self._marks: frozenset[bytes] = frozenset()
        self._tasks: set[asyncio.Task[None]] = set()
        self._checks = PasswordChecks(self, clock, box, running_max=RUNNING_MAX, of_address_max=OF_ADDRESS_MAX)

    @property
    def is_on(self) -> bool:
        """Whether there are any."""
        return bool(self._backends)

    @property
    def all(self) -> Sequence[AskedBackend]:
        """Those that are asked, in order."""
        return self._backends

    def use(self, backends: Sequence[Backend]) -> None:
        """Go by other back ends from now on; nothing that was answered before is remembered."""
        before = self._backends
        self._backends = [
            AskedBackend(backend, f"auth.backends[{number}]", self._clock, self._key)
            for number, backend in enumerate(backends)
        ]
        self._marks = frozenset(backend.mark for backend in self._backends)
        for backend in before:
            backend.give_way(self._backends)

    def is_right(self, token: Token) -> bool:
        """Return whether a client that a back end let in still may be there."""
        return token.mark in self._marks and self._clock.machine_ms() < token.ends_at_ms

    def find(self, mark: bytes) -> AskedBackend | None:
        """Return the back end that lets in by a mark, None where it is there no more."""
        return next((backend for backend in self._backends if backend.mark == mark), None)

    def takes(self, credentials: Credentials) -> bool:
        """Return whether they are asked about a client: one with a name and a password, or a certificate."""
        if not self.is_on_for(credentials) or credentials.user is None:
            return False
        return credentials.password is not None or self.takes_certificate(credentials)

    def is_on_for(self, credentials: Credentials) -> bool:
        """Return whether there are some that count where a client comes in."""
        return bool(self._backends) and bool(self._counting(credentials))

    def _counting(self, credentials: Credentials) -> Sequence[AskedBackend]:
        if credentials.counts(BACKENDS):
            return self._backends
        return [backend for backend in self._backends if credentials.counts(backend.settings.called)]

    def takes_certificate(self, credentials: Credentials) -> bool:
        """Return whether one of them looks at the certificate that a client has."""
        return credentials.certificate != b"" and any(
            backend.sees_certificates for backend in self._counting(credentials)
        )

    def name(self, credentials: Credentials) -> Credentials:
        """Return credentials, with the client identifier for a name where a certificate alone is looked at."""
        is_nameless = credentials.user is None and self.takes_certificate(credentials)
        return credentials._replace(user=credentials.client) if is_nameless else credentials

    def begin(self, credentials: Credentials, found: Found, *, is_stranger_wrong: bool) -> Attempt | None:
        """Ask about a client, and tell `found` on the loop: before this returns, or later.

        Args:
            credentials: What it says of itself.
            found: Told what it comes in by, or why not.
            is_stranger_wrong: A name that nobody knows counts as a guess.
        """
        question = make_question(credentials)
        if question is None:
            found(Refusal.WRONG)
            return None
        counting = self._counting(credentials)
        token = _find(counting, question)
        if token is not None:
            found(token)
            return None
        asking = _Asking(counting, question, is_stranger_wrong=is_stranger_wrong)
        name = hmac.new(self._key, question.user.encode(), hashlib.sha256).digest()[:16]
        answer = partial(_tell, asking, found)
        return self._checks.add(credentials.host, name, b"", asking.run, answer)

    # What runs the questions

    def run(self, work: Callable[[], Coroutine[Any, Any, bool | None]], then: Callable[[bool | None], None]) -> None:
        """Run `work` beside what else the loop does, then call `then` with its answer."""
        task = asyncio.get_running_loop().create_task(_run(work, then))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> None:
        """Call back on the loop after `delay_ms`."""
        asyncio.get_running_loop().call_later(delay_ms / 1000, callback)

    def stop(self) -> None:
        """Ask nothing more, and tell nobody."""
        for task in self._tasks:
            task.cancel()
        for backend in self._backends:
            backend.close()


class _Asking:
    """One walk along the chain."""

    def __init__(self, backends: Sequence[AskedBackend], question: Question, *, is_stranger_wrong: bool) -> None:
        self.outcome: Token | Refusal | None = Refusal.BUSY
        self._backends = backends
        self._question = question
        self._is_stranger_wrong = is_stranger_wrong

    async def run(self) -> bool | None:
        """Return whether a client is let in, or is not wrong at least; None where no back end can say."""
        try:
            for backend in self._backends:
                if self._question.is_by_certificate and not backend.sees_certificates:
                    continue  # an empty password is none
                reply = await backend.ask(self._question)
                if reply.verdict is Verdict.YES:
                    self.outcome = backend.vouch(self._question, reply)
                    return True
                if reply.verdict is Verdict.NO:
                    self.outcome = Refusal.WRONG
                    return False
        except BackendError:
            self.outcome = Refusal.DOWN
            return None
        self.outcome = None
        return not self._is_stranger_wrong


def _find(backends: Sequence[AskedBackend], question: Question) -> Token | None:
    """Return what a client comes in by that was let in lately."""
    for backend in backends:
        if question.is_by_certificate and not backend.sees_certificates:
            continue
        reply = backend.find(question)
        if reply is None or reply.verdict is Verdict.NO:
            return None  # a wrong one waits for its turn, as with passwords of users
        if reply.verdict is Verdict.YES:
            return backend.vouch(question, reply)
    return None


def _tell(asking: _Asking, found: Found, is_right: bool | None) -> None:  # noqa: ARG001, FBT001  # called so
    found(asking.outcome)


async def _run(work: Callable[[], Coroutine[Any, Any, bool | None]], then: Callable[[bool | None], None]) -> None:
    then(await work())


def make_question(credentials: Credentials) -> Question | None:
    """Return what back ends are asked, None where nobody that they know is called so, or has such a password."""
    user, client, certificate = credentials.user, credentials.client, credentials.certificate
    is_by_certificate = credentials.password is None and certificate != b""
    password = b"" if is_by_certificate else credentials.password
    if not is_name(user) or password is None or len(password) > PASSWORD_BYTES_MAX or len(client) > CLIENT_CHARS_MAX:
        return None
    try:
        text = password.decode()
    except UnicodeDecodeError:
        return None
    assert user is not None
    return Question(credentials.protocol, user, text, client, credentials.host, certificate, is_by_certificate)
