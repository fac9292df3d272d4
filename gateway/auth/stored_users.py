"""Users and permissions in the data folder, changed while the gateway runs.

What is not said of a user, virtual host or exchange is not there; each change is written to a durable table at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from gateway.auth.rule_book import Account
from gateway.auth.user_rows import KeyRow, NameRow, UserRows
from gateway.auth.users import User, parse_hash

USER, NAMES, KEYS = "u", "p", "t"  # kinds of rows
NAME_BYTES_MAX = 255  # a longer one would not fit into AMQP's property user-id


class Table(Protocol):
    """A durable table."""

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of a key."""

    def delete(self, key: bytes) -> None:
        """Remove a key, where it is there."""

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield all."""


class StoredUsers:
    """The users of the data folder, and the permissions of all users.

    Args:
        table: Where they are kept.
    """

    def __init__(self, table: Table | None = None) -> None:
        self.users: dict[str, User] = {}
        self.names: dict[str, dict[str, NameRow]] = {}  # by user and virtual host
        self.keys: dict[str, dict[tuple[str, str], KeyRow]] = {}  # by user, virtual host and exchange
        self.rows: dict[str, UserRows] = {}  # of users that are here, or were given permissions
        self.on_changed: Callable[[], None] = _nothing
        self.on_deleted: Callable[[str], None] = _nobody  # the user of that name
        self._table = table
        for key, value in () if table is None else list(table.items()):
            kind, user, *parts = json.loads(key)
            said = json.loads(value)
            if kind == USER:
                self.users[user] = _make_user(user, said)
            elif kind == NAMES:
                self.names.setdefault(user, {})[parts[0]] = NameRow(**said)
            else:
                self.keys.setdefault(user, {})[parts[0], parts[1]] = KeyRow(**said)
        for user in {*self.users, *self.names, *self.keys}:
            self._gather(user)

    def put_user(self, name: str, kept: str, tags: tuple[str, ...], secret: str = "") -> None:
        """Make or change a user; `kept` is a password hash, empty: no password is right. A disabled one stays so.

        Raises:
            PasswordHashError: The hash is none.
        """
        if kept:
            parse_hash(kept)
        known = self.users.get(name)
        self._keep_user(name, kept, tags, secret, is_disabled=known is not None and known.is_disabled)

    def disable_user(self, name: str, *, is_disabled: bool) -> None:
        """Let nobody in as a user that is there, or let the user in again; all else of it stays."""
        known = self.users[name]
        self._keep_user(name, known.kept, known.tags, known.secret.decode(), is_disabled=is_disabled)

    def _keep_user(self, name: str, kept: str, tags: tuple[str, ...], secret: str, *, is_disabled: bool) -> None:
        said = {"hash": kept, "tags": list(tags), "secret": secret, **({"disabled": True} if is_disabled else {})}
        self.users[name] = _make_user(name, said)
        self._put([USER, name], said)
        self._tell(name)

    def delete_user(self, name: str) -> bool:
        """Remove a user with the permissions; False where there is none."""
        if self.users.pop(name, None) is None:
            return False
        self._delete([USER, name])
        for vhost in list(self.names.get(name, ())):
            self._drop_names(name, vhost)
        for key in list(self.keys.get(name, ())):
            self._drop_keys(name, key)
        self._tell(name)
        self.on_deleted(name)
        return True

    def set_names(self, vhost: str, user: str, row: NameRow) -> None:
        """Set what a user may do in a virtual host."""
        self.names.setdefault(user, {})[vhost] = row
        self._put([NAMES, user, vhost], row._asdict())
        self._tell(user)

    def clear_names(self, vhost: str, user: str) -> bool:
        """Take that back; False where there is none."""
        if vhost not in self.names.get(user, ()):
            return False
        self._drop_names(user, vhost)
        self._tell(user)
        return True

    def set_keys(self, vhost: str, user: str, exchange: str, row: KeyRow) -> None:
        """Set which routing keys of an exchange a user may use."""
        self.keys.setdefault(user, {})[vhost, exchange] = row
        self._put([KEYS, user, vhost, exchange], row._asdict())
        self._tell(user)

    def clear_keys(self, vhost: str, user: str, exchange: str | None = None) -> bool:
        """Take that back, of all exchanges where none is named; False where there is none."""
        found = [key for key in self.keys.get(user, ()) if key[0] == vhost and exchange in {None, key[1]}]
        for key in found:
            self._drop_keys(user, key)
        if found:
            self._tell(user)
        return bool(found)

    def drop_vhost(self, vhost: str) -> None:
        """Take all permissions in a virtual host back: it is deleted."""
        for user in {*self.names, *self.keys}:
            self.clear_names(vhost, user)
            self.clear_keys(vhost, user)

    def _drop_names(self, user: str, vhost: str) -> None:
        del self.names[user][vhost]
        self._delete([NAMES, user, vhost])

    def _drop_keys(self, user: str, key: tuple[str, str]) -> None:
        del self.keys[user][key]
        self._delete([KEYS, user, *key])

    def _gather(self, user: str) -> None:
        names, keys = self.names.get(user, {}), self.keys.get(user, {})
        if user in self.users or names or keys:
            self.rows = {**self.rows, user: UserRows(user, names, keys)}
        else:
            self.rows = {name: rows for name, rows in self.rows.items() if name != user}

    def _put(self, key: list[str], value: dict[str, Any]) -> None:
        if self._table is not None:
            self._table.put(json.dumps(key).encode(), json.dumps(value).encode())

    def _delete(self, key: list[str]) -> None:
        if self._table is not None:
            self._table.delete(json.dumps(key).encode())

    def _tell(self, user: str) -> None:
        self._gather(user)
        self.on_changed()


def _make_user(name: str, said: dict[str, Any]) -> User:
    user = User(name, Account(), said["hash"], said["secret"].encode(), tuple(said["tags"]))
    user.is_disabled = bool(said.get("disabled"))
    return user


def _nothing() -> None:
    pass


def _nobody(name: str) -> None:
    del name
