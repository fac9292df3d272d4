"""Sections 3.8 and 3.9: SUBSCRIBE and SUBACK."""

from __future__ import annotations

import pytest

from tests.conformance.mqtt.clauses import keeps
from tests.conformance.mqtt.sides import P

NO_LOCAL = 0x04
CODES_3 = {0x00, 0x01, 0x02, 0x80}
CODES_5 = {0x00, 0x01, 0x02, 0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2}


@keeps(v3="3.8.1-1", v5="3.8.1-1")
def test_flags_of_a_subscribe_are_0010(side):
    body = side.subscribe(1, (b"t", 0))[1:]
    for flags in range(16):
        peer = side.enter().send(bytes((0x80 | flags,)) + body)
        if flags == 2:
            assert side.one(peer).kind == "SUBACK"
        else:
            side.assert_ends(peer, 0x81)


@keeps(v3="3.8.3-1", v5="3.8.3-1")
def test_filters_of_a_subscribe_are_utf_8(side):
    for topic_filter in (b"\xff", b"a/\xed\xa0\x80/#", b"\xc0\xaf"):
        side.assert_ends(side.enter().send(side.subscribe(1, (b"fine", 0), (topic_filter, 0))), 0x81)


@pytest.mark.here(reason="looks at the order of queues")
@keeps(v3="3.8.3-2")
def test_filters_with_wildcards_are_granted(side):
    peer = side.enter(b"s")
    granted = side.one(peer.send(side.subscribe(1, (b"a/+", 0), (b"b/#", 1), (b"+/c", 2))))
    assert granted.codes == (0, 1, 2)
    side.enter(b"p").send(side.publish(b"a/1"), side.publish(b"b/1/2"))
    assert [one.topic for one in side.messages(peer)] == [b"a/1", b"b/1/2"]


@keeps(v3="3.8.3-3", v5="3.8.3-2")
def test_subscribe_has_a_filter_at_least(side):
    side.assert_ends(side.enter().send(side.subscribe(1)), 0x82)


@keeps(v3="3.8.3-4", v5="3.8.3-5")
def test_reserved_bits_of_the_options_are_0(side):
    for options in (0x04, 0x08, 0x10, 0x40, 0x80) if not side.is_5 else (0x40, 0x80, 0xC1):
        side.assert_ends(side.enter().send(side.subscribe(1, (b"a", 0), (b"t", options))), 0x81)
    side.assert_ends(side.enter().send(side.subscribe(1, (b"t", 3))), 0x81)


@keeps(v5="3.8.3-3")
def test_own_messages_do_not_come_back_with_no_local(side):
    peer = side.enter(b"c", (b"t", NO_LOCAL | 1))
    other = side.enter(b"o", (b"t", 1))
    peer.send(side.publish(b"t", b"mine"))
    other.send(side.publish(b"t", b"other's"))
    assert side.bodies(peer) == [b"other's"]
    assert side.bodies(other) == [b"mine", b"other's"]


@keeps(v5="3.8.3-4")
def test_no_local_for_a_shared_subscription_is_a_protocol_error(side):
    side.assert_ends(side.enter().send(side.subscribe(1, (b"$share/g/t", NO_LOCAL | 1))), 0x82)


@keeps(v3="3.8.4-1 3.8.4-2", v5="3.8.4-1 3.8.4-2")
def test_subscribe_is_answered_with_a_suback_of_its_identifier(side):
    peer = side.enter()
    for packet_id in (1, 0x0102, 0xFFFF):
        said = side.one(peer.send(side.subscribe(packet_id, (b"t", 1))))
        assert (said.kind, said.packet_id) == ("SUBACK", packet_id)


@keeps(v3="3.8.4-3", v5="3.8.4-3 3.8.4-4")
def test_same_filter_again_replaces_the_subscription_and_loses_nothing(side):
    publisher = side.enter(b"p").send(side.publish(b"t", b"r", qos=1, packet_id=1, retain=True))
    peer = side.enter(b"s").send(side.subscribe(1, (b"t", 1)))
    assert [(one.body, one.qos, one.retain) for one in side.messages(peer)] == [(b"r", 1, True)]
    publisher.send(side.publish(b"t", b"1", qos=1, packet_id=2))
    peer.send(side.subscribe(2, (b"t", 0)))
    publisher.send(side.publish(b"t", b"2", qos=1, packet_id=3))
    said = side.messages(peer)
    assert sorted((one.body, one.qos, one.retain) for one in said) == [
        (b"1", 1, False),
        (b"2", 0, False),  # once, at the new QoS
        (b"r", 0, True),  # again
    ]


@pytest.mark.here(reason="looks at the order of queues")
@keeps(v3="3.8.4-4", v5="3.8.4-5")
def test_several_filters_are_as_several_packets_with_one_answer(side):
    side.enter(b"p").send(*[side.publish(topic, topic, retain=True) for topic in (b"a", b"b")])
    peer = side.enter(b"s").send(side.subscribe(7, (b"a", 1), (b"b", 0), (b"a", 0), (b"c", 2)))
    said = side.said(peer)
    assert [(one.packet_id, one.codes) for one in said if one.kind == "SUBACK"] == [(7, (1, 0, 0, 2))]
    assert {one.body for one in said if one.kind == "PUBLISH"} == {b"a", b"b"}
    side.enter(b"q").send(*[side.publish(topic, qos=2, packet_id=1 + i) for i, topic in enumerate((b"a", b"b", b"c"))])
    assert [(one.topic, one.qos) for one in side.messages(peer)] == [(b"a", 0), (b"b", 0), (b"c", 2)]


@keeps(v3="3.8.4-5 3.9.3-2", v5="3.8.4-6 3.8.4-7 3.9.3-2")
def test_suback_tells_the_granted_qos_or_the_failure_of_each_filter(side):
    side.open(subscription_count_max=3)
    peer = side.enter()
    said = side.one(peer.send(side.subscribe(1, *[(b"t/%d" % qos, qos) for qos in range(3)], (b"too many", 1))))
    assert said.codes == (0, 1, 2, 0x97 if side.is_5 else 0x80)
    assert set(said.codes) <= (CODES_5 if side.is_5 else CODES_3)


@keeps(v3="3.8.4-6", v5="3.8.4-8")
def test_message_comes_at_the_lower_of_its_qos_and_the_granted_one(side):
    peers = [side.enter(b"s%d" % granted, (b"t", granted)) for granted in range(3)]
    publisher = side.enter(b"p")
    for qos in range(3):
        publisher.send(side.publish(b"t", qos=qos, packet_id=qos))
        for granted, peer in enumerate(peers):
            assert [one.qos for one in side.messages(peer)] == [min(qos, granted)]


@keeps(v5="3.9.2-1 3.9.2-2")
def test_suback_is_not_made_larger_than_the_client_takes(side):
    side.open_for(u={"may_subscribe": False})
    peer = side.enter(user=b"u", password=b"p", items=[(P.PACKET_BYTES_MAX, 20)])
    said = side.one(peer.send(side.subscribe(1, (b"t", 1))))
    assert said.codes == (0x87,)
    assert said.text(P.REASON) is None
    assert said.properties.users == ()


@keeps(v3="3.9.3-1", v5="3.9.3-1")
def test_codes_of_a_suback_are_in_the_order_of_the_filters(side):
    wanted = [2, 0, 1, 1, 2, 0, 0]
    peer = side.enter()
    said = side.one(peer.send(side.subscribe(1, *[(b"t/%d" % i, qos) for i, qos in enumerate(wanted)])))
    assert list(said.codes) == wanted
