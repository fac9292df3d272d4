from __future__ import annotations

import pytest

from core.message import StoredBatch
from core.properties import encode_origin
from gateway.mqtt.assignment import HASH_CLIENT_ID, HASH_TOPIC, PENDING_MAX, Assignment, find_key


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
        waiting.add(member, offset)
    assert waiting.room == PENDING_MAX - 4
    assert list(waiting.peek("a", 2)) == [3, 7]
    waiting.drop_first("a", 2)
    assert list(waiting.peek("a", 9)) == [9]
    assert list(waiting.peek("c", 9)) == list(waiting.peek("a", 0)) == []
    assert waiting.take("a") == [9]
    assert waiting.take("a") == []
    assert waiting.take_all() == [8]
    assert waiting.count == 0
