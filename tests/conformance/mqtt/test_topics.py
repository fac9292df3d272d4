"""Section 4.7: topic names, topic filters, and how they match."""

from __future__ import annotations

import pytest

from tests.conformance.mqtt.clauses import keeps

MATCHES = [  # a filter, topics that match, topics that do not
    (b"#", [b"a", b"/", b"a/b/c", b"/a"], [b"$SYS/a", b"$a"]),
    (b"a/#", [b"a", b"a/", b"a/b", b"a/b/c", b"a//"], [b"ab", b"A", b"b/a", b"/a"]),
    (b"+", [b"a", b"ab"], [b"a/b", b"/a", b"a/", b"/"]),
    (b"+/+", [b"a/b", b"/a", b"a/", b"/"], [b"a", b"a/b/c", b"$SYS/a"]),
    (b"/+", [b"/a", b"/"], [b"a", b"//", b"/a/b"]),
    (b"a/+/c", [b"a/b/c", b"a//c", b"a/bb/c"], [b"a/c", b"a/b/b/c", b"a/b/c/"]),
    (b"+/b/#", [b"a/b", b"a/b/c", b"/b"], [b"b", b"a/c/b", b"$x/b"]),
    (b"$SYS/#", [b"$SYS/a", b"$SYS"], [b"$sys/a", b"SYS/a"]),
    (b"a/b", [b"a/b"], [b"a/B", b"a/b/", b"/a/b", b"a"]),
]


def assert_filter_is_refused(side, topic_filter):
    side.assert_ends(side.enter().send(side.subscribe(1, (topic_filter, 0))), 0x8F)


@keeps(v3="4.7.1-1", v5="4.7.0-1")
def test_topic_has_no_wildcards(side):
    for topic in (b"#", b"+", b"a/#", b"+/a", b"a+b", b"a#"):
        side.assert_ends(side.enter().send(side.publish(topic, qos=1, packet_id=1)), 0x90)


@keeps(v3="4.7.1-2", v5="4.7.1-1")
def test_number_sign_stands_alone_in_the_last_level(side):
    for topic_filter in (b"a#", b"a/b#", b"#/a", b"a/#/b", b"##", b"#/"):
        assert_filter_is_refused(side, topic_filter)
    assert side.one(side.enter().send(side.subscribe(1, (b"#", 0), (b"a/#", 0), (b"/#", 0)))).codes == (0, 0, 0)


@keeps(v3="4.7.1-3", v5="4.7.1-2")
def test_plus_fills_its_level_wherever_that_is(side):
    for topic_filter in (b"a+", b"+a", b"a/b+/c", b"++", b"a/+b"):
        assert_filter_is_refused(side, topic_filter)
    filters = [b"+", b"+/a", b"a/+", b"a/+/b", b"+/+", b"+/#", b"/+"]
    said = side.one(side.enter().send(side.subscribe(1, *[(each, 0) for each in filters])))
    assert said.codes == (0,) * len(filters)


@pytest.mark.parametrize(("topic_filter", "matching", "others"), MATCHES, ids=[row[0].decode() for row in MATCHES])
@keeps(v3="4.7.1-2 4.7.1-3 4.7.3-4", v5="4.7.1-1 4.7.1-2 4.7.3-4")
def test_filters_match_level_by_level(side, topic_filter, matching, others):
    peer = side.enter(b"s", (topic_filter, 0))
    side.enter(b"p").send(*[side.publish(topic) for topic in (*matching, *others)])
    assert [one.topic for one in side.messages(peer)] == matching


@keeps(v3="4.7.2-1", v5="4.7.2-1")
def test_leading_wildcard_does_not_match_topics_that_begin_with_a_dollar(side):
    peer = side.enter(b"s", (b"#", 0), (b"+/own", 0), (b"+", 0))
    owner = side.enter(b"o", (b"$lab/#", 0))
    side.enter(b"p").send(side.publish(b"$lab/own"), side.publish(b"$lab", retain=True))
    assert side.messages(peer) == []
    assert [one.topic for one in side.messages(owner)] == [b"$lab/own", b"$lab"]
    assert side.messages(side.enter(b"late").send(side.subscribe(1, (b"#", 0), (b"+", 0)))) == []


@pytest.mark.here(reason="looks at the order of queues")
@keeps(v3="4.7.3-1", v5="4.7.3-1")
def test_topics_and_filters_have_a_character_at_least(side):
    side.assert_ends(side.enter().send(side.subscribe(1, (b"", 0))), 0x8F)
    side.assert_ends(side.enter().send(side.unsubscribe(1, b"")), 0x8F)
    side.assert_ends(side.enter().send(side.publish(b"")), 0x82)
    assert side.dial().send(side.connect(will=(b"", b"w", 0, False))).is_closed
    peer = side.enter(b"s", (b"/", 0), (b" ", 0))
    side.enter(b"p").send(side.publish(b"/"), side.publish(b" "))
    assert [one.topic for one in side.messages(peer)] == [b"/", b" "]


@keeps(v3="4.7.3-2", v5="4.7.3-2")
def test_topics_and_filters_have_no_u_0000(side):
    for data in (side.publish(b"a\0b"), side.subscribe(1, (b"a\0b", 0)), side.unsubscribe(1, b"\0")):
        side.assert_ends(side.enter().send(data), 0x81)


@pytest.mark.here(reason="looks at the order of queues")
@keeps(v3="4.7.3-3", v5="4.7.3-3")
def test_topics_and_filters_have_16_384_bytes_and_200_levels_at_most(side):
    longest, deepest = b"a" * 16_384, b"/" * 199
    peer = side.enter(b"s", (longest, 0), (deepest, 0))
    side.enter(b"p").send(side.publish(longest), side.publish(deepest))
    assert [one.topic for one in side.messages(peer)] == [longest, deepest]
    for topic in (longest + b"a", deepest + b"/", b"a" * 65_535):
        side.assert_ends(side.enter().send(side.publish(topic)), 0x90)
        assert_filter_is_refused(side, topic)


@keeps(v3="4.7.3-4", v5="4.7.3-4")
def test_topics_are_compared_as_they_are(side):
    composed, apart = "é".encode(), "e\u0301".encode()  # look the same
    filters = [b"A", b"a", b"a/", b"/a", b"a//b", b"a/b", b"a ", composed, apart, "\u1fff".encode()]
    for index, topic_filter in enumerate(filters):
        peer = side.enter(b"s%d" % index, (topic_filter, 0))
        side.enter(b"p").send(*[side.publish(each) for each in filters])
        assert [one.topic for one in side.messages(peer)] == [topic_filter]
        peer.vanish()
