from __future__ import annotations

import json

import pytest
from hypothesis import given, settings, strategies as st

from gateway.auth.backends.http_client import HttpAnswer
from gateway.auth.backends.http_replies import read_reply
from gateway.auth.backends.question import NO, NOT_MINE, BackendError, Reply, Verdict
from gateway.auth.tokens import NEVER_MS


def read(body, status=200):
    text = json.dumps(body) if isinstance(body, dict) else body
    return read_reply(HttpAnswer(status, {}, text if isinstance(text, bytes) else text.encode()))


def yes(*groups, ends_at_ms=NEVER_MS):
    return Reply(Verdict.YES, groups, ends_at_ms)


@pytest.mark.parametrize(
    ("body", "reply"),
    [
        ("allow", yes()),
        ("allow\n", yes()),
        ("Allow administrator, management", yes("administrator", "management")),
        ("deny", NO),
        ("deny too late", NO),
        ("ignore", NOT_MINE),
        ({"result": "allow"}, yes()),
        ({"result": "allow", "groups": ["a", "b"], "more": 1}, yes("a", "b")),
        ({"result": "allow", "groups": "a b"}, yes("a", "b")),
        ({"result": "allow", "is_superuser": True}, yes("superuser")),
        ({"result": "allow", "is_superuser": False, "expire_at": 17.5}, yes(ends_at_ms=17_500)),
        ({"result": "deny", "groups": ["a"]}, NO),
        ({"result": "ignore"}, NOT_MINE),
    ],
)
def test_answers_of_servers_for_emqx_and_rabbitmq_are_understood(body, reply):
    assert read(body) == reply


def test_answer_may_say_what_its_user_may_do():
    reply = read({"result": "allow", "acl": [{"permission": "allow", "action": "publish", "topic": "a/#"}]})
    assert [(rule.permit, rule.actions, rule.topics) for rule in reply.rules] == [("allow", ("publish",), ("a/#",))]
    with pytest.raises(BackendError):
        read({"result": "allow", "acl": "all"})


def test_status_alone_is_an_answer_where_it_says_so():
    assert read("", 204) == yes()
    assert read("allow", 401) == NO
    assert read("allow", 403) == NO


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("", 200),
        ("  ", 200),
        ("allowed", 200),
        ("yes", 200),
        ("<html>allow</html>", 200),
        (b"allow \xff", 200),
        ("allow \x01", 200),
        ("{", 200),
        ("{" * 100_000, 200),
        ({}, 200),
        ({"result": True}, 200),
        ({"result": ["allow"]}, 200),
        ({"result": "allow", "groups": 1}, 200),
        ({"result": "allow", "groups": [["a"]]}, 200),
        ({"result": "allow", "groups": ["g"] * 300}, 200),
        ({"result": "allow", "expire_at": "soon"}, 200),
        ({"result": "allow", "expire_at": True}, 200),
        ({"result": "allow", "expire_at": 1e300}, 200),
        ('{"result": "allow", "expire_at": NaN}', 200),
        ("allow", 201),
        ("allow", 302),
        ("allow", 404),
        ("allow", 500),
    ],
)
def test_everything_else_lets_nobody_in(body, status):
    with pytest.raises(BackendError):
        read(body, status)


WORDS = st.none() | st.booleans() | st.floats() | st.text(max_size=9)
SAID = WORDS | st.lists(WORDS, max_size=3) | st.just({"a": []})


@settings(max_examples=60)
@given(
    st.binary(max_size=40)
    | st.builds(lambda g, e: json.dumps({"result": "allow", "groups": g, "expire_at": e}).encode(), SAID, SAID),
    st.sampled_from([200, 204, 401, 500]),
)
def test_rubbish_is_a_reply_or_a_failure(body, status):
    try:
        reply = read(body, status)
    except BackendError:
        return
    assert all(group.isprintable() for group in reply.groups)
    assert isinstance(reply.ends_at_ms, int)
