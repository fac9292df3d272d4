from __future__ import annotations

import pytest

from tests.gateway.auth.test_permissions import make_book, of

SECRET = {"permit": "deny", "topics": ["secret/#"]}


@pytest.mark.parametrize("topic_filter", [b"#", b"+/a", b"secret/#", b"secret", b"+", b"secret/a"])
def test_a_filter_that_matches_something_denied_is_denied(topic_filter):
    assert not of(make_book(SECRET)).may_subscribe(topic_filter)


@pytest.mark.parametrize("topic_filter", [b"open/#", b"+/a/../b".replace(b"+", b"x"), b"$SYS/#", b"secrets"])
def test_a_filter_that_matches_nothing_denied_is_allowed(topic_filter):
    assert of(make_book(SECRET)).may_subscribe(topic_filter)


def test_the_first_rule_counts_for_each_topic_of_a_filter():
    may = of(make_book({"permit": "allow", "topics": ["secret/open"]}, SECRET))
    assert may.may_subscribe(b"secret/open")
    assert not may.may_subscribe(b"secret/+")
    assert may.may_publish(b"secret/open")
    assert not may.may_publish(b"secret/other")


def test_what_no_rule_is_for_goes_by_the_default():
    may = of(make_book({"permit": "allow", "topics": ["plant/#"]}, allows=False))
    assert may.may_subscribe(b"plant/+/temp")
    assert not may.may_subscribe(b"+/temp")
    assert not may.may_subscribe(b"#")
    assert not may.may_publish(b"other")
    assert not may.may_read(b"/", b"q")
    assert may.may_enter(b"/")


def test_everything_is_read_by_who_is_denied_nothing():
    assert of(make_book({"permit": "deny", "actions": ["publish"]})).may_read_everything()
    assert not of(make_book(SECRET)).may_read_everything()
    assert not of(make_book({"permit": "deny", "names": ["q"]})).may_read_everything()
    assert not of(make_book({"permit": "deny", "names": ["q"], "vhosts": ["v"]})).may_read_everything()
    assert not of(make_book({"permit": "allow", "topics": ["#"]}, allows=False)).may_read_everything()
    assert not of(make_book({"permit": "allow", "names": ["*"]}, allows=False)).may_read_everything()
    assert of(make_book({"permit": "allow"}, allows=False)).may_read_everything()
    assert of(make_book({"permit": "deny", "users": ["bob"]}, {"permit": "allow"}, allows=False)).may_read_everything()


def test_a_virtual_host_is_entered_by_who_may_do_something_there():
    rules = ({"permit": "allow", "vhosts": ["v"], "actions": ["read"], "names": ["q"]},)
    may = of(make_book(*rules, allows=False), door="amqp")
    assert may.may_enter(b"v")
    assert not may.may_enter(b"w")
    assert not of(make_book({"permit": "deny", "vhosts": ["v"]})).may_enter(b"v")
    assert of(make_book({"permit": "deny", "vhosts": ["v"], "names": ["q"]})).may_enter(b"v")


def test_messages_go_to_all_topics_of_a_filter_or_to_none():
    may = of(make_book(SECRET))
    assert may.may_publish_matching(b"open/#")
    assert not may.may_publish_matching(b"#")


def test_bindings_also_get_what_begins_with_a_dollar():
    may = of(make_book({"permit": "deny", "topics": ["$SYS/#"]}))
    assert may.may_subscribe(b"#")
    assert not may.may_bind_topic(b"#")
    assert not may.may_bind_topic(b"#/x")
    assert may.may_bind_topic(b"a/#/x")
