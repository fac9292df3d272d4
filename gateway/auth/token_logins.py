"""Logins by tokens: each is checked beside the loop once, and remembered until it ends."""

from __future__ import annotations

import hashlib
import hmac
import importlib
import logging
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from gateway.auth.password_checks import Attempt, PasswordChecks
from gateway.auth.tokens import NEVER_MS, TOKEN_BYTES_MAX, Token, TokenError, is_token, read_claims
from gateway.jwt_settings import JwtSettings
from gateway.logs import said
from gateway.runtime import Clock, Timed
from gateway.settings import SettingsError

LOGGER = logging.getLogger(__name__)

MEMORY_BYTES_MAX = 16 * 1024 * 1024  # of right tokens: some 20,000
ENTRY_BYTES = 400  # of one that is remembered, beside its texts

Found = Callable[[bool | None, Token | None], None]  # as the answer of an attempt, with the token where it is right


class Keys(Protocol):
    """What tokens are checked with."""

    marks: frozenset[bytes]
    user_claim: str

    def check(self, token: bytes, now_ms: int) -> Token:
        """Return what a token says; raise TokenError where it is not right."""


class Timer(Protocol):
    """Calls when something is due."""

    def watch_soon(self, timed: Timed) -> None:
        """See to a deadline that moved."""


def read_keys(settings: JwtSettings, environment: Mapping[str, str]) -> Keys | None:
    """Return the keys of the settings, as their files are now; None where no tokens are taken.

    Raises:
        SettingsError: There is no key in them that can be used, or what reads them is not installed.
    """
    if not settings.algorithms:
        return None
    secret = settings.secret
    if settings.secret_env:
        secret = environment.get(settings.secret_env, "")
        if not secret:
            raise SettingsError(f"auth.jwt.secret_env: {settings.secret_env} is not set")
    try:
        module = importlib.import_module("gateway.auth.token_keys")
    except ImportError as error:
        raise SettingsError(f"auth.jwt needs the extra jwt: pip install 'lmq-gateway[jwt]' ({error})") from error
    keys: Keys = module.TokenKeys(settings, secret.encode())
    return keys


class TokenMemory:
    """Right tokens by keyed digest, about `bytes_max` of them; the one that was asked for longest ago goes first."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._tokens: dict[bytes, tuple[Token, int]] = {}

    def add(self, digest: bytes, token: Token, size: int) -> None:
        """Remember a token whose texts have `size` bytes at most."""
        self.take(digest)
        self._tokens[digest] = token, size + ENTRY_BYTES
        self._bytes += size + ENTRY_BYTES
        while self._bytes > self._bytes_max:
            self.take(next(iter(self._tokens)))

    def take(self, digest: bytes) -> tuple[Token, int] | None:
        """Forget a token, and return it with its size; None where it was not there."""
        found = self._tokens.pop(digest, None)
        if found is not None:
            self._bytes -= found[1]
        return found

    def find(self, digest: bytes) -> Token | None:
        """Return a token; it stays for longer."""
        found = self._tokens.pop(digest, None)
        if found is None:
            return None
        self._tokens[digest] = found
        return found[0]


class TokenLogins:
    """Who comes in by a token, and when the first of those tokens ends that are in use.

    Args:
        checks: Where each has its turn.
        clock: The gateway's.
        keys: What they are checked with, None where no tokens are taken.
    """

    def __init__(self, checks: PasswordChecks, clock: Clock, keys: Keys | None) -> None:
        self.timer: Timer | None = None
        self.timer_slot = -1
        self.on_ended: Callable[[], None] = _nothing  # some tokens that are in use have ended
        self._checks = checks
        self._clock = clock
        self._keys = keys
        self._key = os.urandom(32)
        self._memory = TokenMemory(MEMORY_BYTES_MAX)
        self._ends_at_ms = NEVER_MS

    read = staticmethod(read_keys)

    @property
    def is_on(self) -> bool:
        """Whether tokens are taken."""
        return self._keys is not None

    def use(self, keys: Keys | None) -> None:
        """Go by other keys from now on."""
        self._keys = keys

    def takes(self, password: bytes | None) -> bool:
        """Return whether a password is to be checked as a token."""
        return self._keys is not None and password is not None and is_token(password)

    def is_right(self, token: Token) -> bool:
        """Return whether a token that was right is so now."""
        return self._keys is not None and token.mark in self._keys.marks and self._clock.now_ms() < token.ends_at_ms

    def begin(self, password: bytes, host: str, found: Found) -> Attempt | None:
        """Check a token of somebody at `host`, and tell `found` on the loop: before this returns, or later."""
        if len(password) > TOKEN_BYTES_MAX:
            found(False, None)  # noqa: FBT003  # as the answer of an attempt
            return None
        digest = self._digest(b"token", password)
        known = self._memory.find(digest)
        if known is not None and self.is_right(known):
            found(True, known)  # noqa: FBT003  # as above
            return None
        check = _Check(self._keys, password, self._clock.now_ms())
        finish = partial(self._finish, check, digest, host, found)
        return self._checks.add(host, self._digest(b"user", self._find_said(password))[:16], b"", check.run, finish)

    def _finish(self, check: _Check, digest: bytes, host: str, found: Found, is_right: bool | None) -> None:  # noqa: FBT001  # called so
        token = check.token
        if is_right is None:
            found(None, None)
        elif token is not None and self.is_right(token):
            self._memory.add(digest, token, len(check.password))
            found(True, token)  # noqa: FBT003  # as the answer of an attempt
        else:
            LOGGER.info("token refused host=%s reason=%s", host, said(check.why or "the keys were changed meanwhile"))
            found(False, None)  # noqa: FBT003  # as above

    def _find_said(self, password: bytes) -> bytes:
        """Return what a token says that its user is: the delay after wrong ones is for that name, as with passwords."""
        assert self._keys is not None
        try:
            user = read_claims(password).get(self._keys.user_claim)
        except TokenError:
            return b""
        return user.encode(errors="replace") if isinstance(user, str) else b""

    def _digest(self, *parts: bytes) -> bytes:
        return hmac.new(self._key, b"\x00".join(parts), hashlib.sha256).digest()

    # The end of tokens

    def note_use(self, token: Token) -> None:
        """Note that somebody is in by a token: tell when it ends."""
        if token.ends_at_ms < self._ends_at_ms:
            self._ends_at_ms = token.ends_at_ms
            if self.timer is not None:
                self.timer.watch_soon(self)

    def next_deadline_ms(self) -> int | None:
        """Return when the first token in use ends."""
        return None if self._ends_at_ms == NEVER_MS else self._ends_at_ms

    def on_deadline(self, now_ms: int) -> None:
        """Have everybody looked at; those that stay are noted anew."""
        del now_ms
        self._ends_at_ms = NEVER_MS
        self.on_ended()


class _Check:
    """The check of one token, which runs on a thread."""

    def __init__(self, keys: Keys | None, password: bytes, now_ms: int) -> None:
        self.password = password
        self.token: Token | None = None
        self.why = ""
        self._keys = keys
        self._now_ms = now_ms

    def run(self) -> bool:
        """Return whether it is right; what it says is in `token` then."""
        try:
            if self._keys is not None:
                self.token = self._keys.check(self.password, self._now_ms)
        except TokenError as error:
            self.why = str(error)
        return self.token is not None


def _nothing() -> None:
    pass
