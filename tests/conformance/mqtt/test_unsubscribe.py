"""Sections 3.10 and 3.11: UNSUBSCRIBE and UNSUBACK."""

from __future__ import annotations

import pytest

from tests.conformance.mqtt.clauses import keeps
from tests.conformance.mqtt.sides import P
from tests.support import mqtt

CODES = {0x00, 0x11, 0x80, 0x83, 0x87, 0x8F, 0x91}  # of UNSUBACK


@keeps(v3="3.10.1-1", v5="3.10.1-1")
def test_flags_of_an_unsubscribe_are_0010(side):
    body = side.unsubscribe(1, b"t")[1:]
    for flags in range(16):
        peer = side.enter().send(bytes((0xA0 | flags,)) + body)
        if flags == 2:
            assert side.one(peer).kind == "UNSUBACK"
        else:
            side.assert_ends(peer, 0x81)


@keeps(v3="3.10.3-1", v5="3.10.3-1")
def test_filters_of_an_unsubscribe_are_utf_8(side):
    for topic_filter in (b"\xff", b"a/\xed\xa0\x80/#", b"\xc0\xaf"):
        side.assert_ends(side.enter().send(side.unsubscribe(1, b"fine", topic_filter)), 0x81)


@keeps(v3="3.10.3-2", v5="3.10.3-2")
def test_unsubscribe_has_a_filter_at_least(side):
    side.assert_ends(side.enter().send(side.unsubscribe(1)), 0x82)


@keeps(v3="3.10.4-1", v5="3.10.4-1")
def test_subscription_ends_when_its_filter_is_given_letter_by_letter(side):
    peer = side.enter(b"s", (b"a/+", 0))
    publisher = side.enter(b"p")
    peer.send(side.unsubscribe(1, b"a/b", b"#", b"A/+", b"a/+/", b"a/#"))
    peer.take()
    publisher.send(side.publish(b"a/b", b"1"))
    assert side.bodies(peer) == [b"1"]
    peer.send(side.unsubscribe(2, b"a/+"))
    peer.take()
    publisher.send(side.publish(b"a/b", b"2"))
    assert side.said(peer) == []


@keeps(v3="3.10.4-2", v5="3.10.4-2")
def test_nothing_new_is_sent_for_a_subscription_that_ended(side):
    peer = side.enter(b"s", (b"t", 1), (b"u", 1))
    publisher = side.enter(b"p")
    peer.send(side.unsubscribe(1, b"t"))
    publisher.send(side.publish(b"t", qos=1, packet_id=1), side.publish(b"u", qos=1, packet_id=2))
    assert [one.topic for one in side.messages(peer)] == [b"u"]
    peer.send(side.subscribe(2, (b"t", 1)))
    assert side.messages(peer) == []  # not even later


@keeps(v3="3.10.4-3", v5="3.10.4-3")
def test_what_is_on_its_way_is_brought_to_its_end(side):
    peer = side.enter(b"s", (b"t", 2), stays=True)
    side.enter(b"p").send(*[side.publish(b"t", b"%d" % qos, qos=qos, packet_id=qos) for qos in (1, 2)])
    first = side.messages(peer)
    peer.send(side.unsubscribe(1, b"t"))
    peer.vanish()
    peer = side.dial().send(side.connect(b"s", stays=True))
    again = side.messages(peer)
    assert [(one.body, one.packet_id, one.dup) for one in again] == [(one.body, one.packet_id, True) for one in first]
    peer.send(mqtt.puback(first[0].packet_id), mqtt.pubrec(first[1].packet_id))
    assert [(one.kind, one.packet_id) for one in side.said(peer)] == [("PUBREL", first[1].packet_id)]
    peer.send(mqtt.pubcomp(first[1].packet_id))
    peer.vanish()
    assert side.messages(side.dial().send(side.connect(b"s", stays=True))) == []


@keeps(v3="3.10.4-3", v5="3.10.4-3")
@pytest.mark.parametrize("has_it", [False, True])
def test_what_is_on_its_way_is_brought_to_its_end_also_by_the_next_process(side, has_it):
    peer = side.enter(b"s", (b"t", 2), stays=True)
    side.enter(b"p").send(*[side.publish(b"t", b"%d" % qos, qos=qos, packet_id=qos) for qos in (1, 2)])
    once, exact = side.messages(peer)
    if has_it:
        peer.send(mqtt.pubrec(exact.packet_id))
    peer.send(side.unsubscribe(1, b"t"))
    side.restart()
    peer = side.dial().send(side.connect(b"s", stays=True))
    said = [one for one in side.said(peer) if one.kind in {"PUBLISH", "PUBREL"}]
    assert [one.kind for one in said] == ["PUBREL" if has_it else "PUBLISH", "PUBLISH"]
    assert said[0].packet_id == exact.packet_id
    assert (said[1].body, said[1].dup) == (once.body, True)
    peer.send(mqtt.puback(said[1].packet_id), *([] if has_it else [mqtt.pubrec(exact.packet_id)]))
    peer.send(mqtt.pubcomp(exact.packet_id))
    side.restart()
    assert side.messages(side.dial().send(side.connect(b"s", stays=True))) == []


@keeps(v3="3.10.4-4 3.10.4-5", v5="3.10.4-4 3.10.4-5")
def test_answer_is_an_unsuback_also_where_nothing_ended(side):
    peer = side.enter(b"s", (b"t", 0))
    for packet_id, code in ((0x0102, 0), (0xFFFF, 0x11)):
        said = side.one(peer.send(side.unsubscribe(packet_id, b"t")))
        assert (said.kind, said.packet_id, said.codes) == ("UNSUBACK", packet_id, (code,) if side.is_5 else ())


@keeps(v3="3.10.4-4", v5="3.10.4-4")
def test_answer_comes_also_where_the_client_leaves_at_once(side):
    for stays in (False, True):
        peer = side.enter(b"s", (b"t", 0), stays=stays)
        peer.send(side.unsubscribe(7, b"t"), mqtt.DISCONNECT)
        said = side.one(peer)
        assert (said.kind, said.packet_id) == ("UNSUBACK", 7)
        assert peer.is_closed
        assert peer.transport.end_reason == "disconnect"


@keeps(v3="3.10.4-6", v5="3.10.4-6")
def test_several_filters_are_as_several_packets_with_one_answer(side):
    peer = side.enter(b"s", (b"a", 0), (b"b", 0), (b"c", 0))
    said = side.one(peer.send(side.unsubscribe(9, b"a", b"x", b"c")))
    assert (said.kind, said.packet_id) == ("UNSUBACK", 9)
    side.enter(b"p").send(*[side.publish(topic) for topic in (b"a", b"b", b"c")])
    assert [one.topic for one in side.messages(peer)] == [b"b"]


@keeps(v5="3.11.2-1 3.11.2-2")
def test_unsuback_is_not_made_larger_than_the_client_takes(side):
    peer = side.enter(items=[(P.PACKET_BYTES_MAX, 20)])
    said = side.one(peer.send(side.unsubscribe(1, b"t")))
    assert said.codes == (0x11,)
    assert said.text(P.REASON) is None
    assert said.properties.users == ()


@keeps(v5="3.11.3-1 3.11.3-2")
def test_codes_of_an_unsuback_are_in_the_order_of_the_filters(side):
    peer = side.enter(b"s", (b"a", 0), (b"b", 1))
    said = side.one(peer.send(side.unsubscribe(1, b"x", b"b", b"y", b"a", b"a")))
    assert said.codes == (0x11, 0, 0x11, 0, 0x11)
    assert set(said.codes) <= CODES
