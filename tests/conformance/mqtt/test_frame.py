"""Chapters 1 and 2: texts, numbers, the first byte, packet identifiers."""

from __future__ import annotations

import pytest

from tests.conformance.mqtt.clauses import keeps
from tests.conformance.mqtt.sides import P
from tests.support import mqtt

NO_UTF_8 = {
    "surrogate": b"a\xed\xa0\x80",
    "overlong": b"a\xc0\xaf",
    "lone byte": b"a\x80",
    "cut off": b"a\xe2\x82",
    "above U+10FFFF": b"a\xf4\x90\x80\x80",
}
FLAGS = {  # of each packet that a client may send on an open connection
    0x40: b"\0\1",
    0x50: b"\0\1",
    0x62: b"\0\1",
    0x70: b"\0\1",
    0x82: b"\0\1\0\1a\0",
    0xA2: b"\0\1\0\1a",
    0xC0: b"",
    0xE0: b"",
}


@pytest.mark.parametrize("text", NO_UTF_8.values(), ids=NO_UTF_8)
@keeps(v3="1.5.3-1", v5="1.5.4-1")
def test_text_that_is_no_utf_8_ends_the_connection(side, text):
    for data in (side.publish(text), side.subscribe(1, (text, 0)), side.unsubscribe(1, text)):
        side.assert_ends(side.enter().send(data), 0x81)


@keeps(v3="1.5.3-2", v5="1.5.4-2")
def test_text_with_u_0000_ends_the_connection(side):
    for data in (side.publish(b"a\0b"), side.subscribe(1, (b"a\0", 0)), side.unsubscribe(1, b"\0")):
        side.assert_ends(side.enter().send(data), 0x81)
    side.assert_refused(side.dial().send(side.connect(b"a\0b")), 0x81)


@pytest.mark.here(reason="looks at the order of queues")
@keeps(v3="1.5.3-3", v5="1.5.4-3")
def test_u_feff_stays_where_it_is(side):
    marked = "\ufeffa\ufeff/b".encode()
    subscriber = side.enter(b"s", (marked, 0), (b"a/b", 0))
    side.enter(b"p").send(side.publish(marked, b"marked"), side.publish(b"a/b", b"plain"))
    assert [(one.topic, one.body) for one in side.messages(subscriber)] == [(marked, b"marked"), (b"a/b", b"plain")]


@keeps(v5="1.5.5-1")
def test_variable_byte_integers_are_as_short_as_can_be(side):
    block = b"\x80\0"  # 0 in two bytes
    for data in (
        mqtt.packet(0x82, b"\0\1" + block + mqtt.text(b"a") + b"\0"),
        mqtt.packet(0x30, mqtt.text(b"a") + block + b"x"),
        mqtt.packet(0x82, b"\0\1\x03\x0b\x81\0" + mqtt.text(b"a") + b"\0"),
    ):
        side.assert_ends(side.enter().send(data), 0x81)
    subscriber = side.enter(b"s")
    subscriber.send(side.subscribe(1, (b"t", 0), items=[(P.SUBSCRIPTION_ID, 127)]))
    subscriber.send(side.subscribe(2, (b"#", 0), items=[(P.SUBSCRIPTION_ID, 128)]))
    subscriber.take()
    side.enter(b"p").send(side.publish(b"t", b"x" * 200))
    assert sorted(subscriber.take()) == sorted(
        mqtt.packet(0x30, b"\0\1t" + block + b"x" * 200) for block in (b"\2\x0b\x7f", b"\3\x0b\x80\1")
    )


@keeps(v5="1.5.7-1")
def test_both_texts_of_a_user_property_are_utf_8(side):
    for pair in ((b"\xff", b"v"), (b"k", b"\xff"), (b"k\0", b"v"), (b"k", b"\0")):
        items = [(P.USER, pair)]
        for data in (side.publish(b"t", items=items), side.subscribe(1, (b"t", 0), items=items)):
            side.assert_ends(side.enter().send(data), 0x81)
        side.assert_refused(side.dial().send(side.connect(items=items)), 0x81)


@pytest.mark.parametrize(("first", "body"), FLAGS.items(), ids=[f"{first:#04x}" for first in FLAGS])
@keeps(v3="2.2.2-1 2.2.2-2", v5="2.1.3-1")
def test_reserved_bits_of_the_first_byte_are_as_in_the_table(side, first, body):
    for flags in range(16):
        if flags != first & 15:
            side.assert_ends(side.enter().send(mqtt.packet(first & 0xF0 | flags, body)), 0x81)


@keeps(v3="2.2.2-1", v5="2.1.3-1")
def test_the_gateways_own_reserved_bits_are_as_in_the_table(side):
    peer = side.dial().send(
        side.connect(),
        side.subscribe(1, (b"t", 2)),
        side.publish(b"t", qos=1, packet_id=2),
        side.publish(b"t", qos=2, packet_id=3),
        mqtt.PINGREQ,
    )
    said = side.said(peer)
    peer.send(
        mqtt.pubrel(3),
        *[mqtt.pubrec(one.packet_id) for one in said if one.qos == 2 and one.kind == "PUBLISH"],
        side.unsubscribe(4, b"t"),
    )
    flags = {one.kind: one.flags for one in said + side.said(peer) if one.kind != "PUBLISH"}
    assert flags.pop("PUBREL") == 2
    assert flags == dict.fromkeys(["CONNACK", "SUBACK", "PUBACK", "PUBREC", "PUBCOMP", "UNSUBACK", "PINGRESP"], 0)


@keeps(v3="2.3.1-1", v5="2.2.1-3")
def test_packet_identifier_0_ends_the_connection(side):
    for data in (
        side.publish(b"t", qos=1),
        side.publish(b"t", qos=2),
        side.subscribe(0, (b"t", 0)),
        side.unsubscribe(0, b"t"),
    ):
        side.assert_ends(side.enter().send(data), 0x81)


@keeps(v3="2.3.1-4", v5="2.2.1-4")
def test_the_gateways_packet_identifiers_are_free_ones(side):
    subscriber = side.enter(b"s", (b"t", 2), stays=True)
    side.enter(b"p").send(*[side.publish(b"t", b"%d" % i, qos=1 + i % 2, packet_id=i + 1) for i in range(10)])
    first = side.messages(subscriber)
    used = [one.packet_id for one in first]
    assert 0 not in used
    assert len(set(used)) == 10
    subscriber.send(mqtt.puback(used[0]), mqtt.pubrec(used[1]))
    subscriber.take()
    side.enter(b"q").send(*[side.publish(b"t", b"y", qos=1, packet_id=i + 1) for i in range(5)])
    more = [one.packet_id for one in side.messages(subscriber)]
    assert not set(more) & set(used[1:])
    subscriber.vanish()
    again = side.dial().send(side.connect(b"s", stays=True))
    assert [(one.packet_id, one.body) for one in side.messages(again) if one.body != b"y"] == [
        (one.packet_id, one.body) for one in first[2:]
    ]


@keeps(v3="2.3.1-5", v5="2.2.1-2")
def test_publish_at_qos_0_has_no_packet_identifier(side):
    subscriber = side.enter(b"s", (b"t", 2))
    empty = b"\0" if side.is_5 else b""
    side.enter(b"p").send(mqtt.packet(0x30, b"\0\1t" + empty + b"\0\1x"))
    assert subscriber.take() == [mqtt.packet(0x30, b"\0\1t" + empty + b"\0\1x")]


@keeps(v3="2.3.1-6", v5="2.2.1-5")
def test_acknowledgements_have_the_identifier_of_their_publish(side):
    peer = side.enter()
    peer.send(
        side.publish(b"t", qos=1, packet_id=0x0102),
        side.publish(b"t", qos=2, packet_id=0xFFFF),
    )
    assert [(one.kind, one.packet_id) for one in side.said(peer)] == [("PUBACK", 0x0102), ("PUBREC", 0xFFFF)]
    completed = side.one(peer.send(mqtt.pubrel(0xFFFF)))
    assert (completed.kind, completed.packet_id) == ("PUBCOMP", 0xFFFF)
    subscriber = side.enter(b"s", (b"t", 2))
    peer.send(side.publish(b"t", qos=2, packet_id=9))
    (message,) = side.messages(subscriber)
    released = side.one(subscriber.send(mqtt.pubrec(message.packet_id)))
    assert (released.kind, released.packet_id) == ("PUBREL", message.packet_id)


@keeps(v3="2.3.1-7", v5="2.2.1-6")
def test_suback_and_unsuback_have_the_identifier_of_their_question(side):
    peer = side.enter()
    peer.send(side.subscribe(0x0102, (b"t", 0)), side.unsubscribe(0xFFFE, b"t"))
    assert [(one.kind, one.packet_id) for one in side.said(peer)] == [("SUBACK", 0x0102), ("UNSUBACK", 0xFFFE)]


@keeps(v5="2.2.2-1")
def test_no_properties_are_a_length_of_0(side):
    subscriber = side.enter(b"s")
    subscriber.send(side.subscribe(1, (b"t", 0)), side.unsubscribe(2, b"x"))
    assert subscriber.take() == [b"\x90\4\0\1\0\0", b"\xb0\4\0\2\0\x11"]
    side.enter(b"p").send(side.publish(b"t", b"x"))
    assert subscriber.take() == [b"\x30\5\0\1t\0x"]
    for data in (b"\x30\3\0\1t", mqtt.packet(0x82, b"\0\1"), mqtt.packet(0xA2, b"\0\1")):
        side.assert_ends(side.enter().send(data), 0x81)
