from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from core.cache_budget import CacheBudget
from gateway.auth.backends.question import BackendError
from gateway.auth.backends.reply_rules import RULES_MAX, read_rules
from gateway.auth.rule import make_rules
from gateway.auth.rule_book import RuleBook
from gateway.settings.rules import RuleSettings

ACL = [
    {"permission": "deny", "action": "publish", "topic": "plant/${clientid}/secret"},
    {"permission": "allow", "action": "publish", "topic": "plant/${clientid}/#"},
    {"permission": "allow", "action": "subscribe", "topic": "news/${username}"},
    {"permission": "allow", "topic": "open/+"},
]


def permissions(rules, of_settings=()):
    book = RuleBook(CacheBudget())
    said = [RuleSettings.model_validate(rule) for rule in of_settings]
    book.change(make_rules(said, "auth.rules"), {}, allows=False)
    return book.make("ann", client="c1", host="192.0.2.7", door="mqtt", groups=(), rules=rules)


def test_access_list_of_emqx_says_what_its_user_may_do():
    may = permissions(read_rules(ACL, None))
    assert may.may_publish(b"plant/c1/1")
    assert not may.may_publish(b"plant/c1/secret")
    assert not may.may_publish(b"plant/c2/1")
    assert not may.may_subscribe(b"plant/c1/1")
    assert may.may_subscribe(b"news/ann")
    assert not may.may_publish(b"news/ann")
    assert may.may_publish(b"open/x")
    assert may.may_subscribe(b"open/x")
    assert not may.may_subscribe(b"#")


def test_rules_of_an_answer_are_of_our_language():
    may = permissions(read_rules(None, [{"permit": "allow", "actions": ["read"], "names": ["jobs", "%u.*"]}]))
    assert may.may_read(b"/", b"jobs")
    assert may.may_read(b"/", b"ann.1")
    assert not may.may_read(b"/", b"bob.1")
    assert not may.may_write(b"/", b"jobs")
    assert "back end" in may.explain("read", b"jobs").by


def test_rules_of_the_settings_come_first():
    denied = [{"permit": "deny", "topics": ["plant/#"]}]
    may = permissions(read_rules(ACL, None), denied)
    assert not may.may_publish(b"plant/c1/1")
    assert may.may_publish(b"open/x")
    assert may.explain("publish", b"plant/c1/1").by == "auth.rules[0]"


@pytest.mark.parametrize(
    ("acl", "rules"),
    [
        ({}, None),
        ("allow", None),
        ([1], None),
        ([{"permission": "allow"}], None),
        ([{"permission": "maybe", "topic": "a"}], None),
        ([{"topic": "a"}], None),
        ([{"permission": "allow", "action": "fly", "topic": "a"}], None),
        ([{"permission": "allow", "action": ["publish"], "topic": "a"}], None),
        ([{"permission": "allow", "topic": "a", "qos": [0]}], None),
        ([{"permission": "allow", "topic": "a", "retain": False}], None),
        ([{"permission": "allow", "topic": "eq a/#"}], None),
        ([{"permission": "allow", "topic": "a/#/b"}], None),
        ([{"permission": "allow", "topic": "a/%c"}], None),
        ([{"permission": "allow", "topic": 7}], None),
        ([{"permission": "allow", "topic": "a"}] * (RULES_MAX + 1), None),
        (None, [{"permit": "allow", "users": ["bob"]}]),
        (None, [{"permit": "allow", "names": ["re:("]}]),
        (None, [{"permit": "allow", "topics": ["a"] * 65}]),
        (None, [{"actions": ["read"]}]),
        (None, {"permit": "allow"}),
    ],
)
def test_rule_that_is_not_understood_lets_nobody_in(acl, rules):
    with pytest.raises(BackendError):
        read_rules(acl, rules)


ANY = st.recursive(
    st.none() | st.booleans() | st.text(max_size=5) | st.sampled_from(["allow", "deny", "publish", "a/#", "re:("]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["permission", "permit", "topic", "topics", "action", "names"]), inner)
    ),
    max_leaves=6,
)


@settings(max_examples=60)
@given(ANY, ANY)
def test_rubbish_is_rules_or_a_failure(acl, rules):
    try:
        read = read_rules(acl, rules)
    except BackendError:
        return
    assert all(isinstance(rule, RuleSettings) for rule in read)
