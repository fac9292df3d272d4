from __future__ import annotations

from gateway.auth import rule_book
from gateway.auth.rule_book import Account
from tests.gateway.auth.test_permissions import change, make_book, of

OPS = {"permit": "allow", "groups": ["ops"], "topics": ["a/#"]}


def test_groups_are_those_of_the_user():
    accounts = {"ann": Account(groups=("ops",)), "bob": Account()}
    book = make_book(OPS, allows=False, accounts=accounts)
    assert of(book, "ann").may_publish(b"a/1")
    assert not of(book, "bob").may_publish(b"a/1")


def test_groups_of_a_token_stand_for_those_of_a_user():
    book = make_book(OPS, allows=False)
    for groups, is_let in ((("ops",), True), ((), False), (("other",), False)):
        may = book.make("cy", client="", host="", door="mqtt", groups=groups)
        assert may.may_publish(b"a/1") is is_let
        assert not may.may_publish(b"b")


def test_only_who_may_read_less_has_lost_something():
    accounts = {"ann": Account(), "bob": Account()}
    book = make_book(accounts=accounts)
    ann, bob = of(book, "ann"), of(book, "bob")
    change(book, {"permit": "deny", "users": ["bob"], "topics": ["a/#"]}, accounts=accounts)
    ann.find_version()
    bob.find_version()
    assert not ann.has_lost
    assert bob.has_lost


def test_with_another_default_all_have_lost():
    book = make_book()
    may = of(book)
    change(book, allows=False)
    may.find_version()
    assert may.has_lost


def test_who_asks_after_several_changes_has_lost_in_any_case():
    book = make_book()
    may = of(book)
    for _ in range(2):
        change(book, {"permit": "allow", "topics": ["a"]})
    may.find_version()
    assert may.has_lost


def test_who_comes_in_afterwards_has_lost_nothing():
    book = make_book()
    change(book, allows=False)
    assert not of(book).has_lost


def test_clients_that_were_let_in_alike_are_told_apart_by_rules_that_come_later():
    accounts = {"ann": Account()}
    book = make_book(accounts=accounts)
    one, other = (of(book, "ann", client=client) for client in ("c1", "c2"))
    change(book, {"permit": "deny", "clients": ["c2"], "topics": ["a/#"]}, accounts=accounts)
    assert one.may_publish(b"a/1")
    assert not other.may_publish(b"a/1")
    assert of(book, "ann", client="c1").may_publish(b"a/1")
    assert not of(book, "ann", client="c2").may_publish(b"a/1")


def test_rules_of_users_and_groups_are_told_apart_where_clients_are_not(monkeypatch):
    monkeypatch.setattr(rule_book, "VIEWS_MAX", 2)
    accounts = {"ann": Account(groups=("ops",)), "bob": Account(), "cy": Account()}
    book = make_book(OPS, {"permit": "allow", "users": ["cy"], "topics": ["c/#"]}, allows=False, accounts=accounts)
    for _ in range(2):
        for user, topic in (("ann", b"a/1"), ("bob", b""), ("cy", b"c/1")):
            may = of(book, user)
            assert [one for one in (b"a/1", b"c/1") if may.may_publish(one)] == [one for one in (topic,) if one]
