"""Users: those of the data folder are changed here, those of the settings only told."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
from collections.abc import Iterable
from typing import Annotated

from fastapi import Request, Response
from pydantic import BaseModel, BeforeValidator, Field

from gateway.admin.changes_told import FIELDS
from gateway.admin.login import Administrator, Looker
from gateway.admin.management.failures import CHANGED, bad_request, not_found
from gateway.admin.management.keeping import keep
from gateway.admin.management.listing import Asked, Item, Kind, answer_list
from gateway.admin.paths import PathName
from gateway.admin.routes import Routes
from gateway.admin.steps import Steps, do_all
from gateway.admin.view import AdminView, View
from gateway.auth.credentials import OWN_PREFIX
from gateway.auth.settings_users import SECRET_LENGTH_MIN
from gateway.auth.stored_users import NAME_BYTES_MAX
from gateway.auth.users import PasswordHashError, User, hash_password, read_rabbitmq_hash, write_rabbitmq_hash

USERS = Routes()
PASSWORD_CHARS_MAX = 8_192  # as many bytes as a login takes: a longer one would let nobody in
TAGS_MAX = 100  # chosen: RabbitMQ knows six, and keeps others as well
SALT_BYTES = 4  # as RabbitMQ has it
RABBITMQ = "rabbit_password_hashing_sha256"
LMQ = "lmq_"  # in front of what RabbitMQ does not know


def _split(value: object) -> object:
    """Return a list where tags come with commas between them."""
    return [tag.strip() for tag in value.split(",") if tag.strip()] if isinstance(value, str) else value


Tags = Annotated[list[Annotated[str, Field(max_length=255)]], BeforeValidator(_split), Field(max_length=TAGS_MAX)]


class PasswordBody(BaseModel):
    """Another password."""

    password: Annotated[str, Field(min_length=1, max_length=PASSWORD_CHARS_MAX)]


class TagsBody(BaseModel):
    """Other tags."""

    tags: Tags


class UserBody(BaseModel):
    """What is said of a user: a password, or a hash of one; empty for one that does not come in by a password."""

    password: Annotated[str | None, Field(max_length=PASSWORD_CHARS_MAX)] = None
    password_hash: Annotated[str | None, Field(max_length=1_024)] = None
    hashing_algorithm: str = RABBITMQ
    tags: Tags
    secret: Annotated[str, Field(max_length=1_024)] = ""  # that RocketMQ's clients sign with


class NamesBody(BaseModel):
    """Users to be deleted."""

    users: list[str]


@USERS.get("/auth/hash_password/{password}")
async def make_hash(looker: Looker, password: PathName) -> Item:
    """The hash of a password as RabbitMQ's definitions have it."""
    del looker
    salt = os.urandom(SALT_BYTES)
    return {"ok": base64.b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode()}


@USERS.get("/users")
async def list_users(view: View, administrator: Administrator, asked: Asked) -> Response:
    """All users."""
    del administrator
    return await answer_list(asked, _kind(view), all_users(view))


@USERS.get("/users/without-permissions")
async def list_users_without(view: View, administrator: Administrator, asked: Asked) -> Response:
    """The users that have no permissions in any virtual host."""
    del administrator
    names = view.authenticator.stored.names
    return await answer_list(asked, _kind(view), [user for user in all_users(view) if not names.get(user.name)])


@USERS.post("/users/bulk-delete", status_code=204)
async def delete_users(view: View, administrator: Administrator, said: NamesBody, request: Request) -> None:
    """Delete users."""
    request.scope["state"][FIELDS] = {"names": said.users}
    del administrator
    for name in said.users:
        _check_ours(view, name)
    steps = Steps()
    for name in said.users:
        await do_all(view.authenticator.stored.delete_user(name) or ())
        await steps.rest()
    await keep(view.broker)


@USERS.get("/users/{name}")
async def show_user(view: View, administrator: Administrator, name: PathName) -> Item:
    """One user."""
    del administrator
    return tell_user(view, get_user(view, name))


@USERS.put("/users/{name}", status_code=201, response_class=Response, responses=CHANGED)
async def put_user(view: View, administrator: Administrator, name: PathName, said: UserBody) -> Response:
    """Make a user, or change all of one: 201 and 204."""
    del administrator
    _check_ours(view, name)
    if not 0 < len(name.encode()) <= NAME_BYTES_MAX or name.startswith(OWN_PREFIX):
        raise bad_request(f"the name of a user has 1 to {NAME_BYTES_MAX} bytes, and does not begin with {OWN_PREFIX}")
    if 0 < len(said.secret) < SECRET_LENGTH_MIN:
        raise bad_request(f"a secret has {SECRET_LENGTH_MIN} characters or more")
    kept = await _hash_of(said)
    stored = view.authenticator.stored
    is_there = name in stored.users
    try:
        stored.put_user(name, kept, tuple(said.tags), said.secret)
    except PasswordHashError as error:
        raise bad_request(f"password_hash: {error}") from error
    await keep(view.broker)
    return Response(status_code=204 if is_there else 201)


@USERS.delete("/users/{name}", status_code=204)
async def delete_user(view: View, administrator: Administrator, name: PathName) -> None:
    """Delete a user with the permissions; its connections are closed."""
    del administrator
    _check_ours(view, name)
    steps = view.authenticator.stored.delete_user(name)
    if steps is None:
        raise not_found(f"no user '{name}'")
    await do_all(steps)
    await keep(view.broker)


@USERS.put("/lmq/users/{name}/password", status_code=204)
async def set_password(view: View, administrator: Administrator, name: PathName, said: PasswordBody) -> None:
    """Give a user another password; all else of the user stays."""
    del administrator
    known = _get_ours(view, name)
    kept = await asyncio.to_thread(hash_password, said.password)
    view.authenticator.stored.put_user(name, kept, known.tags, known.secret.decode())
    await keep(view.broker)


@USERS.put("/lmq/users/{name}/tags", status_code=204)
async def set_tags(view: View, administrator: Administrator, name: PathName, said: TagsBody) -> None:
    """Give a user other tags; all else of the user stays."""
    del administrator
    known = _get_ours(view, name)
    view.authenticator.stored.put_user(name, known.kept, tuple(said.tags), known.secret.decode())
    await keep(view.broker)


@USERS.post("/lmq/users/{name}/disable", status_code=204)
async def disable_user(view: View, administrator: Administrator, name: PathName) -> None:
    """Let nobody in as a user, by whatever door; its connections are closed, its MQTT sessions stay."""
    del administrator
    await _set_disabled(view, name, is_disabled=True)


@USERS.post("/lmq/users/{name}/enable", status_code=204)
async def enable_user(view: View, administrator: Administrator, name: PathName) -> None:
    """Let a user in again that was disabled."""
    del administrator
    await _set_disabled(view, name, is_disabled=False)


async def _set_disabled(view: AdminView, name: str, *, is_disabled: bool) -> None:
    if _get_ours(view, name).is_disabled != is_disabled:
        view.authenticator.stored.disable_user(name, is_disabled=is_disabled)
    await keep(view.broker)


def _get_ours(view: AdminView, name: str) -> User:
    _check_ours(view, name)
    known = view.authenticator.stored.users.get(name)
    if known is None:
        raise not_found(f"no user '{name}'")
    return known


async def _hash_of(said: UserBody) -> str:
    if said.password is not None:
        if not said.password:
            raise bad_request("the password is empty")
        return await asyncio.to_thread(hash_password, said.password)
    if not said.password_hash:
        if said.password_hash is None:
            raise bad_request("give password or password_hash")
        return ""
    if said.hashing_algorithm.startswith(LMQ) or "$" in said.password_hash:
        return said.password_hash  # as lmq hash-password or mosquitto_passwd makes it
    try:
        return read_rabbitmq_hash(said.password_hash, said.hashing_algorithm)
    except PasswordHashError as error:
        raise bad_request(f"password_hash: {error}") from error


def _check_ours(view: AdminView, name: str) -> None:
    if view.authenticator.is_of_settings(name):
        raise bad_request(f"user '{name}' is one of the settings: change auth.users and have them read again")


def all_users(view: AdminView) -> Iterable[User]:
    """Return the users that there are, of the settings too."""
    return view.authenticator.users()


def get_user(view: AdminView, name: str) -> User:
    """Return a user.

    Raises:
        HTTPException: 404: There is none of that name.
    """
    authenticator = view.authenticator
    found = authenticator.known.of_settings.get(name) or authenticator.stored.users.get(name)
    if found is None:
        raise not_found(f"no user '{name}'")
    return found


def tell_user(view: AdminView, user: User) -> Item:
    """Return a user as the API tells it; the hash of one of the settings is not told."""
    is_ours = not view.authenticator.is_of_settings(user.name)
    text, algorithm = write_rabbitmq_hash(user.kept) if is_ours else ("", "")
    return {
        "name": user.name,
        "password_hash": text,
        "hashing_algorithm": algorithm,
        "tags": list(user.tags),
        "limits": view.authenticator.quotas.stored.get(user.name, {}),
        "lmq": {"of_settings": not is_ours, "has_secret": bool(user.secret), "is_disabled": user.is_disabled},
    }


def _kind(view: AdminView) -> Kind[User]:
    return Kind(name=lambda user: user.name, describe=lambda user: tell_user(view, user))
