"""Tokens that let programs in at this API: made, told once, listed without their text, revoked."""

from __future__ import annotations

import time
from typing import Annotated, Literal

from fastapi import Request, Response
from pydantic import BaseModel, BeforeValidator, Field

from gateway.admin.changes_told import FIELDS
from gateway.admin.login import Administrator, Caller, not_in
from gateway.admin.management.failures import bad_request, not_found
from gateway.admin.management.keeping import keep
from gateway.admin.management.listing import Asked, Item, Kind, answer_list
from gateway.admin.paths import PathName
from gateway.admin.routes import Routes
from gateway.admin.scopes import SCOPES, covers
from gateway.admin.view import AdminView, View
from gateway.auth.api_tokens import NAME_BYTES_MAX, NEVER, ApiToken, TooManyTokensError

API_TOKENS = Routes()
DAY_S = 86_400
USUAL_S = 90 * DAY_S  # chosen: a program's token that nobody renews ends within a quarter of a year
Scope = Literal[SCOPES]  # type: ignore[valid-type] # the words of one tuple


def _as_whole(value: object) -> object:
    """Return a number such as 60.0 as JSON means it: whole."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


class TokenBody(BaseModel):
    """A token that is wanted: its user, its scopes, and how long it lasts; 0 s: without an end."""

    name: Annotated[str, Field(min_length=1, max_length=NAME_BYTES_MAX)]
    scopes: Annotated[tuple[Scope, ...], Field(min_length=1)]
    user: str | None = None
    ends_in_s: Annotated[int, Field(strict=True, ge=0, le=3_650 * DAY_S), BeforeValidator(_as_whole)] = USUAL_S


@API_TOKENS.get("/tokens")
async def list_tokens(view: View, administrator: Administrator, asked: Asked) -> Response:
    """The tokens: whose, for what, until when; never their text."""
    del administrator
    return await answer_list(asked, _kind(view), list(view.api_tokens))


@API_TOKENS.post("/tokens", status_code=201)
async def add_token(view: View, administrator: Administrator, said: TokenBody, request: Request) -> Item:
    """Make a token and tell its text, this once; it lets in as its user, for its scopes, as long as that user may come.

    A token makes tokens of its own user and scopes only.
    """
    user = administrator.user if said.user is None else said.user
    request.scope["state"][FIELDS] = {"name": said.name, "of": user, "scopes": said.scopes}
    _check_may_give(administrator, user, said.scopes)
    if view.api_tokens.find(said.name) is not None:
        raise bad_request(f"there is already a token '{said.name}'")
    if view.authenticator.find_member(user, "") is None or not view.authenticator.find_tags(user):
        raise bad_request(f"user '{user}' is not a user of the gateway that may log in at the API")
    now_ms = time.time_ns() // 1_000_000
    ends_at_ms = now_ms + said.ends_in_s * 1_000 if said.ends_in_s else NEVER
    try:
        text = view.api_tokens.add(said.name, user, said.scopes, ends_at_ms=ends_at_ms, now_ms=now_ms)
    except TooManyTokensError as error:
        raise bad_request("there are too many tokens: revoke unused ones") from error
    await keep(view.broker)
    found = view.api_tokens.find(said.name)
    assert found is not None
    return {**tell_token(view, found), "token": text}


@API_TOKENS.delete("/tokens/{name}", status_code=204)
async def revoke_token(view: View, administrator: Administrator, name: PathName) -> None:
    """Have a token let nobody in any more."""
    found = view.api_tokens.find(name)
    if found is None:
        raise not_found(f"no token '{name}'")
    _check_may_give(administrator, found.user, found.scopes)
    view.api_tokens.revoke(name)
    await keep(view.broker)


def _check_may_give(caller: Caller, user: str, scopes: tuple[str, ...]) -> None:
    if caller.scopes is not None and not (caller.user == user and covers(caller.scopes, scopes)):
        raise not_in("the token is for less than that")


def tell_token(view: AdminView, token: ApiToken) -> Item:
    """Return a token as the API tells it."""
    return {
        "name": token.name,
        "user": token.user,
        "scopes": list(token.scopes),
        "made_at_ms": token.made_at_ms,
        "ends_at_ms": token.ends_at_ms or None,
        "used_at_ms": view.api_tokens.used_at_ms.get(token.name),
    }


def _kind(view: AdminView) -> Kind[ApiToken]:
    return Kind(name=lambda token: token.name, describe=lambda token: tell_token(view, token))
