from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from gateway.mqtt.errors import MalformedPacketError
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.topics import LEVEL_COUNT_MAX, TOPIC_BYTES_MAX, check_text, check_topic, check_topic_filter
from tests.support import mqtt

GOOD = [
    b"a",
    b"/",
    b"//",
    b"a/b",
    b" ",
    b"/finance",
    b"$SYS/x",
    "h\u00e4user/\u6c34/\U0001f600".encode(),
    b"\xef\xbb\xbfa",
]
GOOD_FILTERS = [b"#", b"+", b"+/+", b"/+", b"a/#", b"+/a/#", b"/#", b"$SYS/#", b"a/+/b"]
BAD_FILTERS = [b"", b"a#", b"#/a", b"a/#/b", b"##", b"#+", b"a+", b"+a", b"a/b+/c", b"++", b"a/+#"]


@pytest.mark.parametrize("topic", GOOD)
def test_good_topic_is_also_a_good_filter(topic):
    check_topic(topic)
    check_topic_filter(topic)


@pytest.mark.parametrize("topic_filter", GOOD_FILTERS)
def test_wildcards_fill_their_level(topic_filter):
    check_topic_filter(topic_filter)
    with pytest.raises(MalformedPacketError):
        check_topic(topic_filter)


@pytest.mark.parametrize("topic_filter", BAD_FILTERS)
def test_bad_filter_is_refused(topic_filter):
    with pytest.raises(MalformedPacketError):
        check_topic_filter(topic_filter)


@pytest.mark.parametrize(
    "text", [b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xf4\x90\x80\x80", b"\xc0\x80", b"a\0"]
)
def test_text_must_be_clean_utf_8(text):
    for check in (check_text, check_topic, check_topic_filter):
        with pytest.raises(MalformedPacketError):
            check(text)


@pytest.mark.parametrize("topic", [b"a\x01b", b"a\x02", b"\x1f", b"\x7f", b"a\xc2\x85"])
def test_control_characters_are_refused_in_topics(topic):
    with pytest.raises(MalformedPacketError):
        check_topic(topic)


def test_length_and_levels_are_bounded():
    check_topic(b"a" * TOPIC_BYTES_MAX)
    check_topic(b"/" * (LEVEL_COUNT_MAX - 1))
    for topic in (b"a" * (TOPIC_BYTES_MAX + 1), b"/" * LEVEL_COUNT_MAX):
        with pytest.raises(MalformedPacketError):
            check_topic(topic)


@given(st.binary(max_size=40))
def test_any_bytes_are_a_topic_or_malformed(topic):
    for check in (check_topic, check_topic_filter):
        with suppress(MalformedPacketError):
            check(topic)


FORMS = [b"$share/g/t", b"$queue/t", b"$exclusive/t", b"$replay/0/t", b"$delayed/1/$share/g/t"]


@pytest.mark.parametrize("topic", FORMS)
def test_topics_that_no_subscription_matches_are_refused(world, topic):
    peer = world.dial().send(mqtt.connect_5(b"five"))
    peer.take()
    peer.send(mqtt.publish_5(topic, b"x", qos=1, packet_id=1))
    (ack,) = peer.take()
    assert ack[:5] == b"\x40" + bytes((len(ack) - 2, 0, 1, ReasonCode.NOT_AUTHORIZED))
    older = world.client(b"older")
    older.send(mqtt.publish(topic, b"x", qos=1, packet_id=7))
    assert older.take() == [mqtt.puback(7)]
    assert world.counts.refused == {"publish_not_authorized": 2}
    world.client(b"will", will=(topic, b"x", 1, False)).vanish()
    assert world.counts.refused["will_not_authorized"] == 1
    assert world.store.message_count == 0


@pytest.mark.parametrize("topic", [b"$shared/t", b"$SYS/other", b"$test/t", b"share/g/t"])
def test_other_topics_with_a_dollar_are_like_any(world, topic):
    reader = world.client(b"r", (topic, 1))
    world.client(b"p").send(mqtt.publish(topic, b"x", qos=1, packet_id=7))
    assert reader.bodies() == [b"x"]
