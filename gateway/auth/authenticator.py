"""Credentials in, identity out."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
from collections.abc import Mapping

from gateway.auth.permissions import ALL, Permissions
from gateway.auth.users import PasswordHashError, User, parse_hash
from gateway.runtime import Clock
from gateway.settings import AuthSettings, SettingsError, UserSettings

GUEST = "guest"
REMEMBERED_MAX = 100_000  # right passwords that need no slow check again, about 100 bytes each
WINDOW_MS = 10_000
SLOW_CHECKS_MAX = 20  # wrong passwords from one address in a window; each costs the loop about 40 ms


class Identity:
    """Who is on a connection, and what they may do. An anonymous one has an empty name."""

    __slots__ = ("may", "user")

    def __init__(self, user: str, may: Permissions) -> None:
        self.user = user
        self.may = may


class Authenticator:
    """Users of the settings, anonymous clients, and AMQP's guest.

    A right password is checked slowly once and then remembered as a keyed digest; wrong ones are limited by address,
    so that neither a fleet that reconnects nor a guesser holds up the loop.

    Raises:
        SettingsError: As `make_users`.
    """

    def __init__(self, settings: AuthSettings, environment: Mapping[str, str], clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._users = make_users(settings, environment)
        self._key = os.urandom(32)
        self._remembered: set[bytes] = set()
        self._wrong_by_host: dict[str, int] = {}
        self._window_until_ms = 0

    def authenticate(self, protocol: str, user: str | None, password: bytes | None, peer: str) -> Identity | None:
        """Return who this is, or None when they may not come in.

        Args:
            protocol: `mqtt`, `amqp` or `rocketmq`.
            user: The user name, None if it gave none.
            password: The password, None if it gave none.
            peer: Where from: `HOST:PORT`.
        """
        if user is None:
            return self._anonymous(protocol)
        known = self._users.get(user)
        if known is not None:
            return Identity(user, known.may) if self._is_right(known, password or b"", peer) else None
        if protocol == "amqp" and self._settings.amqp_guest and user == GUEST and is_loopback(peer):
            return Identity(GUEST, ALL) if hmac.compare_digest(password or b"", b"guest") else None
        return None

    def _anonymous(self, protocol: str) -> Identity | None:
        settings = self._settings
        is_let_in = {"mqtt": settings.mqtt_anonymous, "rocketmq": settings.rocketmq_anonymous}.get(protocol, False)
        return Identity("", ALL) if is_let_in else None

    def _is_right(self, user: User, password: bytes, peer: str) -> bool:
        digest = hmac.new(self._key, user.name.encode() + b"\x00" + password, hashlib.sha256).digest()
        if digest in self._remembered:
            return True
        host = peer.rpartition(":")[0]
        now_ms = self._clock.now_ms()
        if now_ms >= self._window_until_ms:
            self._window_until_ms = now_ms + WINDOW_MS
            self._wrong_by_host.clear()
        wrong = self._wrong_by_host.get(host, 0)
        if wrong >= SLOW_CHECKS_MAX:
            return False
        if not user.check(password):
            self._wrong_by_host[host] = wrong + 1
            return False
        if len(self._remembered) >= REMEMBERED_MAX:
            self._remembered.clear()
        self._remembered.add(digest)
        return True

    def describe(self) -> list[str]:
        """Return one line for each way in that asks for no secret; logged at the start."""
        settings = self._settings
        ways = (
            (settings.mqtt_anonymous, "MQTT clients without a user name are let in setting=auth.mqtt_anonymous"),
            (settings.rocketmq_anonymous, "RocketMQ clients are let in unasked setting=auth.rocketmq_anonymous"),
            (settings.amqp_guest, "AMQP user guest is let in from this machine setting=auth.amqp_guest"),
        )
        return [text for is_open, text in ways if is_open]


def is_loopback(peer: str) -> bool:
    """Return whether `peer` (`HOST:PORT`) is on this machine."""
    host = peer.rpartition(":")[0].strip("[]").partition("%")[0]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def make_users(settings: AuthSettings, environment: Mapping[str, str]) -> dict[str, User]:
    """Return the users of the settings, by name.

    Raises:
        SettingsError: A user without a password, one whose environment variable is not set, or one whose hash is none.
    """
    return {name: _make_user(name, user, environment) for name, user in settings.users.items()}


def _make_user(name: str, settings: UserSettings, environment: Mapping[str, str]) -> User:
    may = Permissions(publish=settings.may_publish, subscribe=settings.may_subscribe, configure=settings.may_configure)
    if settings.password_env:
        plain = environment.get(settings.password_env)
        if plain is None:
            raise SettingsError(f"auth.users.{name}.password_env: {settings.password_env} is not set")
        return User(name, may, plain=plain.encode())
    if not settings.password_hash:
        raise SettingsError(f"auth.users.{name} needs password_hash or password_env")
    try:
        parse_hash(settings.password_hash)
    except PasswordHashError as error:
        raise SettingsError(f"wrong setting auth.users.{name}.password_hash: {error}") from error
    return User(name, may, kept=settings.password_hash)
