"""Section 3.3, PUBLISH: flags, topic, and what it is answered with."""

from __future__ import annotations

import pytest

from tests.conformance.mqtt.clauses import keeps
from tests.support import mqtt

RETAIN_AS_PUBLISHED = 0x08


@keeps(v3="3.3.1-1", v5="3.3.1-1")
def test_what_is_sent_again_has_the_dup_flag(side):
    peer = side.enter(b"s", (b"t", 2), stays=True)
    side.enter(b"p").send(side.publish(b"t", b"1", qos=1, packet_id=1), side.publish(b"t", b"2", qos=2, packet_id=2))
    assert [(one.body, one.dup) for one in side.messages(peer)] == [(b"1", False), (b"2", False)]
    for _ in range(2):
        peer.vanish()
        peer = side.dial().send(side.connect(b"s", stays=True))
        assert [(one.body, one.dup) for one in side.messages(peer)] == [(b"1", True), (b"2", True)]


@keeps(v3="3.3.1-2", v5="3.3.1-2")
def test_qos_0_has_no_dup_flag(side):
    side.assert_ends(side.enter().send(side.publish(b"t", dup=True)), 0x81)
    peer = side.enter(b"s", (b"t", 0), stays=True)
    side.enter(b"p").send(side.publish(b"t", qos=1, packet_id=1, dup=True))
    assert [(one.qos, one.dup) for one in side.messages(peer)] == [(0, False)]


@keeps(v3="3.3.1-3", v5="3.3.1-3")
def test_dup_flag_of_the_publisher_is_not_handed_on(side):
    peer = side.enter(b"s", (b"t", 2))
    side.enter(b"p").send(*[side.publish(b"t", qos=qos, packet_id=qos, dup=True) for qos in (1, 2)])
    assert [(one.qos, one.dup) for one in side.messages(peer)] == [(1, False), (2, False)]


@keeps(v3="3.3.1-4", v5="3.3.1-4")
def test_qos_3_ends_the_connection(side):
    watcher = side.enter(b"w", (b"t", 2))
    side.assert_ends(side.enter().send(side.publish(b"t", qos=3, packet_id=1)), 0x81)
    assert side.messages(watcher) == []


@keeps(v3="3.3.1-5", v5="3.3.1-5")
def test_retained_message_is_stored_with_its_qos_in_the_place_of_the_last(side):
    publisher = side.enter(b"p")
    for qos in range(3):
        publisher.send(side.publish(b"t", b"%d" % qos, qos=qos, packet_id=qos, retain=True))
        (message,) = side.messages(side.enter(b"s").send(side.subscribe(1, (b"t", 2))))
        assert (message.body, message.qos) == (b"%d" % qos, qos)
    side.restart()
    (message,) = side.messages(side.enter(b"s").send(side.subscribe(1, (b"t", 2))))
    assert (message.body, message.qos) == (b"2", 2)


@keeps(v3="3.3.1-6")
def test_new_subscription_gets_the_last_retained_message_of_each_topic(side):
    publisher = side.enter(b"p")
    publisher.send(*[side.publish(b"t/%d" % (i % 3), b"%d" % i, retain=True) for i in range(6)])
    said = side.messages(side.enter(b"s").send(side.subscribe(1, (b"t/+", 0))))
    assert sorted((one.topic, one.body) for one in said) == [(b"t/0", b"3"), (b"t/1", b"4"), (b"t/2", b"5")]


@keeps(v3="3.3.1-7")
def test_retained_message_at_qos_0_takes_the_place_of_the_one_before(side):
    side.enter(b"p").send(
        side.publish(b"t", b"old", qos=1, packet_id=1, retain=True), side.publish(b"t", b"new", retain=True)
    )
    assert side.bodies(side.enter(b"s").send(side.subscribe(1, (b"t", 1)))) == [b"new"]


@keeps(v3="3.3.1-8 3.3.1-9", v5="3.3.1-12")
def test_retain_flag_is_for_what_a_new_subscription_gets(side):
    publisher = side.enter(b"p").send(side.publish(b"t", b"before", retain=True))
    peer = side.enter(b"s").send(side.subscribe(1, (b"t", 0)))
    assert [(one.body, one.retain) for one in side.messages(peer)] == [(b"before", True)]
    publisher.send(side.publish(b"t", b"live", retain=True), side.publish(b"t", b"plain"))
    assert [(one.body, one.retain) for one in side.messages(peer)] == [(b"live", False), (b"plain", False)]


@keeps(v5="3.3.1-13")
def test_retain_flag_is_the_publishers_where_that_is_asked_for(side):
    peer = side.enter(b"s", (b"t", RETAIN_AS_PUBLISHED | 1))
    side.enter(b"p").send(side.publish(b"t", b"r", retain=True), side.publish(b"t", b"n"))
    assert [(one.body, one.retain) for one in side.messages(peer)] == [(b"r", True), (b"n", False)]


@keeps(v3="3.3.1-10 3.3.1-11", v5="3.3.1-6 3.3.1-7")
def test_empty_retained_message_is_delivered_and_clears_the_one_before(side):
    peer = side.enter(b"s", (b"t", 0))
    side.enter(b"p").send(side.publish(b"t", b"old", retain=True), side.publish(b"t", b"", retain=True))
    assert [(one.body, one.retain) for one in side.messages(peer)] == [(b"old", False), (b"", False)]
    assert side.messages(side.enter(b"n").send(side.subscribe(1, (b"t", 0)))) == []
    side.restart()
    assert side.messages(side.enter(b"n").send(side.subscribe(1, (b"t", 0)))) == []


@keeps(v3="3.3.1-12", v5="3.3.1-8")
def test_message_without_the_retain_flag_leaves_retained_ones_alone(side):
    side.enter(b"p").send(
        side.publish(b"t", b"kept", retain=True),
        side.publish(b"t", b"plain"),
        side.publish(b"t", b""),
        side.publish(b"u", b"plain"),
    )
    assert side.bodies(side.enter(b"s").send(side.subscribe(1, (b"#", 0)))) == [b"kept"]


@pytest.mark.parametrize(("handling", "counts"), [(0x00, [1, 1, 1]), (0x10, [1, 0, 1]), (0x20, [0, 0, 0])])
@keeps(v5="3.3.1-9 3.3.1-10 3.3.1-11")
def test_retained_messages_come_as_the_retain_handling_says(side, handling, counts):
    side.enter(b"p").send(side.publish(b"t", retain=True))
    peer = side.enter(b"s")
    for packet_id, count in enumerate(counts, 1):
        if packet_id == 3:
            peer.send(side.unsubscribe(9, b"t"))
            peer.take()
        assert len(side.messages(peer.send(side.subscribe(packet_id, (b"t", handling))))) == count


@keeps(v3="3.3.2-1", v5="3.3.2-1")
def test_publish_begins_with_its_topic_in_utf_8(side):
    for data in (
        mqtt.packet(0x30),
        mqtt.packet(0x30, b"\0"),
        mqtt.packet(0x30, b"\0\5abc"),
        side.publish(b"a/\xff"),
        side.publish(b"\xed\xa0\x80"),
    ):
        side.assert_ends(side.enter().send(data), 0x81)


@keeps(v3="3.3.2-2", v5="3.3.2-2")
def test_topic_of_a_publish_has_no_wildcards(side):
    watcher = side.enter(b"w", (b"#", 0))
    for topic in (b"#", b"+", b"a/#", b"a/+/b", b"a#b", b"a+"):
        side.assert_ends(side.enter().send(side.publish(topic)), 0x90)
    assert side.messages(watcher) == []


@keeps(v3="3.3.2-3", v5="3.3.2-3")
def test_topic_that_a_subscriber_is_given_matches_its_filter(side):
    peer = side.enter(b"s", (b"a/+/c", 0), (b"b/#", 0))
    sent = [b"a/x/c", b"a//c", b"a/x/y/c", b"a/x", b"b", b"b/1/2", b"c", b"A/x/c"]
    side.enter(b"p").send(*[side.publish(topic) for topic in sent])
    assert sorted(one.topic for one in side.messages(peer)) == [b"a//c", b"a/x/c", b"b", b"b/1/2"]


@keeps(v3="3.3.4-1", v5="3.3.4-1")
def test_answer_is_the_one_of_the_qos(side):
    peer = side.enter()
    for qos, kind in ((0, None), (1, "PUBACK"), (2, "PUBREC")):
        said = side.said(peer.send(side.publish(b"t", qos=qos, packet_id=7)))
        assert [(one.kind, one.packet_id) for one in said] == ([(kind, 7)] if kind else [])


@keeps(v3="3.3.5-1", v5="3.3.4-2")
def test_highest_qos_of_overlapping_subscriptions_is_kept_to(side):
    peer = side.enter(b"s", (b"t/#", 0), (b"t/+", 2), (b"t/a", 1))
    publisher = side.enter(b"p")
    for qos in range(3):
        publisher.send(side.publish(b"t/a", qos=qos, packet_id=qos))
        assert max(one.qos for one in side.messages(peer)) == qos


@keeps(v3="3.3.5-2")
def test_message_that_may_not_be_published_is_acknowledged_and_dropped(side):
    side.open_for(u={}, denied={"may_publish": False})
    watcher = side.enter(b"w", (b"#", 2), user=b"u", password=b"p")
    peer = side.enter(user=b"denied", password=b"p")
    peer.send(*[side.publish(b"t", qos=qos, packet_id=qos) for qos in range(3)])
    assert [one.kind for one in side.said(peer)] == ["PUBACK", "PUBREC"]
    assert not peer.is_closed
    assert side.messages(watcher) == []
