"""Credentials in, identity out; at once where that is quick, later where a password is to be checked."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from core.cache_budget import CacheBudget
from gateway.address import pack_network
from gateway.auth.api_tokens import is_api_token
from gateway.auth.backends.chain import BackendChain
from gateway.auth.backends.kinds import describe_clear, make_backends
from gateway.auth.backends.question import Backend
from gateway.auth.check_threads import SlowWork
from gateway.auth.credentials import (
    ADMINISTRATOR,
    GUEST,
    OWN_PEER,
    OWN_PREFIX,
    PASSWORD_BYTES_MAX,
    Credentials,
    Identity,
    LoginAnswer,
    Refusal,
    Then,
)
from gateway.auth.known_users import KnownUsers
from gateway.auth.login_log import tell_penalty
from gateway.auth.open_ways import OpenWays
from gateway.auth.password_checks import Attempt, PasswordChecks
from gateway.auth.penalty_box import PenaltyBox
from gateway.auth.permissions import ALL, Permissions
from gateway.auth.rule_book import NAMELESS, RuleBook
from gateway.auth.rule_lists import RuleLists
from gateway.auth.scram import ScramExchange
from gateway.auth.settings_users import make_users, make_users_again
from gateway.auth.stored_users import StoredUsers, Table
from gateway.auth.token_logins import Keys, TokenLogins, read_keys
from gateway.auth.tokens import Token
from gateway.auth.topic_rights import TopicRights
from gateway.auth.user_quotas import UserQuotas
from gateway.auth.users import User
from gateway.events import Events
from gateway.runtime.loop import Clock
from gateway.settings.models import AuthSettings
from gateway.settings.way_names import JWT, USERS, Ways


class WaysIn(NamedTuple):
    """What was made of settings that are read again."""

    users: dict[str, User]
    keys: Keys | None
    backends: list[Backend]


class Authenticator:
    """Users of the settings, anonymous clients, and AMQP's guest.

    A right password is checked slowly once and then remembered as a keyed digest. Whether a name is known does not
    show in the time that a refusal takes: a name that is not has its password checked against a decoy.

    Args:
        settings: Which users may come in, and how.
        environment: Holds the passwords that the settings name variables for.
        clock: The gateway's.
        work: Runs what is slow.
        caches: Bounds what is remembered of answers.

    Raises:
        SettingsError: As `make_users`, `read_keys` and `make_backends`.
    """

    def __init__(
        self,
        settings: AuthSettings,
        environment: Mapping[str, str],
        clock: Clock,
        work: SlowWork,
        caches: CacheBudget | None = None,
    ) -> None:
        self._settings = settings
        self.open_ways = self._open = OpenWays(settings)
        self.clock = clock
        self.events = Events()  # that operators are told of
        self.stored = StoredUsers()
        self.on_changed: Callable[[], None] = _nothing  # users or permissions of the data folder
        self.known = KnownUsers(make_users(settings, environment))
        self._users = self.known.by_name
        self.rules = RuleLists(settings.rules, partial(self._note_stored, is_all=True))
        self._strangers = self.known.strangers
        self.keep_secret, self.explain = self._strangers.keep_secret, self._strangers.explain
        self._own: set[str] = set()  # users that are parts of the gateway
        self._key = os.urandom(32)
        self.penalties = PenaltyBox(settings.penalty)
        self.penalties.on_penalty = partial(tell_penalty, self.events)
        self.quotas = UserQuotas(settings, clock.now_ms)
        self._checks = PasswordChecks(work, clock, self.penalties)
        self.passwords = self._checks.right
        self.tokens = TokenLogins(self._checks, clock, read_keys(settings.jwt, environment))
        self.tokens.on_ended = lambda: self.on_changed()  # noqa: PLW0108 - another takes its place
        self.backends = BackendChain(clock, self.penalties)
        if settings.backends:
            self.backends.use(make_backends(settings, environment))
        self.book = self._book = RuleBook(caches or CacheBudget())
        self._change_users()

    def keep_users(self, table: Table) -> None:
        """Let users of a table in, too; one that the settings have is as the settings say."""
        self.stored = StoredUsers(table)
        self.stored.on_user_changed, self.stored.on_changed = self._change_user, self._note_stored
        self._change_users()

    def _change_user(self, name: str) -> None:
        """Have a user of the data folder as it is now; it counts after `_note_stored`."""
        known = self.known.change(name, self.stored.users.get(name))
        self._book.change_user(name, None if known is None else known.may, self.stored.rows.get(name))

    def _note_stored(self, *, is_all: bool = False) -> None:
        if is_all or not self._book.count_users():
            self._change_rights()
        self.on_changed()

    def _change_users(self) -> None:
        self.known.follow(self.stored.users)
        self._change_rights()

    def _change_rights(self) -> None:
        """Go by the rules of the settings, what the users may do at all, and their permissions."""
        accounts = {name: user.may for name, user in self._users.items()}
        self._book.change(self.rules.all, accounts, dict(self.stored.rows), allows=self._settings.default == "allow")

    def _make_identity(self, user: str, who: Credentials, account: User | None = None) -> Identity:
        may = self._book.make(user, client=who.client, host=who.host, door=who.protocol)
        return Identity(user, may, account, ways=who.ways)

    def begin(self, credentials: Credentials, then: Then) -> Attempt | None:
        """Find the user of these credentials, and call `then` on the loop: before this returns, or later.

        Returns:
            What waits for its turn or its answer; `cancel` it where the peer goes away meanwhile.
        """
        if not self._open.lets_anonymous_in(credentials.protocol, credentials.ways):
            credentials = self.backends.name(credentials)
        user = credentials.user
        if credentials.certified in self._own and credentials.peer == OWN_PEER:
            self._answer(then, Identity(credentials.certified, ALL))
        elif credentials.certified:
            self._answer(then, self._find_certified(credentials))
        elif credentials.password is not None and credentials.counts(JWT) and self.tokens.takes(credentials.password):
            found = partial(self._found_token, credentials._replace(password=None, signed=None), then)
            return self.tokens.begin(credentials.password, credentials.host, found)
        elif GUEST not in self._users and self._open.is_guest(credentials):
            self._answer(then, self._make_identity(GUEST, credentials))
        elif user in self._users and credentials.counts(USERS):
            return self._check(credentials, self._users[user], then)
        elif self._may_ask(credentials):
            is_wrong = not self.lets_be_anonymous(credentials)
            asked = partial(self._found_outside, credentials._replace(password=None, signed=None), then)
            return self.backends.begin(credentials, asked, is_stranger_wrong=is_wrong)
        elif self.lets_be_anonymous(credentials):
            self._answer(then, self._make_identity("", credentials))
        elif user is None:
            self._answer(then, Refusal.NAMELESS)
        else:
            return self._check(credentials, self._strangers.make(user), then)
        return None

    def lets_be_anonymous(self, who: Credentials) -> bool:
        """Return whether a client is let in without being a user, by a name where it gives one."""
        has_names = (self._strangers.had_users and who.counts(USERS)) or self.backends.is_on_for(who)
        return self._open.lets_be_anonymous(who, has_names=has_names)

    def _found_token(self, who: Credentials, then: Then, is_right: bool | None, token: Token | None) -> None:  # noqa: FBT001  # called so
        if is_right is None:
            self._answer(then, self._find_hindrance(who))
        else:
            self._answer(then, self.let_in_by(token, who))

    def _may_ask(self, who: Credentials) -> bool:
        """Return whether back ends may see a name and its password: none that they may not give, no secret of ours."""
        if who.user is None or not self._may_be_token(who.user):
            return False
        said = ((who.password or b"").strip(), who.user.encode().strip())  # as ones that were copied with a line's end
        is_ours = any(is_api_token(text.decode(errors="replace")) or self.tokens.takes(text) for text in said)
        return self.backends.takes(who) and not is_ours

    def _found_outside(self, who: Credentials, then: Then, found: Token | Refusal | None) -> None:
        """Go by what back ends said of a name that is no user here."""
        if isinstance(found, Token):
            self._answer(then, self.let_in_by(found, who))
        elif found is None and self.lets_be_anonymous(who):
            self._answer(then, self._make_identity("", who))
        elif found is Refusal.BUSY:
            self._answer(then, self._find_hindrance(who))
        else:
            self._answer(then, found or Refusal.WRONG)

    def let_in_by(self, token: Token | None, who: Credentials) -> LoginAnswer:
        """Return the login of a user that a token or a back end vouches for."""
        if token is None or not self._may_be_token(token.user):
            return Refusal.WRONG
        self.tokens.note_use(token)
        place = {"client": who.client, "host": who.host, "door": who.protocol}
        topics = None if token.topics is None else TopicRights(token.topics, token.user, who.client, who.host)
        may = self._book.make(token.user, **place, groups=token.groups, rules=token.rules, topics=topics)
        return Identity(token.user, may, token=token, topics=topics, ways=who.ways)

    def is_right(self, token: Token) -> bool:
        """Return whether what a client came in by still counts."""
        return (self.tokens.is_right(token) or self.backends.is_right(token)) and self._may_be_token(token.user)

    def _may_be_token(self, user: str) -> bool:
        """Return whether a token or a back end may say that a client is of that name: none that comes in otherwise."""
        is_known = user in self._users or user in NAMELESS or user.startswith(OWN_PREFIX)
        return (self.tokens.is_on or self.backends.is_on) and not is_known

    def begin_scram(self) -> ScramExchange:
        """Return a proof by SCRAM-SHA-256 that is to be made; finish it with `check_scram`."""
        return ScramExchange(partial(self._strangers.find_verifier, self._users))

    def check_scram(self, exchange: ScramExchange, who: Credentials, then: Then) -> Attempt:
        """Check the proof that `exchange` was given, and call `then` as `begin` does; `who` says more of the peer.

        It is cheap; but an address that often is wrong at a name waits, as it does with passwords.
        """
        user = self._users.get(exchange.user)
        is_there = user is not None and user.verifier is not None and user.verifier == exchange.verifier
        if user is None or not is_there or not who.counts(USERS):  # it was changed meanwhile
            user = self._strangers.make(exchange.user)
        name = self._digest(b"name", exchange.user.encode())[:16]
        return self._checks.add(who.host, name, b"", exchange.check, partial(self._found, user, who, then))

    def let_in(self, own: str) -> None:
        """Let a part of the gateway in by its name, where it comes from inside: it is a user that no client can be."""
        self._own.add(own)

    def cancel(self, attempt: Attempt) -> None:
        """Forget an attempt: its `then` is not called any more."""
        attempt.checks.cancel(attempt)

    def stop(self) -> None:
        """Ask no back end any more."""
        self.backends.stop()

    def find_rights(self, protocol: str, user: str, client: str = "", host: str = "") -> Permissions | None:
        """Return what a user may do now, None where nobody of that name comes in by `protocol`; empty: anonymous."""
        if user in self._own:
            return ALL
        known = self._users.get(user)
        if known.is_disabled if known else (user or not self._open.lets_anonymous_be(protocol)):
            return None
        return self._book.make(user, client=client, host=host, door=protocol)

    def find_member(self, user: str, host: str) -> Permissions | None:
        """Return the rights of a user that a token of the admin API is of, None where there is none of that name."""
        known = self._users.get(user)
        if (known is not None and not known.is_disabled) or (user == GUEST and self._lets_guest_be()):
            return self._book.make(user, client="", host=host, door="amqp")
        return None

    def may_come(self, protocol: str, user: str) -> bool:
        """Return whether a user of that name can come in by `protocol` now, perhaps by a token."""
        return self._may_be_token(user) or self.find_rights(protocol, user) is not None

    def users(self) -> list[User]:
        """Return all users, also those of the data folder, and the disabled ones as they are kept."""
        return list({**self.stored.users, **self.known.of_settings}.values())

    def is_of_settings(self, user: str) -> bool:
        """Return whether a user is the settings' to change."""
        return user in self.known.of_settings

    def find_tags(self, user: str, token: Token | None = None) -> Sequence[str]:
        """Return what a user that came in, perhaps by a token, is at the admin API."""
        if token is not None:
            return token.tags
        known = self._users.get(user)
        if known is not None:
            return known.tags
        return (ADMINISTRATOR,) if user == GUEST and self._lets_guest_be() else ()

    def find_refused_s(self, host: str) -> int:
        """Return for how many seconds logins from an address are refused because it guesses, 0: they are not."""
        return self.penalties.find_left_s(pack_network(host), self.clock.now_ms())

    def lets_look(self, peer: str, ways: Ways = None) -> bool:
        """Return whether the admin API answers questions of a peer that gives no name."""
        return self._open.lets_look(peer, ways)

    def find_secret(self, user: str) -> bytes:
        """Return what a user signs with, empty where there is no such user or secret."""
        known = self._users.get(user)
        return b"" if known is None else known.secret

    def reload(self, settings: AuthSettings, users: dict[str, User]) -> None:
        """Go by other settings from now on, with the users that `make_users` made of them.

        A connected user has the rights that the user has now: `may_stay` is false for a login that would be
        refused now, or may read less.
        """
        for name, user in list(users.items()):
            known = self.known.of_settings.get(name)
            if known is not None and known.comes_in_as(user):
                known.may, known.tags = user.may, user.tags
                users[name] = known
        self.rules.use(settings.rules)
        self._settings = self._open.settings = settings
        self.penalties.use(settings.penalty)
        self.quotas.use(settings)
        self.known.of_settings = users
        self._change_users()

    def may_stay(self, protocol: str, identity: Identity) -> bool:
        """Return whether the user of `identity` could still come in so, and read what it could read."""
        if identity.user in self._own:
            return True
        identity.may.find_version()
        token = identity.token
        if token is not None:
            if identity.may.has_lost or not self.is_right(token):
                return False
            self.tokens.note_use(token)
            return True
        known = self._users.get(identity.user)
        if identity.may.has_lost or known is not identity.account:
            return False
        if known is not None:
            return True
        is_guest = identity.user == GUEST
        ways = identity.ways
        return self._open.lets_guest_in(ways) if is_guest else self._open.lets_anonymous_in(protocol, ways)

    def make_users(self, settings: AuthSettings, environment: Mapping[str, str]) -> dict[str, User]:
        """Return the users of other settings, to be given to `reload`; slow where one has a password to be hashed.

        Raises:
            SettingsError: As the function `make_users`.
        """
        return make_users_again(settings, environment, self._settings, self.known.of_settings)

    def read(self, settings: AuthSettings, environment: Mapping[str, str]) -> WaysIn:
        """Return what is made of other settings; slow.

        Raises:
            SettingsError: They cannot be used.
        """
        users = self.make_users(settings, environment)
        self.rules.compare(settings.rules)
        return WaysIn(users, read_keys(settings.jwt, environment), make_backends(settings, environment))

    def use(self, ways: WaysIn) -> None:
        """Go by other keys and back ends from now on; `reload` is for users and the rest."""
        self.tokens.use(ways.keys)
        self.backends.use(ways.backends)

    def describe(self, doors: Collection[str]) -> list[str]:
        """Return one line for each way in at these doors that asks for no secret, or tells it; logged at the start."""
        return [*self._open.describe(doors), *describe_clear(self._settings)]

    def _find_certified(self, who: Credentials) -> LoginAnswer:
        """Return the login of the user that a certificate names; neither a password nor another name counts."""
        known = self._users.get(who.certified)
        if who.certified == GUEST and who.peer == OWN_PEER and self._lets_guest_be():
            return self._make_identity(GUEST, who)
        if known is None or known.is_disabled:
            return Refusal.STRANGER
        return self._make_identity(known.name, who, known)

    def _lets_guest_be(self) -> bool:
        return GUEST not in self._users and self._open.lets_guest_be("amqp", "admin")

    def _check(self, credentials: Credentials, user: User, then: Then) -> Attempt | None:
        host = credentials.host
        found = partial(self._found, user, credentials, then)
        if credentials.signed is not None:  # nothing of it is remembered: no other request has the same signature
            check = partial(credentials.signed, user.secret or os.urandom(32))
            return self._checks.add(host, self._digest(b"name", user.name.encode())[:16], b"", check, found)
        if not user.kept:
            user = self._strangers.make(user.name)
        password = credentials.password or b""
        if len(password) > PASSWORD_BYTES_MAX:
            self._answer(then, Refusal.WRONG)
            return None
        name = user.name.encode()
        digest = self._digest(b"password", len(name).to_bytes(4), name, user.kept.encode(), b"\x00", password)
        if self._checks.right.knows(digest):
            self._answer(then, self._make_identity(user.name, credentials, self._users.get(user.name)))
            return None
        check = partial(user.check, password)
        found = partial(self._found, user, credentials._replace(password=None, signed=None), then)
        return self._checks.add(host, self._digest(b"name", name)[:16], digest, check, found)

    def _found(self, user: User, who: Credentials, then: Then, is_right: bool | None) -> None:  # noqa: FBT001  # called so
        known = self._users.get(user.name)  # as it is now: settings may have been read again meanwhile
        if is_right is None:
            self._answer(then, self._find_hindrance(who))
        elif is_right and known is not None and known.comes_in_as(user):
            self._answer(then, self._make_identity(known.name, who, known))
        else:
            self._answer(then, Refusal.WRONG)

    def _find_hindrance(self, who: Credentials) -> Refusal:
        """Return why a login was not looked at."""
        return Refusal.PENALTY if self.find_refused_s(who.host) else Refusal.BUSY

    def _answer(self, then: Then, answer: LoginAnswer) -> None:
        then(answer, self.clock.now_ms())

    def _digest(self, *parts: bytes) -> bytes:
        return hmac.new(self._key, b"".join(parts), hashlib.sha256).digest()


def _nothing() -> None:
    pass
