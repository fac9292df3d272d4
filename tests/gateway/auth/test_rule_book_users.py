"""Users that are changed one by one in the book of rules, beside all of them at once."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from core.cache_budget import CacheBudget
from gateway.auth.rule import make_rules
from gateway.auth.rule_book import Account, RuleBook
from gateway.auth.user_rows import NameRow, UserRows
from gateway.settings.rules import RuleSettings
from tests.gateway.auth.test_permissions import change, make_book, of
from tests.gateway.auth.test_rule_book import DENY, OPS, Steps, many

ROWS = [
    None,
    {"/": NameRow(".*", ".*", ".*")},
    {"/": NameRow(".*", "", "^a"), "v": NameRow("", "", ".*")},
    {"v": NameRow(".*", ".*", ".*")},
]
KINDS = [None, Account(), Account(subscribe=False), Account(groups=("ops",))]
USERS = ("ann", "bob", "guest")


@pytest.mark.parametrize("allows", [True, False])
@given(st.lists(st.lists(st.tuples(*map(st.sampled_from, (USERS, KINDS, ROWS))), max_size=4), max_size=6))
def test_users_that_are_changed_one_by_one_may_what_they_may_when_all_are(allows, histories):
    rules = make_rules([RuleSettings.model_validate(OPS)], "auth.rules")
    one_by_one, together = RuleBook(CacheBudget()), RuleBook(CacheBudget())
    accounts, rows = {"ann": Account()}, {"bob": UserRows("bob", ROWS[1], {})}
    for book in (one_by_one, together):
        book.change(rules, dict(accounts), dict(rows), allows=allows)
    logins = [(of(one_by_one, user), of(together, user)) for user in USERS]
    for history in histories:
        for user, account, named in history:
            _put(accounts, user, account)
            _put(rows, user, None if named is None else UserRows(user, named, {}))
            one_by_one.change_user(user, accounts.get(user), rows.get(user))
        assert one_by_one.count_users()
        together.change(rules, dict(accounts), dict(rows), allows=allows)
        for pair in (*logins, *((of(one_by_one, user), of(together, user)) for user in USERS)):
            told, expected = ([_answers(may), may.has_lost] for may in pair)
            assert told[0] == expected[0]
            assert told[1] >= expected[1]  # what a user may read less for a while between two counts is lost, too


def _put(things, user, thing):
    if thing is None:
        things.pop(user, None)
    else:
        things[user] = thing


def _answers(may):
    may.find_version()
    return [
        *(may.may_enter(vhost) for vhost in (b"/", b"v")),
        *(may.may_read(vhost, name) for vhost in (b"/", b"v") for name in (b"a", b"b")),
        may.may_publish(b"a/1"),
        may.may_subscribe(b"a/1"),
    ]


def test_what_users_lose_is_told_once_they_count_and_not_before():
    every, nothing = {"/": NameRow(".*", ".*", ".*")}, {"/": NameRow("", "", "")}
    book = make_book(accounts={})
    for name in USERS:
        book.change_user(name, Account(), UserRows(name, every, {}))
    assert book.count_users()
    logins = {name: of(book, name) for name in USERS}
    version = book.version
    book.change_user("ann", Account(), UserRows("ann", nothing, {}))
    book.change_user("bob", None, None)
    assert book.version == version
    assert book.count_users()
    assert book.version == version + 1
    for may in logins.values():
        may.find_version()
    assert {name: may.has_lost for name, may in logins.items()} == {"ann": True, "bob": True, "guest": False}


def test_users_that_change_while_rules_are_on_their_way_are_to_be_given_with_them():
    book = make_book(allows=True)
    steps = Steps(book)
    rules = change(book, *many(DENY), allows=True)
    steps.run(3)
    book.change_user("bob", Account(publish=False), None)
    assert not book.count_users()
    assert of(book, "bob").may_publish(b"b") is False  # there is no such user yet
    book.change(rules, {"bob": Account(publish=False), "ann": Account()}, allows=True)
    assert of(book, "ann").may_publish(b"b")
    steps.run()
    assert not of(book, "bob").may_publish(b"b")
    assert not of(book, "ann").may_publish(b"a/1")
    book.change_user("bob", Account(), None)
    assert book.count_users()
    assert of(book, "bob").may_publish(b"b")


def test_users_that_changed_before_rules_did_lose_what_they_lost_with_those():
    every, nothing = {"/": NameRow(".*", ".*", ".*")}, {"/": NameRow("", "", "")}
    book = make_book()
    rows = {name: UserRows(name, every, {}) for name in USERS}
    book.change([], {name: Account() for name in USERS}, dict(rows), allows=True)
    ann, guest = of(book, "ann"), of(book, "guest")
    rows["ann"] = UserRows("ann", nothing, {})
    book.change_user("ann", Account(), rows["ann"])
    book.change([], {name: Account() for name in USERS}, rows, allows=True)
    for may in (ann, guest):
        may.find_version()
    assert (ann.has_lost, guest.has_lost) == (True, False)
