"""What the log, the metrics and listeners to events are told of logins, the same at every door."""

from __future__ import annotations

import logging

from gateway.auth.credentials import Identity, LoginAnswer, Refusal
from gateway.events import Actor, Events, Kind
from gateway.logs import said, tell

LOGGER = logging.getLogger(__name__)


def log_login(actor: Actor, client: bytes | str, user: bytes | str, *, is_known: bool) -> None:
    """Say that a client is let in, with the name that it gave; `is_known`: it proved to be that user."""
    how = "logged in" if is_known else "let in without a login"
    client_said, user_said = said(client), said(user)
    tell(LOGGER, "%s conn=%d peer=%s client=%s user=%s", how, actor.conn_id, actor.peer, client_said, user_said)
    actor.note_login(client_said, user_said, how)
    actor.tell(Kind.LOGIN, client=client_said, proven=is_known)


def log_refusal(actor: Actor, client: bytes | str, user: bytes | str, why: str, logged: str = "") -> None:
    """Say that a client is not let in, and why; `logged` is what the log alone says in place of that."""
    LOGGER.warning(
        "login refused conn=%d peer=%s client=%s user=%s reason=%s",
        actor.conn_id,
        actor.peer,
        said(client),
        said(user),
        logged or why,
    )
    actor.note_login(said(client), said(user), why)
    actor.tell(Kind.LOGIN_REFUSED, client=said(client), name=said(user), reason=why)


def reason_of(refusal: Refusal, certified: str) -> str:
    """Return why a client is not let in, for the log; `certified` is the name in its certificate."""
    return f"{refusal.value}: {said(certified)}" if refusal is Refusal.STRANGER else refusal.value


def outcome_of(answer: LoginAnswer) -> str:
    """Return what became of a login: `known`, `anonymous`, or why it was refused: `wrong`, `nameless`, ..."""
    if isinstance(answer, Identity):
        return "known" if answer.user else "anonymous"
    return answer.name.lower()


def tell_penalty(events: Events, host: str, refuse_s: int) -> None:
    """Say that logins of an address are refused for so long, because it guesses."""
    Actor(events, "", 0, host).tell(Kind.ADDRESS_REFUSED, for_s=refuse_s)
