"""The rules and rights that are in force, and which permissions shrank when they changed."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from core.cache_budget import CacheBudget
from gateway.auth.judge import Judge
from gateway.auth.permissions import Permissions, Rights, View
from gateway.auth.rule import TOPIC_VHOST, Rule, Subject
from gateway.auth.rule_draft import RuleDraft
from gateway.auth.rule_losses import seek_lost
from gateway.auth.rules import Rules, make_whole
from gateway.auth.topic_rights import AskedPermissions, TopicRights
from gateway.auth.user_rows import UserRows
from gateway.settings.rules import RuleSettings

LOGGER = logging.getLogger(__name__)

NEVER = -1
NAMELESS = ("", "guest")  # come in without being users
GONE = View(publish=False, subscribe=False, configure=False)  # of a user that was deleted
VIEWS_MAX = 4_096  # that are remembered, by user and groups; chosen: a fleet has few kinds of users


MANY = 1_000  # rules that are made, and indexed, in steps
Thing = TypeVar("Thing")
Written = RuleDraft | Sequence[Rule]  # rules that are to be made, or are
CallLater = Callable[[int, Callable[[], None]], None]


class RulesError(Exception):
    """The rules of a change are not in force: no index could be made of them."""


def _nothing() -> None:
    pass


class RuleChange:
    """Rules on their way into force.

    Args:
        written: The rules.
        before: Those that they take the place of.
    """

    def __init__(self, written: Written, before: Rules) -> None:
        self.written = written
        self.rules = before
        self.lost: list[Rule] = []  # by which a user may read less
        self._before = before

    def steps(self, *, has_index: bool) -> Iterator[None]:
        """Make all that is needed before they count; with `has_index` also what questions need."""
        written = self.written
        rules = Rules((yield from written.steps()) if isinstance(written, RuleDraft) else written)
        yield from rules.place()
        if has_index:
            yield from rules.general.index(self._before.general)
        self.lost = yield from seek_lost(self._before.all, rules.all)
        self.rules = rules


def _at_once(steps: Iterator[None]) -> Iterator[None]:
    """Return steps as one."""
    deque(steps, maxlen=0)
    yield from ()


class Account(NamedTuple):
    """What a user may do at all, and the user's groups."""

    publish: bool = True
    subscribe: bool = True
    configure: bool = True
    groups: tuple[str, ...] = ()


class RuleBook(Rights):
    """Gives each login its permissions.

    Args:
        caches: Bounds what is remembered.
    """

    __slots__ = (
        "_accounts",
        "_allows",
        "_call_later",
        "_gathered",
        "_has_failed",
        "_is_behind",
        "_lost",
        "_lost_all",
        "_lost_users",
        "_on_whole",
        "_pending",
        "_rows",
        "_rules",
        "_views",
        "_waiting",
        "_wanted",
        "_written",
    )

    def __init__(self, caches: CacheBudget) -> None:
        super().__init__(caches)
        self._rules = make_whole(())
        self._written: Written = self._rules.all  # what they were made of
        self._accounts: dict[str, Account] = {}
        self._allows = True
        self._lost: list[Rule] = []  # with the last change
        self._lost_all = False
        self._lost_users: set[str] = set()
        self._is_behind = False  # users changed that this does not know of
        self._gathered: set[str] = set()  # of `change_user`, since the last change that counts
        self._rows: dict[str, UserRows] = {}
        self._call_later: CallLater | None = None  # None: changes are in force before they return
        self._on_whole: Callable[[], None] = _nothing
        self._wanted: RuleChange | None = None  # those to come
        self._has_failed = False  # those of the last change do not count: their index could not be made
        self._pending: tuple[dict[str, Account], dict[str, UserRows] | None, bool] = ({}, None, False)
        self._waiting: list[asyncio.Event] = []
        self._views: dict[tuple[str, tuple[str, ...] | None], View] = {}  # of newcomers that differ in nothing else

    def change(
        self,
        rules: Written,
        accounts: dict[str, Account],
        rows: dict[str, UserRows] | None = None,
        *,
        allows: bool,
    ) -> None:
        """Go by other rules, users and permissions from the next question on; both dicts are the book's from then on.

        Where `index_in_steps` was called, many new rules, and what came with them, count once they are `whole`; the old
        ones count meanwhile.
        """
        wanted, self._is_behind = self._wanted, False
        if wanted is not None and rules is wanted.written:  # users alone are others: at once, no more than they may now
            self._pending = (accounts, rows, allows)
            self._change(None, accounts, rows, allows=allows and self._allows)
        elif self._call_later is None or rules is self._written or len(rules) < MANY:
            self._wanted, self._has_failed = None, True
            try:
                self._change(self._make_now(rules), accounts, rows, allows=allows)
                self._has_failed = False
            finally:
                self._tell_whole()
        else:
            wanted = RuleChange(rules, self._rules)
            self._wanted, self._pending = wanted, (accounts, rows, allows)
            self._call_later(0, partial(self._step, wanted, wanted.steps(has_index=True)))

    def change_user(self, user: str, account: Account | None, rows: UserRows | None) -> None:
        """Have a user as it is now, None where it is not there or was given nothing; it counts after `count_users`."""
        if self._wanted is not None or self._has_failed:
            self._is_behind = True
            return
        before = self._rows.get(user)
        if before is not rows and (before is None or self._reads_less(user, before, account, rows)):
            self._gathered.add(user)
        _set(self._accounts, user, account)
        _set(self._rows, user, rows)

    def _reads_less(self, user: str, before: UserRows, account: Account | None, rows: UserRows | None) -> bool:
        had = _in_force(before, is_account=user in self._accounts, allows=self._allows)
        after = UserRows("", {}, {}) if rows is None else rows
        return _in_force(after, is_account=account is not None, allows=self._allows).reads_less_than(had)

    def count_users(self) -> bool:
        """Go by the users that were changed one by one, from the next question on.

        Returns:
            Whether they count. If not, rules are still to come: all that there is now is to be given by `change`.
        """
        if self._is_behind or self._wanted is not None or self._has_failed:
            return False
        self._lost, self._lost_all = [], False
        self._lost_users, self._gathered = self._gathered, set()
        self._views.clear()
        self.version += 1
        return True

    def _make_now(self, rules: Written) -> RuleChange | None:
        """Return rules that can count, None where the same rules count already."""
        if rules is self._written:
            return None
        made = RuleChange(rules, self._rules)
        deque(made.steps(has_index=False), maxlen=0)
        return made

    def index_in_steps(self, call_later: CallLater, on_whole: Callable[[], None]) -> None:
        """Make the index of many rules in steps from now on.

        Args:
            call_later: Calls back on the loop after some ms.
            on_whole: Called when others count: a user may read less.
        """
        self._call_later, self._on_whole = call_later, on_whole

    def finish(self) -> None:
        """Have the rules of the last change count now, for an answer that cannot wait.

        Raises:
            RulesError: They do not: their index cannot be made, and those before stay in force.
        """
        if self._wanted is not None:
            self._step(self._wanted, _at_once(self._wanted.steps(has_index=True)))
        self._check_in_force()

    async def whole(self) -> None:
        """Wait until the rules of the last change count.

        Raises:
            RulesError: They do not: their index cannot be made, and those before stay in force.
        """
        if self._wanted is not None:
            event = asyncio.Event()
            self._waiting.append(event)
            await event.wait()
        self._check_in_force()

    def _check_in_force(self) -> None:
        if self._has_failed:
            raise RulesError("the rules are not in force, those before are: no index of them can be made, see the log")

    def _step(self, wanted: RuleChange, steps: Iterator[None]) -> None:
        if wanted is not self._wanted or self._call_later is None:
            return  # others came meanwhile
        accounts, rows, allows = self._pending
        try:
            for _ in steps:
                self._call_later(0, partial(self._step, wanted, steps))
                return
            self._change(wanted, accounts, rows, allows=allows)
        except Exception:
            count = len(wanted.written)
            LOGGER.exception("no index of the rules can be made, those before stay in force rules=%d", count)
            self._end_steps(has_failed=True)
            # users that were removed stay removed, and new ones may do nothing: no rule that limits them is in force
            known = {user: account for user, account in accounts.items() if user in self._accounts}
            self._change(None, known, rows, allows=allows and self._allows)
        else:
            self._end_steps(has_failed=False)
        self._on_whole()

    def _end_steps(self, *, has_failed: bool) -> None:
        self._wanted, self._has_failed = None, has_failed
        self._tell_whole()

    def _tell_whole(self) -> None:
        waiting, self._waiting = self._waiting, []
        for event in waiting:
            event.set()

    def _change(
        self,
        change: RuleChange | None,
        accounts: dict[str, Account],
        rows: dict[str, UserRows] | None,
        *,
        allows: bool,
    ) -> None:
        """Go by rules that are made; None: by those that there are."""
        before, after, nothing = self._rows, {} if rows is None else rows, UserRows("", {}, {})
        changed = [user for user in {**before, **after} if before.get(user) is not after.get(user)]
        lost_users = {user for user in changed if user not in before}
        for user in set(changed) - lost_users:
            had = _in_force(before[user], is_account=user in self._accounts, allows=self._allows)
            has = _in_force(after.get(user, nothing), is_account=user in accounts, allows=allows)
            if has.reads_less_than(had):
                lost_users.add(user)
        if change is not None:
            self._rules, self._written = change.rules, change.written
        self._lost = [] if change is None else change.lost
        self._rows, self._lost_users, self._gathered = after, lost_users | self._gathered, set()
        self._lost_all = self._allows and not allows
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
        """Return what a login may do, with `groups` and `rules` by a token; it follows each change.

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
            judge.use_rows(_in_force(rows, is_account=account is not None, allows=self._allows), subject.client)
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


def _set(things: dict[str, Thing], user: str, thing: Thing | None) -> None:
    if thing is None:
        things.pop(user, None)
    else:
        things[user] = thing


def _in_force(rows: UserRows, *, is_account: bool, allows: bool) -> UserRows:
    """Return the permissions that count where these were given: guest, as in RabbitMQ, has `/` from the first."""
    return rows.with_all_of(TOPIC_VHOST) if allows and not is_account else rows
