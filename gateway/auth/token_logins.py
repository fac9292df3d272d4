"""Logins by tokens: each is checked beside the loop once, and remembered until it ends.

Tokens begin and end by the machine's clock, as their issuer sets it: the gateway's own may be ahead for hours after the
machine's was set back.
"""

from __future__ import annotations

import hashlib
import hmac
import importlib
import logging
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from gateway.auth.backends.http_client import make_tls
from gateway.auth.key_set import KeySet
from gateway.auth.password_checks import Attempt, PasswordChecks
from gateway.auth.tokens import NEVER_MS, TOKEN_BYTES_MAX, Token, TokenError, UnknownKeyError, is_token, read_claims
from gateway.logs import said
from gateway.runtime.loop import Clock, Timed
from gateway.settings.jwt import JwtSettings
from gateway.settings.models import SettingsError

LOGGER = logging.getLogger(__name__)

MEMORY_BYTES_MAX = 16 * 1024 * 1024  # of right tokens: some 20,000
ENTRY_BYTES = 400  # of one that is remembered, beside its texts
WHYS_MAX = 256  # refused tokens of which it is remembered why, until the refusal is logged

Found = Callable[[bool | None, Token | None], None]  # as the answer of an attempt, with the token where it is right


class Keys(Protocol):
    """What tokens are checked with."""

    marks: frozenset[bytes]
    user_claim: str

    def check(self, token: bytes, now_ms: int) -> Token:
        """Return what a token says; raise TokenError where it is not right."""

    def with_set(self, fetched: bytes) -> Keys:
        """Return the same keys with another set from the web; raise SettingsError where that is none."""


class Timer(Protocol):
    """Calls when something is due."""

    def watch_soon(self, timed: Timed) -> None:
        """See to a deadline that moved."""


def read_keys(settings: JwtSettings, environment: Mapping[str, str]) -> Keys | None:
    """Return the keys of the settings, as their files are now; None where no tokens are taken.

    Raises:
        SettingsError: The settings have no key that can be used, or the package that reads keys is not installed.
    """
    if not settings.algorithms:
        return None
    secret = settings.secret
    if settings.secret_env:
        secret = environment.get(settings.secret_env, "")
        if not secret:
            raise SettingsError(f"auth.jwt.secret_env: {settings.secret_env} is not set")
    if settings.jwks_url:
        make_tls(settings.jwks_ca)  # the file can be read
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
        self.hits = 0  # tokens that were known
        self.misses = 0
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
            self.misses += 1
            return None
        self.hits += 1
        self._tokens[digest] = found
        return found[0]


class TokenLogins:
    """Logins by a token, and when the first of the tokens in use ends.

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
        self.memory = TokenMemory(MEMORY_BYTES_MAX)
        self._whys: dict[bytes, str] = {}  # by keyed digest, the newest last
        self._fetched = b""  # the set from the web
        self._ends_at_ms = NEVER_MS
        self._set: KeySet | None = None

    def start(self, settings: JwtSettings) -> None:
        """Ask for the key set of these settings from now on, where they have one on the web; keep it where it is kept.

        Raises:
            SettingsError: The certificates that are to be trusted cannot be read.
        """
        self.stop()
        if self._keys is not None and settings.jwks_url:
            if self._set is not None and self._set.url == settings.jwks_url and self._fetched:
                self._keep_set()
            else:
                self._fetched = b""
            self._set = KeySet(settings, self._clock, self._take_set)
            self._set.start()

    def stop(self) -> None:
        """Ask for no key set any more."""
        if self._set is not None:
            self._set.stop()

    def _keep_set(self) -> None:
        try:
            self._take_set(self._fetched)
        except SettingsError:  # it has no key for the algorithms that are taken now
            self._fetched = b""

    def _take_set(self, fetched: bytes) -> None:
        """Go by another set; connections by keys that are gone are looked at."""
        assert self._keys is not None
        before, self._keys = self._keys.marks, self._keys.with_set(fetched)
        self._fetched = fetched
        if before - self._keys.marks:
            self.on_ended()

    @property
    def is_on(self) -> bool:
        """Whether tokens are taken."""
        return self._keys is not None

    @property
    def is_waiting(self) -> bool:
        """Whether the first key set from the web is still to come: no token of its keys is known to be wrong."""
        return self._set is not None and not self._fetched

    def use(self, keys: Keys | None) -> None:
        """Go by other keys from now on."""
        self._keys = keys

    def takes(self, password: bytes | None) -> bool:
        """Return whether a password is to be checked as a token."""
        return self._keys is not None and password is not None and is_token(password)

    def why_refused(self, password: bytes | None) -> str:
        """Return what the log says of a token that was refused just now; empty where it is none."""
        why = None if password is None else self._whys.get(self._digest(b"token", password))
        return "" if why is None else f"the token is refused: {why}"

    def is_right(self, token: Token) -> bool:
        """Return whether a token that was right is so now."""
        return self._keys is not None and token.mark in self._keys.marks and self._clock.machine_ms() < token.ends_at_ms

    def begin(self, password: bytes, host: str, found: Found) -> Attempt | None:
        """Check a token of a client at `host`, and tell `found` on the loop: before this returns, or later."""
        digest = self._digest(b"token", password)
        if len(password) > TOKEN_BYTES_MAX:
            self._note_refused(digest, host, f"it is longer than {TOKEN_BYTES_MAX} bytes")
            found(False, None)  # noqa: FBT003  # as the answer of an attempt
            return None
        known = self.memory.find(digest)
        if known is not None and self.is_right(known):
            found(True, known)  # noqa: FBT003  # as above
            return None
        is_last = self._set is None or (bool(self._fetched) and not self._set.may_ask())
        return self._check(password, digest, host, found, is_last=is_last)

    def _check(self, password: bytes, digest: bytes, host: str, found: Found, *, is_last: bool) -> Attempt:
        check = _Check(self._keys, password, self._clock.machine_ms(), is_last=is_last)
        finish = partial(self._finish, check, digest, host, found)
        name = self._digest(b"user", self._find_said(password))[:16]
        check.attempt = self._checks.add(host, name, b"", check.run, finish)
        return check.attempt

    def _finish(self, check: _Check, digest: bytes, host: str, found: Found, is_right: bool | None) -> None:  # noqa: FBT001  # called so
        token = check.token
        if is_right is None:
            again = partial(self._check_again, check, digest, host, found)
            if not (check.is_unknown and self._set is not None and self._set.ask(again)):
                if check.is_unknown:
                    self._note_refused(digest, host, check.why)
                found(False if check.is_unknown and self._fetched else None, None)
        elif token is not None and self.is_right(token):
            self._whys.pop(digest, None)
            self.memory.add(digest, token, len(check.password))
            found(True, token)  # noqa: FBT003  # as the answer of an attempt
        else:
            self._note_refused(digest, host, check.why or "the keys were changed meanwhile")
            found(False, None)  # noqa: FBT003  # as above

    def _note_refused(self, digest: bytes, host: str, why: str) -> None:
        LOGGER.info("token refused host=%s reason=%s", host, said(why))
        self._whys.pop(digest, None)
        self._whys[digest] = said(why)
        while len(self._whys) > WHYS_MAX:
            del self._whys[next(iter(self._whys))]

    def _check_again(self, check: _Check, digest: bytes, host: str, found: Found) -> None:
        """Check a token once more, by the keys that are there now, where a client still waits for it."""
        first = check.attempt

        def tell(is_right: bool | None, token: Token | None) -> None:  # noqa: FBT001  # called so
            if first is None or not first.is_cancelled:
                found(is_right, token)

        if first is None or not first.is_cancelled:
            self._check(check.password, digest, host, tell, is_last=bool(self._fetched))

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
        """Note that a client is in by a token: tell when it ends."""
        if token.ends_at_ms < self._ends_at_ms:
            self._ends_at_ms = token.ends_at_ms
            if self.timer is not None:
                self.timer.watch_soon(self)

    def next_deadline_ms(self) -> int | None:
        """Return when the first token in use ends, by the gateway's clock."""
        return None if self._ends_at_ms == NEVER_MS else self._clock.find_moment(self._ends_at_ms)

    def on_deadline(self, now_ms: int) -> None:
        """Have everybody looked at; those that stay are noted anew."""
        del now_ms
        self._ends_at_ms = NEVER_MS
        self.on_ended()


class _Check:
    """The check of one token, which runs on a thread; `is_last` False: the keys may be asked for once more."""

    def __init__(self, keys: Keys | None, password: bytes, now_ms: int, *, is_last: bool) -> None:
        self.password = password
        self.token: Token | None = None
        self.why = ""
        self.is_unknown = False  # no key matches it
        self.attempt: Attempt | None = None
        self._is_last = is_last
        self._keys = keys
        self._now_ms = now_ms

    def run(self) -> bool | None:
        """Return whether it is right, None where that is not known yet; what it says is in `token` then."""
        try:
            if self._keys is not None:
                self.token = self._keys.check(self.password, self._now_ms)
        except UnknownKeyError as error:
            self.why = str(error)
            self.is_unknown = not self._is_last
        except TokenError as error:
            self.why = str(error)
        return None if self.is_unknown else self.token is not None


def _nothing() -> None:
    pass
