"""Sections 3.12 to 3.14: PINGREQ, DISCONNECT."""

from __future__ import annotations

from tests.conformance.mqtt.clauses import keeps
from tests.conformance.mqtt.sides import P
from tests.support import mqtt

WILL = (b"gone", b"w", 0, False)
OF_SERVERS = {
    0x00, 0x80, 0x81, 0x82, 0x83, 0x87, 0x89, 0x8B, 0x8D, 0x8E, 0x8F, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99,
    0x9A, 0x9B, 0x9C, 0x9D, 0x9E, 0x9F, 0xA0, 0xA1, 0xA2,
}  # fmt: skip
OF_CLIENTS = {0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99}


def ended(side, items=()):
    """Return connections that the gateway ended, each for another reason."""
    ways = [
        lambda peer: peer.send(mqtt.packet(0x36, b"\0\1t\0\1")),
        lambda peer: peer.send(side.connect()),
        lambda peer: peer.send(side.publish(b"a/#")),
        lambda peer: peer.send(side.publish(b"a", items=[(P.TOPIC_ALIAS, 1_000)])),
        lambda peer: peer.send(side.subscribe(1, (b"a/#/b", 0))),
        lambda peer: peer.send(b"\x30\xff\xff\xff\x7f"),
        lambda _: side.enter(b"c"),
        lambda _: side.pass_time(100),
        lambda _: side.world.door.stop(side.world.now_ms),
    ]
    for way in ways:
        peer = side.enter(b"c", items=items)
        way(peer)
        yield peer, side.said(peer)


@keeps(v3="3.12.4-1", v5="3.12.4-1")
def test_ping_is_answered(side):
    peer = side.enter()
    assert [one.kind for one in side.said(peer.send(mqtt.PINGREQ))] == ["PINGRESP"]
    assert [one.kind for one in side.said(peer.send(mqtt.PINGREQ * 3))] == ["PINGRESP"] * 3


@keeps(v5="3.14.0-1")
def test_no_disconnect_is_sent_before_a_good_connack(side):
    side.open_for(u={})
    for data in (side.connect(), side.connect(b"\xff"), side.publish(b"t"), b"\0\0", side.connect() + side.connect()):
        assert "DISCONNECT" not in [one.kind for one in side.said(side.dial().send(data))]
    peer = side.dial().send(side.connect()[:5])
    side.world.now_ms += 100_000
    peer.handler.on_timer(side.world.now_ms)
    assert "DISCONNECT" not in [one.kind for one in side.said(peer)]
    assert peer.is_closed


@keeps(v3="3.14.1-1", v5="3.14.1-1")
def test_reserved_bits_of_a_disconnect_are_0(side):
    watcher = side.enter(b"w", (b"gone", 0))
    for flags in range(1, 16):
        side.assert_ends(side.enter(will=WILL).send(bytes((0xE0 | flags, 0))), 0x81)
    assert len(side.messages(watcher)) == 15  # the wills: none has said goodbye


@keeps(v5="3.14.2-1")
def test_code_of_a_disconnect_is_one_that_its_sender_may_use(side):
    for code in range(256):
        peer = side.enter().send(mqtt.disconnect_5(code))
        if code in OF_CLIENTS:
            assert peer.is_closed
            assert side.said(peer) == []
        else:
            side.assert_ends(peer, 0x82)
    codes = [said[-1].code for _, said in ended(side)]
    assert len(set(codes)) == len(codes)
    assert set(codes) <= OF_SERVERS


@keeps(v5="3.14.2-2")
def test_server_tells_no_session_expiry_in_a_disconnect(side):
    for _, said in ended(side, items=[(P.SESSION_EXPIRY, 5)]):
        assert said[-1].kind == "DISCONNECT"
        assert said[-1].number(P.SESSION_EXPIRY) == -1


@keeps(v5="3.14.2-3 3.14.2-4")
def test_disconnect_is_not_made_larger_than_the_client_takes(side):
    for _, said in ended(side, items=[(P.PACKET_BYTES_MAX, 24)]):
        assert said[-1].kind == "DISCONNECT"
        assert 5 + len(said[-1].text(P.REASON) or b"") <= 24
        assert said[-1].properties.users == ()


@keeps(v5="3.14.4-1 3.14.4-2")
def test_nothing_is_sent_after_a_disconnect_but_the_close(side):
    for peer, said in ended(side):
        assert [one.kind for one in said].index("DISCONNECT") == len(said) - 1
        assert peer.is_closed
    watcher = side.enter(b"s", (b"t", 0))
    side.enter(b"p").send(mqtt.packet(0x36, b"\0\1t\0\1"), side.publish(b"t", b"never"))
    watcher.send(side.connect())
    side.enter(b"p").send(side.publish(b"t", b"late"))
    assert [one.kind for one in side.said(watcher)] == ["DISCONNECT"]


@keeps(v3="3.14.4-1 3.14.4-2")
def test_disconnect_is_the_last_that_is_heard_of_a_client(side):
    watcher = side.enter(b"w", (b"t", 0))
    peer = side.enter().send(side.publish(b"t", b"1"), mqtt.DISCONNECT, side.publish(b"t", b"2"), mqtt.PINGREQ)
    assert peer.is_closed
    peer.send(side.publish(b"t", b"3"))
    assert side.said(peer) == []
    assert side.bodies(watcher) == [b"1"]


@keeps(v3="3.3.4-1 3.8.4-1 3.12.4-1", v5="3.3.4-1 3.8.4-1 3.12.4-1")
def test_what_comes_right_before_a_disconnect_is_answered_before_the_close(side):
    watcher = side.enter(b"w", (b"t", 0))
    side.world.flushes_by_itself = False
    peer = side.enter()
    packets = [side.publish(b"t", b"%d" % qos, qos=qos, packet_id=qos) for qos in (0, 1, 2)]
    peer.send(*packets, side.subscribe(3, (b"u", 0)), mqtt.PINGREQ, mqtt.DISCONNECT, mqtt.PINGREQ)
    assert not peer.is_closed
    side.world.flushes_by_itself = True
    side.world.turn()
    assert sorted(one.kind for one in side.said(peer)) == ["PINGRESP", "PUBACK", "PUBREC", "SUBACK"]
    assert peer.is_closed
    assert side.bodies(watcher) == [b"0", b"1", b"2"]


@keeps(v3="3.14.4-3", v5="3.14.4-3")
def test_disconnect_discards_the_will(side):
    watcher = side.enter(b"w", (b"gone", 0))
    peer = side.enter(will=WILL).send(mqtt.DISCONNECT)
    assert peer.is_closed
    side.pass_time(1)
    assert side.messages(watcher) == []
    if side.is_5:
        side.enter(will=WILL).send(mqtt.disconnect_5(0x00))
        assert side.messages(watcher) == []
        side.enter(will=WILL).send(mqtt.disconnect_5(0x04))
        assert side.bodies(watcher) == [b"w"]
