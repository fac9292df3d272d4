from __future__ import annotations

import pytest

from gateway.auth.user_rows import KeyRow, NameRow, UserRows

ROW = NameRow("^tmp", "^(amq.topic|out)", "")
ROWS = UserRows("bob", {"/": ROW}, {("/", "amq.topic"): KeyRow("^{username}[.]{client_id}", "^a")})


@pytest.mark.parametrize(
    ("action", "name", "is_allowed"),
    [
        ("configure", "tmp-1", True),
        ("configure", "x-tmp", False),
        ("write", "out.1", True),
        ("read", "q", False),
        ("read", "", True),
    ],
)
def test_expressions_are_looked_for_in_names(action, name, is_allowed):
    assert ROWS.may(action, "/", name) == is_allowed
    assert not ROWS.may(action, "v", name)


def test_a_virtual_host_is_entered_with_permissions_in_it():
    assert ROWS.may_enter("/")
    assert not ROWS.may_enter("v")


def test_texts_stand_for_themselves_in_expressions_for_keys():
    assert ROWS.may_key("write", "/", "amq.topic", "bob.d1.x", "d1")
    assert not ROWS.may_key("write", "/", "amq.topic", "bob.d2.x", "d1")
    assert not ROWS.may_key("write", "/", "amq.topic", "bob.anything", ".*")
    assert ROWS.may_key("write", "/", "other", "anything", "d1")


def test_topics_are_routing_keys_of_amq_topic():
    assert ROWS.may_publish(b"bob/d1/x", "d1")
    assert not ROWS.may_publish(b"bob/d2/x", "d1")
    readable = UserRows("bob", {"/": NameRow("", "", "amq.topic")}, {("/", "amq.topic"): KeyRow("", "^a[.]")})
    assert readable.may_filter("read", b"a/#", "")
    assert not readable.may_filter("read", b"#", "")
    assert not readable.may_publish(b"a/b", "")


@pytest.mark.parametrize(
    ("names", "keys", "is_less"),
    [
        ({"/": ROW}, {}, False),
        ({}, {}, True),
        ({"/": ROW._replace(read="^q")}, {}, True),
        ({"/": ROW._replace(write="")}, {}, False),
        ({"/": ROW, "v": ROW}, {}, False),
        ({"/": ROW}, {("/", "e"): KeyRow("", "")}, True),
    ],
)
def test_less_to_read_is_told(names, keys, is_less):
    assert UserRows("bob", names, keys).reads_less_than(UserRows("bob", {"/": ROW}, {})) == is_less


@pytest.mark.parametrize(
    ("before", "now", "is_less"),
    [
        ({"e": "a"}, {"e": "a"}, False),
        ({"e": "a"}, {"e": "b"}, True),
        ({"e": "a"}, {}, False),
        ({"e": "a"}, {"e": "a", "f": "a"}, True),
        ({"e": "a", "f": "a"}, {"f": "a"}, False),
        ({"e": "a", "f": "a"}, {"f": "b"}, True),
    ],
)
def test_fewer_keys_to_read_are_told(before, now, is_less):
    one, other = (
        UserRows("bob", {"/": ROW}, {("/", name): KeyRow("", key) for name, key in of.items()}) for of in (now, before)
    )
    assert one.reads_less_than(other) == is_less


def test_of_long_names_a_part_is_told_as_the_log_takes_it():
    tells = ROWS.tell("write", "/", "x" * 60_000), ROWS.tell_key("write", "y" * 60_000, "d1")
    assert [text[-80:] for text in tells] == ["x" * 76 + "...'", "y" * 76 + "...'"]
    assert max(map(len, tells)) < 300
