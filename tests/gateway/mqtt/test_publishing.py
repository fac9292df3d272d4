from __future__ import annotations

import pytest

from core.message import StoredBatch
from core.properties import decode_properties
from gateway.mqtt.errors import MalformedPacketError
from tests.support import mqtt


def stored(world):
    """Return all messages of the parent topic as (topic, body, properties)."""
    batch = StoredBatch(64)
    world.broker.read(world.broker.find_queue(b"LMQ_PARENT/0"), 0, batch, 64, 1 << 20)
    found = [
        (
            bytes(batch.buf[batch.topic_start[i] : batch.topic_end[i]]),
            bytes(batch.buf[batch.body_start[i] : batch.body_end[i]]),
            decode_properties(batch.buf[batch.properties_start[i] : batch.properties_end[i]]),
        )
        for i in range(batch.count)
    ]
    batch.clear()
    return found


@pytest.mark.here(reason="reads the log in one go")
def test_record_says_who_published_it_and_by_which_door(world, monkeypatch):
    world.client(b"dev-7").send(mqtt.publish(b"a/b", b"x"))
    ((topic, body, properties),) = stored(world)
    assert (topic, body) == (b"a/b", b"x")
    assert properties[b"LMQ_TOPIC"] == b"a/b"
    assert properties[b"LMQ_PROTOCOL"] == b"mqtt"
    assert properties[b"LMQ_CLIENT"] == b"dev-7"
    assert b"LMQ_USER" not in properties


def test_will_is_stored_in_the_name_of_its_client(world):
    world.client(b"dev-7", will=(b"w", b"gone", 0, False)).vanish()
    ((topic, body, properties),) = stored(world)
    assert (topic, body, properties[b"LMQ_CLIENT"]) == (b"w", b"gone", b"dev-7")


def test_messages_before_a_malformed_topic_are_published_and_those_after_it_are_not(world):
    peer = world.client(b"p", (b"#", 0))
    other = world.client(b"s", (b"#", 0))
    peer.send(*[mqtt.publish(topic, b"x") for topic in (b"a", b"b", b"a", b"c/#", b"a", b"d")])
    assert [d.topic for d in other.take_deliveries()] == [b"a", b"b", b"a"]
    assert world.counts.messages_in == 3
    assert world.counts.bytes_in == 3


@pytest.mark.here(reason="reads the log in one go")
def test_run_is_published_by_distinct_topics(world):
    peer = world.client(b"p")
    peer.send(*[mqtt.publish(b"t/%d" % (i % 4), b"%d" % i) for i in range(40)])
    assert len(stored(world)) == 40
    batch = world.door.runs.take().batch  # the run was given back, and the next one is decoded where it lay
    assert len(batch.topics) == 4


def test_filter_that_is_bound_between_two_messages_of_a_topic_gets_the_second(world):
    publisher = world.client(b"p")
    publisher.send(mqtt.publish(b"a/b", b"1"))
    first = world.client(b"s1", (b"a/+", 0))
    publisher.send(mqtt.publish(b"a/b", b"2"))
    second = world.client(b"s2", (b"a/b", 0))
    publisher.send(mqtt.publish(b"a/b", b"3"))
    first.send(mqtt.unsubscribe(7, b"a/+"))
    publisher.send(mqtt.publish(b"a/b", b"4"))
    assert first.bodies() == [b"2", b"3"]
    assert second.bodies() == [b"3", b"4"]


def test_malformed_topic_is_told_from_one_that_was_checked_before(world):
    publishing = world.door.publishing
    publishing._check(b"a")
    assert publishing._checked.get(b"a")
    with pytest.raises(MalformedPacketError):
        publishing._check(b"a/+")


def test_topics_that_were_known_and_those_that_were_not_are_counted(world):
    peer = world.client(b"p")
    caches = world.broker.caches

    def counts(name):
        return caches.hits[name].count, caches.made[name]

    for _ in range(3):
        peer.send(*[mqtt.publish(b"t/%d" % (i % 4), b"x") for i in range(40)])
    assert counts("checked_topics") == (8, 4)
    assert counts("routes") == (8, 4)
