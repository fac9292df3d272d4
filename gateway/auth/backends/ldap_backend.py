"""A directory of users: a bind as an entry proves the user, groups are in an attribute or in entries of their own.

The library is that of the extra `ldap`: import this module where a directory is asked only.

Source: RFC 4511, 4513 (section 5.1.2: a bind without a password proves nothing), 4514, 4515.
"""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import ldap3
from ldap3.core.exceptions import LDAPException
from ldap3.utils.conv import escape_filter_chars
from ldap3.utils.dn import escape_rdn, parse_dn

from gateway.auth.backends.ask_threads import AskThreads
from gateway.auth.backends.http_client import make_tls
from gateway.auth.backends.question import (
    GROUPS_MAX,
    NO,
    NOT_MINE,
    BackendError,
    Question,
    Reply,
    Verdict,
    check_groups,
)
from gateway.settings.backends import LdapBackendSettings, fill
from gateway.settings.models import SettingsError

ANSWERS_BYTES_MAX = 1 << 20  # of one connection: a user in GROUPS_MAX groups with long names has far less
SUCCESS, NOT_PROVEN = 0, (48, 49)  # codes of results
_NAMED = re.compile(r"(?:^|[(,+])([A-Za-z][A-Za-z0-9-]*)=\$\{username\}(?=[),+]|$)")  # attributes that are a name


class LdapBackend:
    """One directory.

    Args:
        settings: Where it is, and what its entries are like.
        environment: Holds what is in no file.

    Raises:
        SettingsError: Something that the settings name is missing, or cannot be used.
    """

    def __init__(self, settings: LdapBackendSettings, environment: Mapping[str, str]) -> None:
        self.settings = settings
        self._bind_password = settings.bind_password
        if settings.bind_password_env:
            self._bind_password = environment.get(settings.bind_password_env, "")
            if not self._bind_password:
                raise SettingsError(f"bind_password_env: {settings.bind_password_env} is not set")
        url = urlsplit(settings.url)
        self._is_safe = url.scheme == "ldaps"
        self._host = url.hostname or ""
        self._port = url.port or (636 if self._is_safe else 389)
        self._tls = _Tls(make_tls(settings.ca), self._host) if self._is_safe or settings.starttls else None
        self._seconds = max(1, -(-settings.timeout_ms // 1000))
        self._names = _NAMED.findall(settings.user_dn or settings.filter)
        self._attributes = [*self._names, *filter(None, (settings.groups_attribute,))]
        self._threads = AskThreads(settings.requests_max, "lmq-ldap", _nothing)

    def key(self, question: Question) -> tuple[str, ...]:
        """Return the name and the password."""
        return question.user, question.password

    async def ask(self, question: Question) -> Reply:
        """Return what the directory says of a login.

        Raises:
            BackendError: It says nothing that can be used.
        """
        if not question.password or "\0" in question.password:
            return NO
        return await self._threads.run(partial(self._ask, question))

    def _ask(self, question: Question) -> Reply:
        try:
            return self._bind_as_user(question) if self.settings.user_dn else self._search_and_bind(question)
        except LDAPException as error:
            raise BackendError(f"{type(error).__name__}: {error}") from error

    def _bind_as_user(self, question: Question) -> Reply:
        dn = fill(self.settings.user_dn, {"username": escape_rdn(question.user)})
        with _closing(self._connect(dn, question.password)) as own:
            if not _is_proven(own):
                return NO
            entry: Mapping[str, Any] = {}
            if self._attributes:
                found = _one(self._search(own, dn, "(objectClass=*)", self._attributes, scope=ldap3.BASE))
                if found is None:
                    raise BackendError("a user may not read its own entry, which says how it is spelled")
                entry = found
            if not self._is_spelled_so(question.user, entry):
                return NO
            return Reply(Verdict.YES, self._find_groups(own, dn, question.user, entry))

    def _search_and_bind(self, question: Question) -> Reply:
        said = self.settings
        with _closing(self._connect(said.bind_dn, self._bind_password)) as service:
            if not _is_proven(service):
                raise BackendError("it takes no bind as bind_dn")
            name = {"username": escape_filter_chars(question.user)}
            entry = _one(self._search(service, said.base, fill(said.filter, name), self._attributes))
            if entry is None or not self._is_spelled_so(question.user, entry):
                return NOT_MINE
            with _closing(self._connect(entry["dn"], question.password)) as own:
                if not _is_proven(own):
                    return NO
            return Reply(Verdict.YES, self._find_groups(service, entry["dn"], question.user, entry))

    def _is_spelled_so(self, user: str, entry: Mapping[str, Any]) -> bool:
        """Return whether a user is called exactly so: to directories ANN is ann, and to rules another user."""
        return not self._names or any(user in _values(entry, name) for name in self._names)

    def _connect(self, dn: str, password: str) -> ldap3.Connection:
        """Return a connection that is bound as a DN; an empty one is anonymous."""
        connection = ldap3.Connection(
            self._make_server(),
            user=dn or None,
            password=password if dn else None,
            authentication=ldap3.SIMPLE if dn else ldap3.ANONYMOUS,
            receive_timeout=self._seconds,
            auto_referrals=False,
            read_only=True,
            check_names=False,
        )
        try:
            self._bind(connection)
        except BaseException:
            _end(connection)
            raise
        return connection

    def _make_server(self) -> ldap3.Server:
        """Return the server, of which nothing is remembered: one that was away is tried again."""
        return ldap3.Server(
            self._host,
            self._port,
            use_ssl=self._is_safe,
            tls=self._tls,
            get_info=ldap3.NONE,
            connect_timeout=self._seconds,
        )

    def _bind(self, connection: ldap3.Connection) -> None:
        connection.open(read_server_info=False)
        connection.socket = _BoundedSocket(connection.socket, time.monotonic() + self.settings.timeout_ms / 1000)
        if self.settings.starttls and not connection.start_tls(read_server_info=False):
            raise BackendError("it does not take StartTLS")
        connection.bind()

    def _search(
        self, connection: ldap3.Connection, base: str, text: str, attributes: Sequence[str], *, scope: str = "SUBTREE"
    ) -> list[Mapping[str, Any]]:
        connection.search(
            base, text, search_scope=scope, attributes=list(attributes) or ["1.1"], size_limit=GROUPS_MAX + 1
        )
        if connection.result["result"] != SUCCESS:
            raise BackendError(f"its search ends with {connection.result['description']}")
        return [entry for entry in connection.response or () if entry.get("type") == "searchResEntry"]

    def _find_groups(
        self, connection: ldap3.Connection, dn: str, user: str, entry: Mapping[str, Any]
    ) -> tuple[str, ...]:
        said = self.settings
        names = [find_name(value) for value in _values(entry, said.groups_attribute)]
        if said.groups_base:
            values = {"dn": escape_filter_chars(dn), "username": escape_filter_chars(user)}
            found = self._search(connection, said.groups_base, fill(said.groups_filter, values), [said.groups_name])
            names += [name for group in found for name in _values(group, said.groups_name)]
        return check_groups(tuple(dict.fromkeys(names)))

    def close(self) -> None:
        """Let the threads end when they have done what was asked."""
        self._threads.close()


class _closing:  # noqa: N801  # as contextlib's
    """Unbinds a connection at the end."""

    def __init__(self, connection: ldap3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> ldap3.Connection:
        return self._connection

    def __exit__(self, *exc_info: object) -> None:
        _end(self._connection)


class _BoundedSocket:
    """A socket that is read until a moment and up to so many bytes: the library bounds single reads alone."""

    def __init__(self, plain: socket.socket, until_s: float) -> None:
        self.plain = plain
        self._until_s = until_s
        self._bytes_left = ANSWERS_BYTES_MAX

    def recv(self, size: int) -> bytes:
        """Return what came.

        Raises:
            OSError: It takes too long, or is too much.
        """
        left_s = self._until_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("its answers take too long")
        self.plain.settimeout(left_s)
        data = self.plain.recv(size)
        self._bytes_left -= len(data)
        if self._bytes_left < 0:
            raise OSError("its answers are too long")
        return data

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # all else is the socket's
        return getattr(self.plain, name)


class _Tls(ldap3.Tls):  # type: ignore[misc]  # the library has no types
    """TLS by a context of the standard library, which checks the name, too."""

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        super().__init__(validate=ssl.CERT_REQUIRED)
        self._context = context
        self._host = host

    def wrap_socket(self, connection: ldap3.Connection, do_handshake: bool = False) -> None:  # noqa: FBT001, FBT002  # as above
        """Begin TLS on a connection's socket."""
        bounded = connection.socket if isinstance(connection.socket, _BoundedSocket) else None  # at StartTLS
        plain = connection.socket if bounded is None else bounded.plain
        safe = self._context.wrap_socket(plain, do_handshake_on_connect=do_handshake, server_hostname=self._host)
        if bounded is None:
            connection.socket = safe
        else:
            bounded.plain = safe


def _end(connection: ldap3.Connection) -> None:
    """Close a connection, also one that was never whole."""
    with contextlib.suppress(Exception):  # what is wrong with it was told before
        connection.unbind()
    if connection.socket is not None:
        connection.socket.close()


def _is_proven(connection: ldap3.Connection) -> bool:
    """Return whether a bind was taken.

    Raises:
        BackendError: The directory says neither that the password is right nor that it is wrong.
    """
    code = connection.result["result"]
    if code in NOT_PROVEN:
        return False
    if code != SUCCESS:
        raise BackendError(f"its bind ends with {connection.result['description']}")
    return True


def _one(entries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    if len(entries) > 1:
        raise BackendError("its search finds several entries for one name")
    return entries[0] if entries else None


def _values(entry: Mapping[str, Any], attribute: str) -> Iterator[str]:
    """Yield the texts of an attribute."""
    said = {name.lower(): values for name, values in entry.get("attributes", {}).items()}.get(attribute.lower(), ())
    for value in said if isinstance(said, list | tuple) else [said]:
        yield value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def find_name(value: str) -> str:
    """Return what a group is called: of a distinguished name the value in front, of everything else all of it."""
    try:
        (_, name, _), *_ = parse_dn(value, strip=True) if "=" in value else [("", value, "")]
    except (LDAPException, ValueError):
        return value
    return str(name)


def _nothing() -> None:
    pass
