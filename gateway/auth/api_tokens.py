"""Tokens for the admin API: long random texts that let programs in as a user, for some of its parts, until an end.

Only a digest of each is kept; a token of 256 random bits needs no slow hash.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterator
from typing import NamedTuple, Protocol

PREFIX = "lmq_"  # of all of them, so that scanners for leaked secrets find them
TOKENS_MAX = 1_000  # chosen: all are in memory, and in one answer where they are listed
NAME_BYTES_MAX = 255  # as of a user's name
ID_BYTES = 6  # told apart by it, not kept secret: of TOKENS_MAX no two share 48 bits by chance
SECRET_BYTES = 32  # 256 bits: nobody guesses it, so a quick hash is enough
NEVER = 0


class Table(Protocol):
    """A durable table."""

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of a key."""

    def delete(self, key: bytes) -> None:
        """Remove a key, where it is there."""

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield all."""


class ApiToken(NamedTuple):
    """One token, without its text; it ends at `ends_at_ms`, 0: never."""

    name: str
    user: str
    scopes: tuple[str, ...]
    made_at_ms: int
    ends_at_ms: int
    digest: str

    def has_ended(self, now_ms: int) -> bool:
        """Return whether it lets nobody in any more."""
        return self.ends_at_ms != NEVER and now_ms >= self.ends_at_ms


class TooManyTokensError(Exception):
    """There are as many as there may be."""


class ApiTokens:
    """All tokens, by name.

    Args:
        table: Where they are kept.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._by_id: dict[str, ApiToken] = {}
        self.used_at_ms: dict[str, int] = {}  # by name, since the start
        for key, value in list(table.items()):
            said = json.loads(value)
            self._by_id[key.decode()] = ApiToken(**{**said, "scopes": tuple(said["scopes"])})

    def __iter__(self) -> Iterator[ApiToken]:
        return iter(sorted(self._by_id.values()))

    def find(self, name: str) -> ApiToken | None:
        """Return a token by its name."""
        return next((token for token in self._by_id.values() if token.name == name), None)

    def add(self, name: str, user: str, scopes: tuple[str, ...], *, ends_at_ms: int, now_ms: int) -> str:
        """Make a token of a name that none has, and return its text, which is told once.

        Raises:
            TooManyTokensError: There are TOKENS_MAX.
        """
        if len(self._by_id) >= TOKENS_MAX:
            raise TooManyTokensError
        token_id, secret = secrets.token_hex(ID_BYTES), secrets.token_urlsafe(SECRET_BYTES)
        token = ApiToken(name, user, scopes, now_ms, ends_at_ms, _digest(secret))
        self._by_id[token_id] = token
        self._table.put(token_id.encode(), json.dumps(token._asdict()).encode())
        return f"{PREFIX}{token_id}_{secret}"

    def check(self, text: str, now_ms: int) -> ApiToken | None:
        """Return the token with that text, None where there is none or it has ended."""
        token_id, _, secret = text.removeprefix(PREFIX).partition("_")
        token = self._by_id.get(token_id)
        digest = "" if token is None else token.digest
        if not hmac.compare_digest(_digest(secret), digest) or token is None or token.has_ended(now_ms):
            return None
        self.used_at_ms[token.name] = now_ms
        return token

    def revoke(self, name: str) -> bool:
        """Remove a token; False where there is none."""
        return self._drop([key for key, token in self._by_id.items() if token.name == name])

    def revoke_of(self, user: str) -> None:
        """Remove all tokens of a user: another one may have the name later."""
        self._drop([key for key, token in self._by_id.items() if token.user == user])

    def _drop(self, token_ids: list[str]) -> bool:
        for token_id in token_ids:
            self.used_at_ms.pop(self._by_id.pop(token_id).name, None)
            self._table.delete(token_id.encode())
        return bool(token_ids)


def is_api_token(text: str) -> bool:
    """Return whether a text has the form of one."""
    return text.startswith(PREFIX)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
