from __future__ import annotations

import pytest
from pydantic import ValidationError

from core.cache_budget import CacheBudget
from gateway.auth.permissions import ALL, Permissions
from gateway.auth.rule import make_rules
from gateway.auth.rule_book import Account, RuleBook
from gateway.auth.user_rows import KeyRow, NameRow, UserRows
from gateway.settings.rules import RuleSettings


def test_everything_is_allowed_by_default():
    assert ALL.may_publish(b"a/b")
    assert ALL.may_subscribe(b"#")
    assert ALL.may_configure(b"/", b"q")
    assert ALL.may_enter(b"/")
    assert ALL.may_write(b"/", b"amq.topic")
    assert ALL.may_bind(b"/", b"q")
    assert ALL.may_read(b"/", b"q")


def test_each_right_can_be_taken_alone():
    assert not Permissions(publish=False).may_publish(b"a")
    assert not Permissions(subscribe=False).may_subscribe(b"a")
    assert not Permissions(configure=False).may_configure(b"/", b"q")
    assert Permissions(publish=False).may_subscribe(b"a")


def test_writing_goes_with_publishing_reading_with_subscribing_and_binding_with_configuring():
    assert not Permissions(publish=False).may_write(b"/", b"e")
    assert not Permissions(subscribe=False).may_read(b"/", b"q")
    assert not Permissions(configure=False).may_bind(b"/", b"q")
    assert Permissions(publish=False, subscribe=False).may_bind(b"/", b"q")


def make_book(*rules, allows=True, accounts=None):
    book = RuleBook(CacheBudget())
    change(book, *rules, allows=allows, accounts=accounts)
    return book


def change(book, *rules, allows=True, accounts=None):
    said = [RuleSettings.model_validate(rule) for rule in rules]
    made = make_rules(said, "auth.rules")
    book.change(made, accounts or {}, allows=allows)
    return made


def of(book, user="", client="", host="127.0.0.1", door="mqtt"):
    return book.make(user, client=client, host=host, door=door)


def test_what_is_no_topic_is_denied_with_rules_too():
    may = of(make_book({"permit": "allow"}))
    assert not may.may_publish(b"")
    assert not may.may_subscribe(b"")


def test_answers_are_remembered_and_forgotten_when_rules_change():
    book = make_book({"permit": "deny", "topics": ["secret/#"]})
    may = of(book)
    version = may.find_version()
    for _ in range(2):
        assert not may.may_publish(b"secret/a")
        assert may.may_publish(b"open/a")
        assert not may.may_subscribe(b"secret/+")
    assert book.caches.bytes_used()["rights"] > 0
    change(book, {"permit": "deny", "topics": ["open/#"]})
    assert may.find_version() != version
    assert may.may_publish(b"secret/a")
    assert not may.may_publish(b"open/a")


def test_answers_that_are_remembered_are_bounded_in_bytes():
    book = make_book({"permit": "deny", "topics": ["secret/#"]})
    book.caches.limit(1 << 20)
    may = of(book)
    for number in range(20_000):
        assert may.may_publish(b"%0100d" % number)
    assert book.caches.bytes_used()["rights"] < 1 << 20


def test_a_user_of_the_settings_may_not_do_more_than_the_settings_say_whatever_the_rules():
    book = make_book({"permit": "allow"}, allows=False, accounts={"bob": Account(publish=False)})
    may = of(book, "bob")
    assert not may.may_publish(b"a")
    assert not may.may_write(b"/", b"e")
    assert may.may_subscribe(b"a")
    assert may.explain("publish", b"a") == (False, "auth.users.bob.may_publish")
    assert may.explain("publish to matching", b"a/#") == (False, "auth.users.bob.may_publish")


def test_somebody_who_was_a_user_may_do_nothing():
    book = make_book(accounts={"bob": Account()})
    may = of(book, "bob")
    assert may.may_publish(b"a")
    change(book)
    assert not may.may_publish(b"a")
    assert not may.may_read(b"/", b"q")
    assert may.has_lost


def test_the_rule_that_decides_is_told():
    rules = ({"permit": "deny", "topics": ["a/b"]}, {"permit": "allow", "actions": ["publish"], "topics": ["a/#"]})
    may = of(make_book(*rules, allows=False))
    assert may.explain("publish", b"a/b") == (False, "auth.rules[0]")
    assert may.explain("publish", b"a/c") == (True, "auth.rules[1]")
    assert may.explain("subscribe", b"a/c") == (False, "auth.default")
    assert may.explain("read", b"q") == (False, "auth.default")
    assert ALL.explain("publish", b"a") == (True, "no rules")


ROWS = UserRows(
    "ann",
    {"/": NameRow("^$", "^(plant|amq.topic)", "^q")},
    {("/", "amq.topic"): KeyRow("^{username}[.]", "^open[.]")},
)


@pytest.mark.parametrize(
    ("question", "is_allowed", "by"),
    [
        (("read", b"q1"), True, "read '^q' in vhost '/' matches 'q1'"),
        (("write", b"other"), False, "write '^(plant|amq.topic)' in vhost '/' does not match 'other'"),
        (("bind", b"q1"), False, "write '^(plant|amq.topic)' in vhost '/' does not match 'q1'"),
        (("configure", b"q", b"v"), False, "none in vhost 'v'"),
        (("publish", b"ann/1"), True, "write '^{username}[.]' for keys of 'amq.topic' matches 'ann.1'"),
        (("publish", b"bob/1"), False, "write '^{username}[.]' for keys of 'amq.topic' does not match 'bob.1'"),
        (("subscribe", b"open/+"), False, "read '^q' in vhost '/' does not match 'amq.topic'"),
    ],
)
def test_the_expression_of_the_permissions_that_decides_is_told(question, is_allowed, by):
    book = make_book()
    book.change([], {"ann": Account()}, {"ann": ROWS}, allows=True)
    may = of(book, "ann")
    assert may.explain(*question) == (is_allowed, f"permissions of the user, {by}")
    assert may.find_decider(*question) == f"permissions of the user, {by}"


def test_permissions_decide_who_enters_and_reads_all_by_their_being_there():
    book = make_book()
    book.change([], {"ann": Account()}, {"ann": ROWS}, allows=True)
    may = of(book, "ann")
    assert may.explain("enter", b"", b"v") == (False, "permissions of the user")
    assert may.explain("everything", b"") == (False, "permissions of the user")


def test_rules_for_names_of_a_kind_are_for_no_others():
    may = of(
        make_book(
            {"permit": "allow", "kinds": ["topic"], "names": ["orders"], "actions": ["read"]},
            {"permit": "allow", "kinds": ["group"], "names": ["workers"]},
            {"permit": "allow", "names": ["jobs"]},
            allows=False,
        )
    )
    assert may.may_read(b"/", b"orders", "topic")
    assert not may.may_read(b"/", b"orders", "group")
    assert not may.may_read(b"/", b"orders")  # a queue
    assert not may.may_write(b"/", b"orders", "topic")
    assert may.may_configure(b"/", b"workers", "group")
    assert not may.may_configure(b"/", b"workers", "topic")
    for kind in ("topic", "group", "cluster", ""):
        assert may.may_read(b"/", b"jobs", kind)
    assert not may.may_publish(b"orders")
    assert may.explain("read group", b"orders").by == "auth.default"
    assert may.explain("read topic", b"orders").by == "auth.rules[0]"


def test_groups_are_asked_for_only_where_a_rule_tells_them_from_topics():
    said = {"permit": "allow", "names": ["orders"], "actions": ["read"]}
    assert of(make_book(said, allows=False)).may_consume(b"/", b"g")
    strict = make_book(said, {"permit": "allow", "kinds": ["group"], "names": ["g"]}, allows=False)
    assert of(strict).may_consume(b"/", b"g")
    assert of(strict).may_consume(b"/", b"orders")  # of a rule for names of all kinds
    assert not of(strict).may_consume(b"/", b"other")


def test_a_rule_of_one_kind_says_nothing_of_everything_but_that_it_is_not_allowed():
    assert of(make_book({"permit": "allow", "kinds": ["topic"]}, allows=True)).may_read_everything()
    assert not of(make_book({"permit": "allow", "kinds": ["topic"]}, allows=False)).may_read_everything()
    denied = of(make_book({"permit": "deny", "kinds": ["group"]}, allows=True))
    assert not denied.may_read_everything()
    assert denied.may_enter(b"/")
    assert denied.may_publish(b"a")


def test_what_is_lost_of_a_kind_of_names_is_noticed():
    book = make_book({"permit": "allow", "kinds": ["group"], "actions": ["read"]}, allows=False)
    may = of(book)
    change(book, allows=False)
    may.find_version()
    assert may.has_lost


@pytest.mark.parametrize(
    "rule", [{"kinds": ["queue"]}, {"kinds": ["topic"], "topics": ["a"]}, {"kinds": ["topic"], "actions": ["publish"]}]
)
def test_kinds_are_of_names(rule):
    with pytest.raises(ValidationError):
        RuleSettings.model_validate({"permit": "allow", **rule})
