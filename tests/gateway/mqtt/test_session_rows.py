"""What was written down is read again, also by a later version."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, strategies as st

from gateway.mqtt.eras import Era
from gateway.mqtt.packets import Will
from gateway.mqtt.properties import NO_PROPERTIES
from gateway.mqtt.session import NEVER
from gateway.mqtt.session_rows import (
    EndedRow,
    SessionRow,
    StoredWill,
    SubscriptionRow,
    ended_key,
    pack_ended,
    pack_session,
    pack_subscription,
    pack_will,
    parse_ended,
    parse_session,
    parse_subscription,
    parse_will,
    subscription_key,
)

NUMBERS = st.integers(-1, 2**40)


@given(since_ms=st.integers(0, 2**50), owner=st.binary(max_size=20), expiry_s=st.integers(0, NEVER))
def test_session(since_ms, owner, expiry_s):
    assert parse_session(pack_session(since_ms, owner, expiry_s)) == SessionRow(since_ms, owner, expiry_s)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (struct.pack(">q", 5), SessionRow(5, None, NEVER)),
        (struct.pack(">qB", 5, 1), SessionRow(5, b"", NEVER)),
        (struct.pack(">qB", 5, 1) + b"ann", SessionRow(5, b"ann", NEVER)),
    ],
    ids=["without an owner", "of nobody", "without an expiry"],
)
def test_session_of_a_version_before(row, said):
    assert parse_session(row) == said


@given(
    qos=st.integers(0, 2),
    slots=st.tuples(NUMBERS, NUMBERS, NUMBERS),
    options=st.integers(0, 255),
    number=NUMBERS,
    first=NUMBERS,
    eras=st.lists(st.builds(Era, NUMBERS, NUMBERS, st.integers(0, 255)), max_size=8),
)
def test_subscription(qos, slots, options, number, first, eras):
    row = SubscriptionRow(qos, *slots, options, max(number, 0) & 0xFFFFFFF, first, tuple(eras))
    assert parse_subscription(pack_subscription(row)) == row


def test_subscription_of_before_mqtt_5():
    assert parse_subscription(struct.pack(">Bqqq", 1, 7, 8, 9)) == SubscriptionRow(1, 7, 8, 9, 0, 0, -1)


def test_subscription_of_before_it_was_said_where_it_began():
    assert parse_subscription(struct.pack(">BqqqBI", 1, 7, 8, 9, 4, 5)) == SubscriptionRow(1, 7, 8, 9, 4, 5, -1)


@given(topic_filter=st.binary(max_size=40), owed=st.sets(st.integers(0, 60)), slot=NUMBERS)
def test_subscription_that_ended(topic_filter, owed, slot):
    was = SubscriptionRow(2, slot, slot + 1, slot + 2, 3, 4, 5)
    assert parse_ended(pack_ended(topic_filter, was, [*owed])) == EndedRow(topic_filter, was, sorted(owed))


def test_messages_that_follow_each_other_take_no_more_room_than_one():
    was = SubscriptionRow(1, 7, 8, 9, 0, 0, 0)
    assert len(pack_ended(b"t", was, [*range(1_000)])) == len(pack_ended(b"t", was, [5]))


def test_key_of_a_subscription_that_ended_begins_with_its_client():
    assert ended_key(b"client", 258) == b"client\x00\0\0\0\0\0\0\1\2"


def test_key_of_a_subscription_begins_with_its_client():
    assert subscription_key(b"client", b"a/#") == b"client\x00a/#"


@given(
    topic=st.binary(max_size=20),
    body=st.binary(max_size=20),
    user=st.binary(max_size=9),
    host=st.binary(max_size=9),
    qos=st.integers(0, 2),
    is_retained=st.booleans(),
    due_ms=st.integers(0, 2**50),
    login=st.binary(max_size=20),
)
def test_will(topic, body, user, host, qos, is_retained, due_ms, login):
    will = Will(topic, body, qos, is_retained, NO_PROPERTIES)
    found = parse_will(b"c", pack_will(StoredWill(b"c", user, host, will, due_ms, login=login)))
    assert (found.client_id, found.user, found.host, found.will, found.due_ms) == (b"c", user, host, will, due_ms)
    assert found.login == login
