"""Permissions of users in virtual hosts, and on routing keys of exchanges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from fastapi import Response
from pydantic import BaseModel, Field

from gateway.admin.login import Administrator
from gateway.admin.management.failures import CHANGED, bad_request, not_found
from gateway.admin.management.keeping import keep
from gateway.admin.management.listing import Asked, Item, Kind, answer_list
from gateway.admin.management.places import get_vhost
from gateway.admin.management.users import get_user
from gateway.admin.paths import PathName
from gateway.admin.routes import Routes
from gateway.admin.view import AdminView, View
from gateway.auth.credentials import GUEST
from gateway.auth.stored_users import NAME_BYTES_MAX
from gateway.auth.user_rows import PLACES, KeyRow, NameRow
from gateway.regex import compile_regex
from gateway.settings.rules import PATTERN_CHARS_MAX

PERMISSIONS = Routes()
Expression = Annotated[str, Field(max_length=PATTERN_CHARS_MAX)]


class NamesBody(BaseModel):
    """Expressions for names: what may be made and removed, written to, read."""

    configure: Expression
    write: Expression
    read: Expression


class KeysBody(BaseModel):
    """Expressions for routing keys of an exchange."""

    exchange: Annotated[str, Field(max_length=255)]
    write: Expression
    read: Expression


@PERMISSIONS.get("/permissions")
async def list_permissions(view: View, administrator: Administrator, asked: Asked) -> Response:
    """All permissions."""
    del administrator
    return await answer_list(asked, KIND, _names(view))


@PERMISSIONS.get("/vhosts/{vhost}/permissions")
async def list_permissions_in(view: View, administrator: Administrator, vhost: PathName, asked: Asked) -> Response:
    """The permissions in a virtual host."""
    del administrator
    name = get_vhost(view, vhost).name
    return await answer_list(asked, KIND, _names(view, vhost=name))


@PERMISSIONS.get("/users/{user}/permissions")
async def list_permissions_of(view: View, administrator: Administrator, user: PathName, asked: Asked) -> Response:
    """The permissions of a user."""
    del administrator
    _check_user(view, user)
    return await answer_list(asked, KIND, _names(view, user))


@PERMISSIONS.get("/permissions/{vhost}/{user}")
async def show_permissions(view: View, administrator: Administrator, vhost: PathName, user: PathName) -> Item:
    """The permissions of a user in a virtual host."""
    del administrator
    row = view.authenticator.stored.names.get(user, {}).get(vhost)
    if row is None:
        raise not_found(_has_none(user, vhost))
    return {"user": user, "vhost": vhost, **row._asdict()}


@PERMISSIONS.put("/permissions/{vhost}/{user}", status_code=201, response_class=Response, responses=CHANGED)
async def set_permissions(
    view: View, administrator: Administrator, vhost: PathName, user: PathName, said: NamesBody
) -> Response:
    """Set what a user may do in a virtual host: 201 and 204."""
    del administrator
    name = get_vhost(view, vhost).name
    _check_user(view, user)
    _check_expressions(said.model_dump())
    stored = view.authenticator.stored
    is_there = name in stored.names.get(user, ())
    stored.set_names(name, user, NameRow(said.configure, said.write, said.read))
    await keep(view.broker)
    return Response(status_code=204 if is_there else 201)


@PERMISSIONS.delete("/permissions/{vhost}/{user}", status_code=204)
async def clear_permissions(view: View, administrator: Administrator, vhost: PathName, user: PathName) -> None:
    """Take a user's permissions in a virtual host back."""
    del administrator
    if not view.authenticator.stored.clear_names(vhost, user):
        raise not_found(_has_none(user, vhost))
    await keep(view.broker)


@PERMISSIONS.get("/topic-permissions")
async def list_topic_permissions(view: View, administrator: Administrator, asked: Asked) -> Response:
    """All permissions on routing keys."""
    del administrator
    return await answer_list(asked, KIND, _keys(view))


@PERMISSIONS.get("/vhosts/{vhost}/topic-permissions")
async def list_topic_permissions_in(
    view: View, administrator: Administrator, vhost: PathName, asked: Asked
) -> Response:
    """The permissions on routing keys in a virtual host."""
    del administrator
    name = get_vhost(view, vhost).name
    return await answer_list(asked, KIND, _keys(view, vhost=name))


@PERMISSIONS.get("/users/{user}/topic-permissions")
async def list_topic_permissions_of(view: View, administrator: Administrator, user: PathName, asked: Asked) -> Response:
    """The permissions of a user on routing keys."""
    del administrator
    _check_user(view, user)
    return await answer_list(asked, KIND, _keys(view, user))


@PERMISSIONS.get("/topic-permissions/{vhost}/{user}")
async def show_topic_permissions(
    view: View, administrator: Administrator, vhost: PathName, user: PathName
) -> list[Item]:
    """The permissions of a user on routing keys in a virtual host."""
    del administrator
    found = list(filter(None, _keys(view, user, vhost)))
    if not found:
        raise not_found(_has_none(user, vhost))
    return found


@PERMISSIONS.put("/topic-permissions/{vhost}/{user}", status_code=201, response_class=Response, responses=CHANGED)
async def set_topic_permissions(
    view: View, administrator: Administrator, vhost: PathName, user: PathName, said: KeysBody
) -> Response:
    """Set which routing keys of an exchange a user may use: 201 and 204."""
    del administrator
    name = get_vhost(view, vhost).name
    _check_user(view, user)
    _check_expressions({"write": said.write, "read": said.read})
    stored = view.authenticator.stored
    is_there = (name, said.exchange) in stored.keys.get(user, ())
    stored.set_keys(name, user, said.exchange, KeyRow(said.write, said.read))
    await keep(view.broker)
    return Response(status_code=204 if is_there else 201)


@PERMISSIONS.delete("/topic-permissions/{vhost}/{user}", status_code=204)
async def clear_topic_permissions(view: View, administrator: Administrator, vhost: PathName, user: PathName) -> None:
    """Take a user's permissions on routing keys in a virtual host back."""
    await _clear_keys(view, administrator, vhost, user, None)


@PERMISSIONS.delete("/topic-permissions/{vhost}/{user}/{exchange}", status_code=204)
async def clear_topic_permissions_on(
    view: View, administrator: Administrator, vhost: PathName, user: PathName, exchange: PathName
) -> None:
    """Take a user's permissions on the routing keys of one exchange back."""
    await _clear_keys(view, administrator, vhost, user, exchange)


async def _clear_keys(
    view: AdminView, administrator: Administrator, vhost: str, user: str, exchange: str | None
) -> None:
    del administrator
    if not view.authenticator.stored.clear_keys(vhost, user, exchange):
        raise not_found(_has_none(user, vhost))
    await keep(view.broker)


def _names(view: AdminView, user: str | None = None, vhost: str | None = None) -> Iterator[Item | None]:
    """Give the permissions of a user and in a virtual host, None for any; None for each that is left out."""
    names = view.authenticator.stored.names
    for name in list(names) if user is None else [user]:
        rows = names.get(name, {})
        for place in list(rows):  # no pairs: to the collector of cycles ten thousand of them are new
            row = rows.get(place) if vhost in {None, place} else None
            yield None if row is None else {"user": name, "vhost": place, **row._asdict()}


def _keys(view: AdminView, user: str | None = None, vhost: str | None = None) -> Iterator[Item | None]:
    """Give the same of permissions on routing keys."""
    keys = view.authenticator.stored.keys
    for name in list(keys) if user is None else [user]:
        rows = keys.get(name, {})
        for place, exchange in list(rows):
            row = rows.get((place, exchange)) if vhost in {None, place} else None
            yield None if row is None else {"user": name, "vhost": place, "exchange": exchange, **row._asdict()}


def _has_none(user: str, vhost: str) -> str:
    return f"user '{user}' has no such permissions in vhost '{vhost}'"


def _check_user(view: AdminView, user: str) -> None:
    if user != GUEST or len(user.encode()) > NAME_BYTES_MAX:
        get_user(view, user)


def _check_expressions(said: dict[str, str]) -> None:
    for name, expression in said.items():
        filled = expression
        for place in PLACES:
            filled = filled.replace(place, "x")
        try:
            compile_regex(filled)
        except ValueError as error:
            raise bad_request(f"{name}: {error}") from error


KIND: Kind[Item] = Kind(name=lambda row: f"{row['vhost']} {row['user']}", describe=lambda row: row)
