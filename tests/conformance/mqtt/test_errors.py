"""Sections 4.8 of MQTT 3.1.1 and 4.13 of MQTT 5, faults; chapter 7."""

from __future__ import annotations

from functools import partial

from tests.conformance.mqtt.clauses import keeps
from tests.conformance.mqtt.sides import P
from tests.support import mqtt
from tests.support.late_engine import make_late


@keeps(v3="4.8.0-1", v5="4.13.1-1")
def test_packet_that_breaks_a_rule_ends_the_connection_that_it_came_on(side):
    other = side.enter(b"other", (b"t", 0))
    for data, code in (
        (side.connect(), 0x82),
        (mqtt.packet(0x20, b"\0\0"), 0x82),
        (mqtt.packet(0x90, b"\0\1\0"), 0x82),
        (mqtt.PINGRESP, 0x82),
        (mqtt.packet(0xC0, b"x"), 0x81),
        (b"\0\0", 0x82 if not side.is_5 else 0x81),
        (b"\x30\x80\x80\x80\x80\1", 0x81),
        (b"\x30\xff\xff\xff\x7f", 0x95),
        (mqtt.packet(0x40, b"\0"), 0x81),
        (side.publish(b"a/#"), 0x90),
        (side.subscribe(1, (b"a/#/b", 0)), 0x8F),
    ):
        side.assert_ends(side.enter().send(data, side.publish(b"t")), code)
    assert side.said(other) == []
    assert not other.is_closed


@keeps(v3="4.8.0-2")
def test_fault_that_will_pass_ends_the_connection(side):
    side.open(make_engine=partial(make_late, failures=1.0))  # what is appended is told to be lost
    other = side.enter(b"other")
    peer = side.enter().send(side.publish(b"t", qos=1, packet_id=1))
    assert side.said(peer) == []  # no acknowledgement
    assert peer.is_closed
    assert not other.is_closed


@keeps(v5="4.13.2-1")
def test_close_follows_a_code_from_0x80(side):
    side.open_for(u={})
    for data in (
        side.connect(),
        side.connect(items=[(P.AUTH_METHOD, b"none")]),
        side.connect(items=[(P.RECEIVE_MAX, 0)]),
    ):
        peer = side.dial().send(data)
        assert side.one(peer).code >= 0x80
        assert peer.is_closed
    for data in (side.connect(), side.publish(b"#"), mqtt.packet(0xE0, b"\x01")):
        peer = side.enter(user=b"u", password=b"p").send(data)
        assert [(one.kind, one.code >= 0x80) for one in side.said(peer)] == [("DISCONNECT", True)]
        assert peer.is_closed
    small = side.enter(user=b"u", password=b"p", items=[(P.PACKET_BYTES_MAX, 20)])
    assert small.send(side.connect()).is_closed


@keeps(v3="7.0.0-2")
def test_no_extension_is_needed(side):
    """The plainest packets of a client go through all that there is."""
    peer = side.dial().send(b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x3c\x00\x01c")
    peer.send(b"\x82\x06\x00\x01\x00\x01t\x02", b"\x34\x06\x00\x01t\x00\x01x")
    connack, *rest = peer.take()
    assert connack == b"\x20\x02\x00\x00"
    assert sorted(rest) == [b"\x34\x06\x00\x01t\x00\x01x", b"\x50\x02\x00\x01", b"\x90\x03\x00\x01\x02"]
    peer.send(b"\x62\x02\x00\x01", b"\x50\x02\x00\x01", b"\x70\x02\x00\x01", b"\xa2\x05\x00\x02\x00\x01t")
    assert sorted(peer.take()) == [b"\x62\x02\x00\x01", b"\x70\x02\x00\x01", b"\xb0\x02\x00\x02"]
    assert peer.send(b"\xe0\x00").is_closed
