"""What stands in for names that are no user's, so that a refusal takes as long and looks as one of a user."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping
from typing import Protocol

from gateway.auth.credentials import Refusal
from gateway.auth.rule_book import Account
from gateway.auth.scram import Verifier, make_fake
from gateway.auth.users import User, find_rounds, make_decoys, make_usual_decoy

_SCRAM_KEY = b"scram"
_HAD_USERS = b"had_users"


class Secrets(Protocol):
    """A durable table."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, or None."""

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of a key."""


class Strangers:
    """Decoys like the users that there are.

    Args:
        users: Those by name.
    """

    def __init__(self, users: Mapping[str, User]) -> None:
        self._key = os.urandom(32)
        self._scram_key = os.urandom(32)
        self._decoys = [make_usual_decoy()]
        self.had_users = False  # there are users, or were; kept with the secret
        self._secrets: Secrets | None = None
        self.follow(users)

    def follow(self, users: Mapping[str, User]) -> None:
        """Be like other users from now on."""
        self._users = users
        self._rounds = find_rounds(users)
        self._decoys = make_decoys(users) or self._decoys
        if users and not self.had_users:
            self.had_users = True
            self._keep_users()

    def _keep_users(self) -> None:
        if self._secrets is not None and self.had_users:
            self._secrets.put(_HAD_USERS, b"1")

    def keep_secret(self, secrets: Secrets) -> None:
        """Go by the secret of a table, made there on first use: what unknown names are told is the same for ever."""
        self._secrets = secrets
        self.had_users |= secrets.get(_HAD_USERS) is not None
        self._keep_users()
        kept = secrets.get(_SCRAM_KEY)
        if kept is None:
            secrets.put(_SCRAM_KEY, self._scram_key)
        else:
            self._scram_key = kept

    def make(self, name: str) -> User:
        """Return what stands in for an unknown name: the same decoy each time, as costly as that of some user."""
        digest = hmac.new(self._key, b"decoy" + name.encode(), hashlib.sha256).digest()
        return User(name, Account(), self._decoys[int.from_bytes(digest[:8]) % len(self._decoys)])

    def explain(self, why: str, name: bytes | str, token_why: str = "") -> str:
        """Return what the log says of a login that was refused: of a wrong one which it is, its name or its password.

        `token_why` is the fault of a token that was given as the password.

        The log is the operator's. No client, event or metric is told of it, for then anybody could look for users.
        """
        called = name.decode(errors="replace") if isinstance(name, bytes) else name
        if why == Refusal.WRONG.value and token_why:
            return token_why
        if why != Refusal.WRONG.value or not called:
            return why
        user = self._users.get(called)
        if user is None:
            return "no such user in the settings or the data folder"
        return "the user is disabled" if user.is_disabled else "wrong password or secret"

    def find_verifier(self, users: Mapping[str, User], name: str) -> Verifier:
        """Return the verifier of a user's proof; for a name without one, a verifier that no proof fits."""
        fake = make_fake(name, self._scram_key, self._rounds)  # made in any case, so that time tells nothing
        user = users.get(name)
        return fake if user is None or user.verifier is None else user.verifier
