from __future__ import annotations

from gateway.auth.known_users import KnownUsers
from gateway.auth.rule_book import Account
from gateway.auth.users import User, hash_for_scram
from tests.support.logins import quick_hash


def make(name, kept=""):
    return User(name, Account(), kept)


def test_a_user_of_the_settings_is_as_they_say():
    ours, theirs = make("ann", quick_hash("a")), make("ann", quick_hash("b"))
    known = KnownUsers({"ann": ours})
    known.follow({"ann": theirs, "bob": theirs})
    assert known.by_name == {"ann": ours, "bob": theirs}
    assert known.change("ann", None) is ours
    assert known.by_name["ann"] is ours


def test_users_are_the_same_followed_one_by_one_and_all_at_once():
    stored = {name: make(name, hash_for_scram("x", 4_096)) for name in ("ann", "bob", "eve")}
    stored["eve"].is_disabled = True
    one_by_one, together = KnownUsers({}), KnownUsers({})
    by_name = one_by_one.by_name
    for name, user in stored.items():
        one_by_one.change(name, user)
    together.follow(stored)
    for known in (one_by_one, together):
        assert list(known.by_name) == ["ann", "bob", "eve"]
        assert (known.by_name["ann"], known.by_name["eve"].kept) == (stored["ann"], "")
        assert known.has_scram
        assert known.change("ann", None) is None
        assert known.has_scram
        known.follow({"eve": stored["eve"]})
        assert not known.has_scram
    assert one_by_one.by_name is by_name
