from __future__ import annotations

import pytest

from core.message import StoredBatch
from core.properties import encode_origin
from gateway.mqtt.assignment import HASH_CLIENT_ID, HASH_TOPIC, PENDING_MAX, STALLED_MS, Assignment, find_key


def stored(topic, client_id):
    batch = StoredBatch(1)
    origin = encode_origin(b"mqtt", client_id, b"u")
    batch.buf = topic + origin
    batch.topic_end[0] = batch.properties_start[0] = len(topic)
    batch.properties_end[0] = len(topic) + len(origin)
    batch.count = 1
    return batch


@pytest.mark.parametrize(
    ("strategy", "same", "other"),
    [(HASH_TOPIC, (b"t", b"d"), (b"u", b"c")), (HASH_CLIENT_ID, (b"u", b"c"), (b"t", b"d"))],
)
def test_key_is_that_of_the_topic_or_of_the_publisher(strategy, same, other):
    key = find_key(stored(b"t", b"c"), 0, strategy)
    assert find_key(stored(*same), 0, strategy) == key
    assert find_key(stored(*other), 0, strategy) != key


def test_message_without_a_publisher_has_a_key_too():
    assert find_key(stored(b"t", b""), 0, HASH_CLIENT_ID) == 0


def test_what_waits_for_a_member_comes_in_the_order_of_the_queue():
    waiting = Assignment()
    for member, offset in (("a", 7), ("b", 8), ("a", 3), ("a", 9)):
        waiting.add(member, offset, 0)
    assert waiting.room == PENDING_MAX - 4
    assert list(waiting.peek("a", 2)) == [3, 7]
    waiting.drop_first("a", 2, 0)
    assert list(waiting.peek("a", 9)) == [9]
    assert list(waiting.peek("c", 9)) == list(waiting.peek("a", 0)) == []
    assert waiting.take("a") == [9]
    assert waiting.take("a") == []
    assert waiting.take_all() == [8]
    assert waiting.count == 0


def test_member_is_stalled_that_takes_nothing_of_what_waits():
    waiting = Assignment()
    assert not waiting.is_stalled("a", STALLED_MS)
    waiting.add("a", 1, 100)
    waiting.add("a", 2, 5_000)
    assert not waiting.is_stalled("a", 99 + STALLED_MS)
    assert waiting.is_stalled("a", 100 + STALLED_MS)
    waiting.drop_first("a", 1, 200)
    assert not waiting.is_stalled("a", 199 + STALLED_MS)
    assert waiting.is_stalled("a", 200 + STALLED_MS)
    waiting.drop_first("a", 1, 300)
    assert not waiting.is_stalled("a", 10**6)


def test_what_is_a_members_that_is_passed_by_goes_to_the_others_and_nothing_else_moves():
    waiting, members = Assignment(), ["a", "b", "c"]
    before = [waiting.choose(members, key) for key in range(90)]
    waiting.add("b", 7, 0)
    assert waiting.pass_by("b") == [7]
    meanwhile = [waiting.choose(members, key) for key in range(90)]
    assert {old for old, new in zip(before, meanwhile, strict=True) if old != new} == {"b"}
    assert {new for old, new in zip(before, meanwhile, strict=True) if old == "b"} == {"a", "c"}
    waiting.take_back("b")
    assert [waiting.choose(members, key) for key in range(90)] == before
    for member in members:
        waiting.pass_by(member)
    assert waiting.choose(members, 1) == "b"
