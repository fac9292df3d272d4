"""What stands in for names that are no user's, so that a refusal takes as long and looks as one of a user."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections import Counter
from collections.abc import Mapping
from typing import Protocol

from gateway.auth.credentials import Refusal
from gateway.auth.rule_book import Account
from gateway.auth.scram import ROUNDS, Verifier, make_fake
from gateway.auth.users import User, make_decoy, make_usual_decoy

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
        self._decoys: list[tuple[str, str]] = []  # names of users with a password, and a decoy for the hash of each
        self._places: dict[str, int] = {}  # there, by name
        self._last_decoy = make_usual_decoy()  # where there is none
        self._rounds: Counter[int] = Counter()  # of keys for SCRAM, with how many users have so many
        self.had_users = False  # there are users, or were; kept with the secret
        self._secrets: Secrets | None = None
        self.follow(users)

    @property
    def have_scram(self) -> bool:
        """Whether some user can prove the password by SCRAM, so that it may be offered."""
        return bool(self._rounds)

    def follow(self, users: Mapping[str, User]) -> None:
        """Be like other users from now on; of one that changes there, or comes or goes, `note` is told."""
        if self._decoys:
            self._last_decoy = self._decoys[0][1]
        self._users = users
        self._decoys, self._places, self._rounds = [], {}, Counter()
        for name, user in users.items():
            self._add(name, user)
        self._note_users()

    def note(self, name: str, before: User | None, after: User | None) -> None:
        """Be like a user as it is now, None: it is not there."""
        if before is not None:
            self._remove(name, before)
        if after is not None:
            self._add(name, after)
        self._note_users()

    def _add(self, name: str, user: User) -> None:
        if user.kept:
            self._places[name] = len(self._decoys)
            self._decoys.append((name, make_decoy(user.kept)))
        if user.verifier is not None:
            self._rounds[user.verifier.rounds] += 1

    def _remove(self, name: str, user: User) -> None:
        place = self._places.pop(name, None)
        if place is not None:
            self._last_decoy = self._decoys[place][1]
            last = self._decoys.pop()
            if last[0] != name:
                self._decoys[place] = last
                self._places[last[0]] = place
        if user.verifier is not None:
            rounds = user.verifier.rounds
            self._rounds[rounds] -= 1
            if not self._rounds[rounds]:
                del self._rounds[rounds]

    def _note_users(self) -> None:
        if self._users and not self.had_users:
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
        number = int.from_bytes(digest[:8])
        decoy = self._decoys[number % len(self._decoys)][1] if self._decoys else self._last_decoy
        return User(name, Account(), decoy)

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
        rounds = sorted(self._rounds) or [ROUNDS]
        fake = make_fake(name, self._scram_key, rounds)  # made in any case, so that time tells nothing
        user = users.get(name)
        return fake if user is None or user.verifier is None else user.verifier
