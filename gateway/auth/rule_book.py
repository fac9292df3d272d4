"""The rules and rights that are in force, and who lost something when they changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from core.cache_budget import CacheBudget
from gateway.auth.judge import Judge
from gateway.auth.permissions import Permissions, Rights, View
from gateway.auth.rules import Rule, Rules, Subject, find_lost
from gateway.auth.topic_rights import AskedPermissions, TopicRights
from gateway.auth.user_rows import UserRows
from gateway.rule_settings import RuleSettings

NEVER = -1
NAMELESS = ("", "guest")  # come in without being users
GONE = View(publish=False, subscribe=False, configure=False)  # somebody who was a user
VIEWS_MAX = 4_096  # that are remembered, by user and groups


class Account(NamedTuple):
    """What a user may do at all, and the user's groups."""

    publish: bool = True
    subscribe: bool = True
    configure: bool = True
    groups: tuple[str, ...] = ()


class RuleBook(Rights):
    """Answers what counts for whom.

    Args:
        caches: Bounds what is remembered.
    """

    __slots__ = ("_accounts", "_allows", "_lost", "_lost_all", "_lost_users", "_rows", "_rules", "_views")

    def __init__(self, caches: CacheBudget) -> None:
        super().__init__(caches)
        self._rules = Rules(())
        self._accounts: Mapping[str, Account] = {}
        self._allows = True
        self._lost: list[Rule] = []  # with the last change
        self._lost_all = False
        self._lost_users: set[str] = set()
        self._rows: Mapping[str, UserRows] = {}
        self._views: dict[tuple[str, tuple[str, ...] | None], View] = {}  # of newcomers that differ in nothing else

    def change(
        self,
        rules: Sequence[Rule],
        accounts: Mapping[str, Account],
        rows: Mapping[str, UserRows] | None = None,
        *,
        allows: bool,
    ) -> None:
        """Go by other rules, users and permissions from the next question on."""
        before, self._rows = self._rows, rows or {}
        nothing = UserRows("", {}, {})
        changed = [user for user in {**before, **self._rows} if before.get(user) is not self._rows.get(user)]
        self._lost_users = {
            user
            for user in changed
            if user not in before or self._rows.get(user, nothing).reads_less_than(before[user])
        }
        self._lost = [] if rules is self._rules.all else find_lost(self._rules.all, rules)
        self._lost_all = self._allows and not allows
        if rules is not self._rules.all:
            self._rules = Rules(rules)
        self._accounts = accounts
        self._allows = allows
        self._views.clear()
        self.version += 1

    def make(
        self,
        user: str,
        *,
        client: str,
        host: str,
        door: str,
        groups: tuple[str, ...] | None = None,
        rules: tuple[RuleSettings, ...] = (),
        topics: TopicRights | None = None,
    ) -> Permissions:
        """Return what somebody may do who comes in, with `groups` and `rules` by a token; it follows each change.

        `topics` is what a back end is asked about each topic, None where none wants to be.
        """
        subject = Subject(user, client, host, door, groups, rules)
        if topics is not None:
            return AskedPermissions(rights=self, subject=subject, topics=topics)
        return Permissions(rights=self, subject=subject)

    def look(self, subject: Subject, since: int) -> View:
        """Return what counts for a subject now; newcomers that no rule tells apart are given the same view."""
        if since != NEVER or self._rules.tells_clients_apart or subject.rules or subject.user in self._rows:
            return self._make_view(subject, since)
        key = (subject.user, subject.groups)
        view = self._views.get(key)
        if view is None:
            if len(self._views) >= VIEWS_MAX:
                self._views.clear()
            view = self._views[key] = self._make_view(subject, since)
        return view

    def _make_view(self, subject: Subject, since: int) -> View:
        of_token = subject.groups is not None
        account = Account(groups=subject.groups) if subject.groups is not None else self._accounts.get(subject.user)
        if account is None and subject.user not in NAMELESS:
            return GONE
        groups = () if account is None else account.groups
        judge = Judge(self._rules.general, self._rules.find_own(subject, groups), allows=self._allows)
        rows = None if of_token else self._rows.get(subject.user)
        if rows is not None:
            judge.use_rows(rows, subject.client)
        flags = account or Account()
        return View(
            None if judge.is_open else judge,
            name="" if account is None or of_token else subject.user,
            publish=flags.publish,
            subscribe=flags.subscribe,
            configure=flags.configure,
            lost=since != NEVER and self._has_lost(subject, groups, since),
        )

    def _has_lost(self, subject: Subject, groups: tuple[str, ...], since: int) -> bool:
        if since < self.version - 1 or self._lost_all or (subject.groups is None and subject.user in self._lost_users):
            return True
        return any(rule.is_for(subject, groups) for rule in self._lost)
