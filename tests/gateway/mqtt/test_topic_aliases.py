"""Topic aliases that the gateway gives: to which topics, how many, and what clients get."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from gateway.mqtt.topic_aliases import ALIAS_BYTES_MAX, ALIAS_COUNT_MAX, COUNTED_MAX, PERIOD, TopicAliases
from tests.support.mqtt import connect_5, puback, publish_5, subscribe_5
from tests.support.mqtt_5 import P, encoded, enter, got

OFTEN = b"devices/1/temperature"


def test_topic_that_comes_again_is_given_an_alias():
    aliases = TopicAliases(2)
    assert [aliases.find(OFTEN) for _ in range(4)] == [0, -1, 1, 1]
    assert [aliases.find(b"another/topic") for _ in range(3)] == [0, -2, 2]


def test_short_topics_are_given_none():
    aliases = TopicAliases(2)
    assert [aliases.find(b"a/b") for _ in range(9)] == [0] * 9


def test_alias_passes_on_to_a_topic_that_comes_much_more_often():
    aliases = TopicAliases(1)
    assert [aliases.find(OFTEN) for _ in range(3)] == [0, -1, 1]
    found = [aliases.find(b"came/later") for _ in range(16)]
    assert found == [0] * 7 + [-1] + [1] * 8
    assert aliases.find(OFTEN) == 0


def test_what_came_long_ago_counts_no_more():
    aliases = TopicAliases(1)
    for _ in range(PERIOD):
        aliases.find(OFTEN)
    found = [aliases.find(b"came/later") for _ in range(3 * PERIOD)]
    assert found[-1] == 1


def test_no_more_aliases_than_the_client_takes_or_the_gateway_gives():
    assert TopicAliases(1).count_max == 1
    aliases = TopicAliases(65_535)
    for i in range(1_000):
        aliases.find(b"topic/%d" % i)
        assert -ALIAS_COUNT_MAX <= aliases.find(b"topic/%d" % i) <= ALIAS_COUNT_MAX


def test_long_topics_have_aliases_as_far_as_their_bytes_go():
    aliases = TopicAliases(10)
    long = [bytes([0x61 + i]) * (ALIAS_BYTES_MAX // 2) for i in range(3)]
    assert [aliases.find(topic) for topic in long for _ in range(2)] == [0, -1, 0, -2, 0, 0]
    assert aliases.find(b"x" * (ALIAS_BYTES_MAX + 1)) == 0


@given(st.lists(st.integers(0, 20) | st.integers(0, 4 * COUNTED_MAX), max_size=400), st.integers(1, 70))
def test_client_that_goes_by_what_it_is_told_knows_each_topic(numbers, count_max):
    aliases = TopicAliases(count_max)
    known = {}
    for number in numbers:
        topic = b"topic/number/%d" % number
        alias = aliases.find(topic)
        assert abs(alias) <= count_max
        if alias < 0:
            known[-alias] = topic
        elif alias > 0:
            assert known[alias] == topic


# At the door


def seen(messages):
    """Return topics as a client knows them that goes by aliases, and what stood in the packets."""
    known = {}
    topics = []
    for one in messages:
        alias = one.properties.number(P.TOPIC_ALIAS, 0)
        if one.topic and alias:
            known[alias] = one.topic
        topics.append(one.topic or known[alias])
    return topics, [one.topic for one in messages]


def test_client_that_takes_aliases_is_sent_topics_once(world):  # MQTT-3.1.2-26
    subscriber = enter(world, b"s", (P.TOPIC_ALIAS_MAX, 5), filters=[(b"devices/#", 1)])
    publisher = enter(world, b"p")
    items = encoded((P.USER, (b"k", b"v")), (P.MESSAGE_EXPIRY, 60))
    for i in range(3):
        publisher.send(
            publish_5(OFTEN, b"%d" % i), publish_5(b"devices/2/humidity", b"h%d" % i, items, qos=1, packet_id=1)
        )
    messages = got(subscriber)
    topics, sent = seen(messages)
    assert topics == [OFTEN, b"devices/2/humidity"] * 3
    assert sent == [OFTEN, b"devices/2/humidity"] * 2 + [b"", b""]
    assert [one.body for one in messages] == [b"0", b"h0", b"1", b"h1", b"2", b"h2"]
    assert [one.properties.users for one in messages[1::2]] == [((b"k", b"v"),)] * 3
    assert [one.properties.number(P.MESSAGE_EXPIRY, 0) for one in messages[1::2]] == [60] * 3


def test_client_that_takes_none_is_given_none(world):  # MQTT-3.1.2-27
    subscriber = enter(world, b"s", filters=[(b"devices/#", 0)])
    none = enter(world, b"n", (P.TOPIC_ALIAS_MAX, 0), filters=[(b"devices/#", 0)])
    enter(world, b"p").send(*[publish_5(OFTEN, b"") for _ in range(4)])
    for one in (subscriber, none):
        assert [(m.topic, m.properties.numbers) for m in got(one)] == [(OFTEN, {})] * 4


def test_aliases_end_with_the_connection(world):
    options = (P.TOPIC_ALIAS_MAX, 5), (P.SESSION_EXPIRY, 100)
    subscriber = enter(world, b"s", *options, filters=[(b"devices/#", 1)])
    publisher = enter(world, b"p")
    publisher.send(*[publish_5(OFTEN, b"x", qos=1, packet_id=i + 1) for i in range(3)])
    messages = got(subscriber)
    assert [one.topic for one in messages] == [OFTEN, OFTEN, b""]
    subscriber.send(*[puback(one.packet_id) for one in messages]).vanish()
    again = enter(world, b"s", *options, clean=False)
    publisher.send(publish_5(OFTEN, b"y"))
    assert [one.topic for one in got(again)] == [OFTEN]
    older = enter(world, b"s", (P.SESSION_EXPIRY, 100), clean=False)
    publisher.send(*[publish_5(OFTEN, b"z") for _ in range(3)])
    assert {one.topic for one in got(older)} == {OFTEN}


def test_messages_sent_again_have_their_topics(world):
    options = (P.TOPIC_ALIAS_MAX, 5), (P.SESSION_EXPIRY, 100)
    subscriber = enter(world, b"s", *options, filters=[(b"devices/#", 1)])
    enter(world, b"p").send(*[publish_5(OFTEN, b"%d" % i, qos=1, packet_id=i + 1) for i in range(4)])
    subscriber.vanish()
    again = world.dial()
    again.send(connect_5(b"s", clean=False, properties=encoded(*options)))
    messages = got(again)
    topics, _ = seen(messages)
    assert topics == [OFTEN] * 4
    assert [one.body for one in messages] == [b"0", b"1", b"2", b"3"]
    again.send(*[puback(one.packet_id) for one in messages])


def test_shared_subscription_takes_aliases_too(world):
    subscriber = enter(world, b"s", (P.TOPIC_ALIAS_MAX, 5), filters=[(b"$share/g/devices/#", 1)])
    enter(world, b"p").send(*[publish_5(OFTEN, b"") for _ in range(4)])
    topics, sent = seen(got(subscriber))
    assert topics == [OFTEN] * 4
    assert sent == [OFTEN, OFTEN, b"", b""]


@pytest.mark.parametrize("size", [60, 200])
def test_alias_makes_no_packet_too_large(world, size):
    taken = (P.TOPIC_ALIAS_MAX, 5), (P.PACKET_BYTES_MAX, size)
    subscriber = enter(world, b"s", *taken, filters=[(b"devices/#", 0)])
    body_max = size - 2 - 2 - len(OFTEN) - 1 - (1 if size > 129 else 0)
    bodies = [b"x" * (body_max - k) for k in range(5) for _ in range(2)]
    enter(world, b"p").send(*[publish_5(OFTEN, body) for body in bodies])
    packets = subscriber.take()
    assert max(len(one) for one in packets) <= size
    assert len(packets) == len(bodies)


def test_retained_messages_come_with_their_topics(world):
    enter(world, b"p").send(*[publish_5(b"devices/%d/temperature" % (i % 2), b"", retain=True) for i in range(4)])
    enter(world, b"p").send(publish_5(b"devices/7/temperature", b"r", retain=True))
    subscriber = enter(world, b"s", (P.TOPIC_ALIAS_MAX, 5))
    for number in range(3):
        (one,) = got(subscriber.send(subscribe_5(number + 1, (b"devices/#", 0))))
        assert (one.topic, one.body) == (b"devices/7/temperature", b"r")
