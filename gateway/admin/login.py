"""The caller of the admin API: logged in by HTTP Basic, as RabbitMQ's tools do, or by a token, or not at all."""

from __future__ import annotations

import asyncio
import base64
import binascii
import time
from typing import Annotated

from fastapi import Depends, HTTPException, Request

from gateway.address import format_address
from gateway.admin.changes_told import ACTOR
from gateway.admin.same_site import is_this_machine
from gateway.admin.scopes import is_open, may_look, may_manage
from gateway.admin.view import AdminView, View
from gateway.auth.api_tokens import is_api_token
from gateway.auth.authenticator import Authenticator
from gateway.auth.credentials import ADMINISTRATOR, Credentials, LoginAnswer, Refusal
from gateway.auth.judge import DEFAULT, PERMISSIONS, Verdict
from gateway.auth.login_log import log_refusal, outcome_of
from gateway.auth.permissions import Permissions
from gateway.events import Actor
from gateway.settings.way_names import API_TOKENS, Ways

PROTOCOL = "amqp"  # as RabbitMQ's, which has the same users for both
DOOR = "admin"
LOGGED_IN = "lmq.logged_in"  # in a request's state: users that the connection's requests were logged in as
LOOKS = "lmq.looks"  # in a request's scope: whether anybody can be answered there that does not log in
WAYS = "lmq.ways"  # in a request's scope: the authenticators that count at the address where it came
MONITORING = "monitoring"
POLICYMAKER = "policymaker"
NOBODY = "the token lets nobody in"
_SEE_ALL = frozenset({ADMINISTRATOR, MONITORING})


class Caller:
    """A caller. One that did not log in may look, and change nothing.

    Args:
        peer: Where it comes from: HOST:PORT.
        user: Its name, empty where it did not log in.
        password: What it logged in with.
        may: Its rights on exchanges and queues, None where it did not log in.
        tags: What it may do here.
        scopes: What its token of the API is for, None where it came in without one.
        is_narrowed: That token is not for what the route is about: it may look at what is open to all that may look.
        enters: The rights that say which virtual hosts it is told of; None: `may`.
    """

    def __init__(
        self,
        peer: str,
        user: str,
        may: Permissions | None,
        tags: tuple[str, ...],
        *,
        password: str = "",
        scopes: tuple[str, ...] | None = None,
        is_narrowed: bool = False,
        enters: Permissions | None = None,
    ) -> None:
        self.peer = peer
        self.user = user
        self.password = password
        self.tags = tags
        self.scopes = scopes
        self._may = may
        self._is_narrowed = is_narrowed
        self._enters = enters or may

    @property
    def may(self) -> Permissions:
        """Its rights on exchanges and queues, for one that logged in.

        Raises:
            HTTPException: 401: It did not, or its token is not for this.
        """
        if self._may is None:
            raise _not_for(self.scopes or ()) if self._is_narrowed else not_in("log in for this")
        return self._may

    def check_administrator(self) -> None:
        """Return where it may do everything.

        Raises:
            HTTPException: 401: It did not log in, or is no administrator, or its token is not for this.
        """
        if self._is_narrowed:
            raise _not_for(self.scopes or ())
        if ADMINISTRATOR not in self.tags:
            raise not_in("not an administrator")

    @property
    def sees_all(self) -> bool:
        """Whether it is an administrator or monitor, which all is told to."""
        return not _SEE_ALL.isdisjoint(self.tags)

    def may_see_vhost(self, vhost: str) -> bool:
        """Return whether the caller is told of a virtual host: one that sees all is, others where they may enter it."""
        return self.sees_all or (self._enters is not None and self._enters.may_enter(vhost.encode()))

    def may_see_user(self, user: str | None) -> bool:
        """Return whether it is told of connections of a user: all are to those that see all, else its own."""
        return self.sees_all or (bool(self.user) and user == self.user)

    def check_sees(self, what: str, *, is_told: bool) -> None:
        """Return where it is told of something.

        Raises:
            HTTPException: 401: It is not.
        """
        if not is_told:
            raise not_in(
                f"{what} is not shown to user '{self.user}', which has the tag {' and '.join(self.tags)} alone"
            )

    def may_see_topic(self, topic: bytes) -> bool:
        """Return whether it is told of a topic: all are to administrators and monitors, else those that it may read."""
        if self.sees_all:
            return True
        return self._may is not None and self._may.may_subscribe(topic)

    def check_policymaker(self, vhost: str) -> None:
        """Return where it may set the policies and parameters of a virtual host.

        Raises:
            HTTPException: 401: It did not log in, has no tag for that, or no permissions in the virtual host.
        """
        if ADMINISTRATOR in self.tags:
            return
        if self._is_narrowed:
            raise _not_for(self.scopes or ())
        if POLICYMAKER not in self.tags:
            raise not_in("neither an administrator nor a policymaker")
        if not self.may.may_enter(vhost.encode()):
            raise not_in(f"user '{self.user}' has no permissions in vhost '{vhost}'")

    def check(self, what: str, *, is_allowed: bool, verdict: Verdict | None = None, vhost: str = "/") -> None:
        """Return where its rights allow what it asks for; what that is was asked of `may`.

        Args:
            what: It, in words.
            is_allowed: The answer.
            verdict: What decided, where that is known.
            vhost: Where rights are missing.

        Raises:
            HTTPException: 401: They do not, with what is missing.
        """
        if is_allowed:
            return
        by = "" if verdict is None else f" by {verdict.by}"
        missing = ""
        if verdict is None or verdict.by == DEFAULT or verdict.by.startswith(PERMISSIONS):
            missing = (
                f": tags give no rights on messages; 'lmq grant {self.user} --vhost {vhost} --all' does, "
                f"or 'lmq rule add NAME allow --for-user {self.user}'"
            )
        raise not_in(f"{what} refused for user '{self.user}'{by}{missing}")


def not_in(reason: str) -> HTTPException:
    """Return the answer to a caller that does not come in, or may not do what it asks for."""
    challenge = {"WWW-Authenticate": 'Basic realm="LMQ Gateway"'}
    return HTTPException(401, {"error": "not_authorized", "reason": reason}, challenge)


def _not_for(scopes: tuple[str, ...]) -> HTTPException:
    return not_in(f"the token is not for this: its scopes are {', '.join(scopes)}")


def _refuse(view: AdminView, peer: str, refusal: Refusal, why: str) -> HTTPException:
    """Return the answer to a login that is refused: 401, 429 where the address guesses, 503 where nobody can say."""
    if refusal is Refusal.PENALTY:
        left_s = view.authenticator.find_refused_s(peer.rpartition(":")[0])
        said = {"error": "too_many_requests", "reason": why}
        return HTTPException(429, said, {"Retry-After": str(max(left_s, 1))})
    if refusal.is_busy:
        return HTTPException(503, {"error": "unavailable", "reason": why})
    return not_in(why)


async def _find_caller(request: Request, view: View) -> Caller:
    """Return the user that asks with this request.

    Raises:
        HTTPException: 401: The caller does not come in, or has to log in.
    """
    peer = "" if request.client is None else format_address(request.client.host, request.client.port)
    said = request.headers.get("authorization")
    if said is not None:
        caller = await _log_in(view, peer, said, request)
        request.scope.setdefault("state", {})[ACTOR] = Actor(view.authenticator.events, DOOR, 0, peer, caller.user)
        return caller
    is_here = request.scope.get(LOOKS, True) and is_this_machine(request.url.hostname)
    if not is_here or not view.authenticator.lets_look(peer, request.scope.get(WAYS)):
        raise not_in("log in")
    return Caller(peer, "", None, (MONITORING,))


async def _log_in(view: AdminView, peer: str, said: str, request: Request) -> Caller:
    scheme, _, rest = said.partition(" ")
    ways: Ways = request.scope.get(WAYS)
    if scheme.lower() == "bearer" and is_api_token(rest.strip()):
        return _let_in_by_token(view, peer, rest.strip(), request)
    if scheme.lower() == "bearer":
        who = Credentials(PROTOCOL, "", rest.strip().encode(), peer, ways=ways)
        return await _let_in(view, who, request, wrong=NOBODY)
    try:
        user, colon, password = base64.b64decode(rest.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise not_in("the login is not well formed") from error
    if scheme.lower() != "basic" or not colon:
        raise not_in("the login is not of the scheme Basic")
    return await _let_in(view, Credentials(PROTOCOL, user, password.encode(), peer, ways=ways), request)


def _let_in_by_token(view: AdminView, peer: str, text: str, request: Request) -> Caller:
    """Return the user of a token of the API, with no more than the token is for."""
    token = view.api_tokens.check(text, time.time_ns() // 1_000_000)
    user = "" if token is None else token.user
    may = view.authenticator.find_member(user, peer.rpartition(":")[0])
    tags: tuple[str, ...] = tuple(view.authenticator.find_tags(user))
    ways: Ways = request.scope.get(WAYS)
    if token is None or may is None or not tags or (ways is not None and API_TOKENS not in ways):
        _note_refused(view, peer, user, "no such token, or not any more")
        raise not_in(NOBODY)
    _count_login(view, peer, user, request)
    method, path = request.method, request.url.path
    if may_manage(token.scopes, path):
        return Caller(peer, user, may, tags, scopes=token.scopes)
    if not may_look(token.scopes, method, path):
        request.scope.setdefault("state", {})[ACTOR] = Actor(view.authenticator.events, DOOR, 0, peer, user)
        raise _not_for(token.scopes)
    looks = (MONITORING,) if _SEE_ALL & set(tags) else tags
    return Caller(peer, user, may if is_open(path) else None, looks, scopes=token.scopes, is_narrowed=True, enters=may)


def _note_refused(view: AdminView, peer: str, user: str, why: str, password: bytes | None = None) -> None:
    view.broker.metrics.door(DOOR).refuse("login")
    authenticator = view.authenticator
    logged = authenticator.tokens.why_refused(password) or authenticator.explain(why, user)
    log_refusal(Actor(authenticator.events, DOOR, 0, peer), "", user, why, logged)


def _count_login(view: AdminView, peer: str, user: str, request: Request) -> None:
    """Count a user's first request on a connection as a login.

    Raises:
        HTTPException: 429: There were too many in this second.
    """
    seen = request.scope.setdefault("state", {}).setdefault(LOGGED_IN, set())
    if user in seen:
        return
    over = view.authenticator.quotas.log_in(user)
    if over is not None:
        why = f"connection refused for user '{user}': {over}"
        _note_refused(view, peer, user, why)
        raise HTTPException(429, {"error": "too_many_requests", "reason": why}, {"Retry-After": "1"})
    seen.add(user)


async def _let_in(view: AdminView, who: Credentials, request: Request, *, wrong: str = Refusal.WRONG.value) -> Caller:
    peer, user = who.peer, who.user or ""
    answer = await _ask(view.authenticator, who)
    view.broker.metrics.door("admin").log_in(outcome_of(answer))
    if isinstance(answer, Refusal):
        why = wrong if answer is Refusal.WRONG else answer.value
        _note_refused(view, peer, user, why, who.password if answer is Refusal.WRONG else None)
        raise _refuse(view, peer, answer, why)
    _count_login(view, peer, answer.user, request)
    tags = tuple(view.authenticator.find_tags(answer.user, answer.token))
    if not tags:
        raise not_in("the user has no tag that lets it in here")
    return Caller(peer, answer.user, answer.may, tags, password=(who.password or b"").decode())


async def _ask(authenticator: Authenticator, credentials: Credentials) -> LoginAnswer:
    found: asyncio.Future[LoginAnswer] = asyncio.get_running_loop().create_future()

    def take(answer: LoginAnswer, now_ms: int) -> None:
        del now_ms
        if not found.done():
            found.set_result(answer)

    attempt = authenticator.begin(credentials, take)
    try:
        return await found
    finally:
        if attempt is not None and (not found.done() or found.cancelled()):
            authenticator.cancel(attempt)


Looker = Annotated[Caller, Depends(_find_caller)]
"""The caller, in routes that only answer: it has been seen to that it may look."""


async def _find_member(caller: Looker) -> Caller:
    _ = caller.may
    return caller


Member = Annotated[Caller, Depends(_find_member)]
"""The caller, in routes that change something or show messages: it logged in; what it may is for the route to ask."""


async def _find_monitor(caller: Looker) -> Caller:
    caller.check_sees("the node", is_told=caller.sees_all)
    return caller


Monitor = Annotated[Caller, Depends(_find_monitor)]
"""The caller, in routes that tell of the gateway as a whole."""


async def _find_administrator(caller: Looker) -> Caller:
    caller.check_administrator()
    return caller


Administrator = Annotated[Caller, Depends(_find_administrator)]
"""The caller, in routes for those that may do everything."""
