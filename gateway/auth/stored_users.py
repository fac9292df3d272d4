"""Users and permissions in the data folder, changed while the gateway runs.

What is not said of a user, virtual host or exchange is not there; each change is written to a durable table at once.
"""

from __future__ import annotations

import json
from collections import deque
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
        self.on_user_changed: Callable[[str], None] = _nobody  # each of them, and then ...
        self.on_changed: Callable[[], None] = _nothing
        self.on_deleted: Callable[[str], None] = _nobody  # the user of that name
        self.on_written_off: Callable[[str], None] = _nobody  # that nothing is left of, written in one commit with that
        self._leaving: dict[str, Iterator[None]] = {}  # what is left to be done of deletions, by user
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

    def put_user(self, name: str, kept: str, tags: tuple[str, ...], secret: str = "", *, is_told: bool = True) -> None:
        """Make or change a user; `kept` is a password hash, empty: no password is right. A disabled one stays so.

        It counts at once, or, as with all changes that are not told, after `tell`.

        Raises:
            PasswordHashError: The hash is none.
        """
        if kept:
            parse_hash(kept)
        known = self.users.get(name)
        is_disabled = known is not None and known.is_disabled
        self._keep_user(name, kept, tags, secret, is_disabled=is_disabled, is_told=is_told)

    def disable_user(self, name: str, *, is_disabled: bool, is_told: bool = True) -> None:
        """Let nobody in as a user that is there, or let the user in again; all else of it stays."""
        known = self.users[name]
        secret = known.secret.decode()
        self._keep_user(name, known.kept, known.tags, secret, is_disabled=is_disabled, is_told=is_told)

    def _keep_user(
        self, name: str, kept: str, tags: tuple[str, ...], secret: str, *, is_disabled: bool, is_told: bool
    ) -> None:
        self._finish_deletion(name)
        said = {"hash": kept, "tags": list(tags), "secret": secret, **({"disabled": True} if is_disabled else {})}
        user = _make_user(name, said)
        self._put([USER, name], said)
        self.users[name] = user
        self._maybe_tell(name, is_told=is_told)

    def delete_user(self, name: str) -> Iterator[None] | None:
        """Remove a user with the permissions, from now on; None where there is none.

        Returns:
            Steps in which that is written down: a process that is killed before the last has the user again.
        """
        if self.users.pop(name, None) is None:
            return None
        names, keys = self.names.pop(name, {}), self.keys.pop(name, {})
        self._leaving[name] = steps = self._write_deletion(name, names, keys)
        self._maybe_tell(name, is_told=True)
        self.on_deleted(name)
        return steps

    def _write_deletion(
        self, name: str, names: dict[str, NameRow], keys: dict[tuple[str, str], KeyRow]
    ) -> Iterator[None]:
        """Delete the rows of a user that is no more; first those without which nothing is allowed."""
        while names:
            vhost, _ = names.popitem()
            self._delete([NAMES, name, vhost])
            yield
        while keys:
            key, _ = keys.popitem()
            self._delete([KEYS, name, *key])
            yield
        self._delete([USER, name])
        self.on_written_off(name)
        self._leaving.pop(name, None)

    def _finish_deletion(self, name: str) -> None:
        """Have nothing left of the last user of a name, before another one has it."""
        deque(self._leaving.pop(name, ()), maxlen=0)

    def set_names(self, vhost: str, user: str, row: NameRow, *, is_told: bool = True) -> None:
        """Set what a user may do in a virtual host."""
        self._finish_deletion(user)
        self._put([NAMES, user, vhost], row._asdict())
        self.names.setdefault(user, {})[vhost] = row
        self._maybe_tell(user, is_told=is_told)

    def clear_names(self, vhost: str, user: str) -> bool:
        """Take that back; False where there is none."""
        if vhost not in self.names.get(user, ()):
            return False
        self._drop_names(user, vhost)
        self._maybe_tell(user, is_told=True)
        return True

    def set_keys(self, vhost: str, user: str, exchange: str, row: KeyRow, *, is_told: bool = True) -> None:
        """Set which routing keys of an exchange a user may use."""
        self._finish_deletion(user)
        self._put([KEYS, user, vhost, exchange], row._asdict())
        self.keys.setdefault(user, {})[vhost, exchange] = row
        self._maybe_tell(user, is_told=is_told)

    def clear_keys(self, vhost: str, user: str, exchange: str | None = None) -> bool:
        """Take that back, of all exchanges where none is named; False where there is none."""
        found = [key for key in self.keys.get(user, ()) if key[0] == vhost and exchange in {None, key[1]}]
        for key in found:
            self._drop_keys(user, key)
        if found:
            self._maybe_tell(user, is_told=True)
        return bool(found)

    def drop_vhost(self, vhost: str) -> Iterator[None]:
        """Take all permissions in a virtual host back, in steps: it is deleted. Those given from now on stay."""
        names = [(user, rows[vhost]) for user, rows in self.names.items() if vhost in rows]
        keys = [(user, key, row) for user, rows in self.keys.items() for key, row in rows.items() if key[0] == vhost]
        changed: dict[str, None] = {}
        for user, names_row in names:
            if self.names.get(user, {}).get(vhost) is names_row:
                self._drop_names(user, vhost)
                changed[user] = None
            yield
        for user, key, keys_row in keys:
            if self.keys.get(user, {}).get(key) is keys_row:
                self._drop_keys(user, key)
                changed[user] = None
            yield
        yield from self.tell(changed)

    def tell(self, users: dict[str, None]) -> Iterator[None]:
        """Have changes of users count, all with the last step; each user is taken out of `users` when it is told."""
        is_any = bool(users)
        while users:
            user, _ = users.popitem()
            self._gather(user)
            self.on_user_changed(user)
            yield
        if is_any:
            self.on_changed()

    def _drop_names(self, user: str, vhost: str) -> None:
        del self.names[user][vhost]
        self._delete([NAMES, user, vhost])

    def _drop_keys(self, user: str, key: tuple[str, str]) -> None:
        del self.keys[user][key]
        self._delete([KEYS, user, *key])

    def _gather(self, user: str) -> None:
        names, keys = self.names.get(user, {}), self.keys.get(user, {})
        if user in self.users or names or keys:
            self.rows[user] = UserRows(user, names, keys)
        else:
            self.rows.pop(user, None)

    def _put(self, key: list[str], value: dict[str, Any]) -> None:
        if self._table is not None:
            self._table.put(json.dumps(key).encode(), json.dumps(value).encode())

    def _delete(self, key: list[str]) -> None:
        if self._table is not None:
            self._table.delete(json.dumps(key).encode())

    def _maybe_tell(self, user: str, *, is_told: bool) -> None:
        if is_told:
            deque(self.tell({user: None}), maxlen=0)


def _make_user(name: str, said: dict[str, Any]) -> User:
    user = User(name, Account(), said["hash"], said["secret"].encode(), tuple(said["tags"]))
    user.is_disabled = bool(said.get("disabled"))
    return user


def _nothing() -> None:
    pass


def _nobody(name: str) -> None:
    del name
