"""What clients of MQTT 5 publish and are sent at the door, through all its layers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from gateway.mqtt.properties import OF_PUBLISH, decode_properties, encode_properties
from gateway.mqtt.terms import RECEIVE_MAX
from tests.support import mqtt
from tests.support.mqtt import (
    connect_5,
    puback,
    pubcomp,
    publish,
    publish_5,
    pubrec,
    pubrel,
    refusal_5,
    subscribe_5,
)
from tests.support.mqtt_5 import P, encoded, enter, got
from tests.support.mqtt_door import STORE, World

# PUBLISH and its properties


def test_properties_go_from_publisher_to_subscriber(world):  # MQTT-3.3.2-17, MQTT-3.3.2-18
    subscriber = enter(world, b"s", filters=[(b"t", 2)])
    old = world.client(b"o", (b"t", 0))
    items = [
        (P.PAYLOAD_FORMAT, 1),
        (P.MESSAGE_EXPIRY, 100),
        (P.CONTENT_TYPE, b"text/plain"),
        (P.RESPONSE_TOPIC, b"answers/1"),
        (P.CORRELATION, b"\x00\xff"),
        (P.USER, (b"b", b"1")),
        (P.USER, (b"a", b"2")),
        (P.USER, (b"b", b"3")),
        (P.USER, (b"", b"")),
    ]
    publisher = enter(world, b"p")
    for qos in range(3):
        publisher.send(publish_5(b"t", b"x%d" % qos, encoded(*items), qos=qos, packet_id=5))
    assert publisher.take() == [puback(5), pubrec(5)]
    expected, _ = decode_properties(encoded(*items), 0, OF_PUBLISH)
    messages = got(subscriber)
    assert [(one.body, one.qos) for one in messages] == [(b"x0", 0), (b"x1", 1), (b"x2", 2)]
    for one in messages:
        assert one.properties.texts == expected.texts
        assert one.properties.numbers == expected.numbers
        assert one.properties.users == expected.users
    assert old.bodies() == [b"x0", b"x1", b"x2"]


def test_messages_of_older_versions_have_no_properties(world):
    subscriber = enter(world, b"s", filters=[(b"t", 1)])
    world.client(b"p").send(publish(b"t", b"x", qos=1, packet_id=1))
    (one,) = got(subscriber)
    assert (one.body, one.qos, one.properties.users) == (b"x", 1, ())


def test_expiry_is_counted_down_and_what_is_over_is_not_sent(world):  # MQTT-3.3.2-5, MQTT-3.3.2-6
    enter(world, b"s", (P.SESSION_EXPIRY, 1_000), filters=[(b"t", 1)]).vanish()
    old = world.client(b"o", (b"t", 1), clean=False)
    old.vanish()
    publisher = enter(world, b"p")
    publisher.send(publish_5(b"t", b"short", encoded((P.MESSAGE_EXPIRY, 5)), qos=1, packet_id=1))
    publisher.send(publish_5(b"t", b"long", encoded((P.MESSAGE_EXPIRY, 50)), qos=1, packet_id=2))
    world.now_ms += 7_500
    peer = world.dial().send(connect_5(b"s", clean=False))
    messages = got(peer)
    assert [(one.body, one.properties.number(P.MESSAGE_EXPIRY, -1)) for one in messages] == [(b"long", 43)]
    assert world.connect(b"o", clean=False).bodies() == [b"long"]
    assert world.counts.dropped == {"expired": 2}


def test_retained_message_expires(world):
    publisher = enter(world, b"p")
    publisher.send(publish_5(b"t", b"x", encoded((P.MESSAGE_EXPIRY, 5)), retain=True))
    world.now_ms += 2_000
    subscriber = enter(world, b"s")
    (one,) = got(subscriber.send(subscribe_5(1, (b"t", 0))))
    assert (one.body, one.retain, one.properties.number(P.MESSAGE_EXPIRY, -1)) == (b"x", 1, 3)
    world.now_ms += 3_000
    assert got(subscriber.send(subscribe_5(1, (b"t", 0)))) == []


def test_topic_alias_stands_for_a_topic(world):  # MQTT-3.3.2-8 to MQTT-3.3.2-12
    subscriber = world.client(b"s", (b"#", 0))
    alias = encoded((P.TOPIC_ALIAS, 7))
    publisher = enter(world, b"p")
    publisher.send(
        publish_5(b"a", b"1", alias),
        publish_5(b"", b"2", alias),
        publish_5(b"b", b"3", alias),
        publish_5(b"", b"4", alias, qos=1, packet_id=9),
    )
    assert publisher.take() == [puback(9)]
    assert [(d.topic, d.body) for d in subscriber.take_deliveries()] == [
        (b"a", b"1"),
        (b"a", b"2"),
        (b"b", b"3"),
        (b"b", b"4"),
    ]


def test_aliases_mean_the_same_where_a_run_is_cut(world):
    subscriber = world.client(b"s", (b"#", 0))
    publisher = enter(world, b"p")
    publisher.transport.share = 1
    first, second = encoded((P.TOPIC_ALIAS, 1)), encoded((P.TOPIC_ALIAS, 2))
    publisher.send(
        *[publish_5(b"t%d" % i, b"new", second) for i in range(3)],
        publish_5(b"a", b"1", first),
        publish_5(b"b", b"2", first),
        publish_5(b"", b"3", first),
    )
    got_pairs = [(d.topic, d.body) for d in subscriber.take_deliveries()]
    assert got_pairs[3:] == [(b"a", b"1"), (b"b", b"2"), (b"b", b"3")]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (publish_5(b"", b"x"), 0x82),
        (publish_5(b"", b"x", encode_properties([(P.TOPIC_ALIAS, 3)])), 0x82),
        (publish_5(b"t", b"x", encode_properties([(P.TOPIC_ALIAS, 33)])), 0x94),
        (publish_5(b"t", b"x", encode_properties([(P.TOPIC_ALIAS, 0)])), 0x94),
        (publish_5(b"t", b"x", encode_properties([(P.SUBSCRIPTION_ID, 3)])), 0x82),
        (publish_5(b"t", b"x", encode_properties([(P.RESPONSE_TOPIC, b"a/#")])), 0x82),
        (publish_5(b"a/#", b"x"), 0x90),
        (publish_5(b"\xff", b"x"), 0x81),
        (mqtt.packet(0x36, b"\0\1t\0\1\0"), 0x81),
        (subscribe_5(1, (b"a/#/b", 0)), 0x8F),
        (subscribe_5(1, (b"a", 0x30)), 0x82),
        (subscribe_5(1, (b"$share/g", 1)), 0x8F),
        (subscribe_5(1, (b"$share/+/a", 1)), 0x8F),
        (subscribe_5(1, (b"$share//a", 1)), 0x8F),
        (subscribe_5(1, (b"$share/g/a", 5)), 0x82),
        (subscribe_5(1, (b"a", 3)), 0x81),
        (mqtt.packet(0xF0, b"\x18" + encode_properties([(P.AUTH_METHOD, b"x")])), 0x82),
        (connect_5(), 0x82),
        (mqtt.packet(0x40, b"\0\1\0\2\x11\0"), 0x81),
        (b"\x30\xff\xff\xff\x7f", 0x95),
    ],
)
def test_each_bad_packet_is_answered_with_its_reason(world, data, code):
    peer = enter(world).send(data)
    (answer,) = peer.take()
    assert (answer[0], answer[2]) == (0xE0, code)
    found, _ = decode_properties(answer, 3, frozenset({P.REASON}))
    assert found.texts[P.REASON]
    assert peer.is_closed


def test_release_of_nothing_is_answered_with_its_reason(world):
    assert enter(world).send(pubrel(9)).take() == [b"\x70\x03\0\x09\x92"]
    subscriber = enter(world, b"s", filters=[(b"t", 2)])
    assert subscriber.send(pubrec(9)).take() == [b"\x62\x03\0\x09\x92"]


def test_client_that_fails_to_take_a_message_is_sent_it_no_more(world):
    subscriber = enter(world, b"s", filters=[(b"t", 2)])
    enter(world, b"p").send(publish_5(b"t", b"x", qos=2, packet_id=1))
    (one,) = got(subscriber)
    assert subscriber.send(b"\x50\x04" + one.packet_id.to_bytes(2, "big") + b"\x97\0").take() == []
    assert subscriber.send(pubcomp(one.packet_id)).take() == []


# Flow


def test_client_is_sent_no_more_than_it_takes_at_once(world):  # MQTT-3.3.4-9
    subscriber = enter(world, b"s", (P.RECEIVE_MAX, 2), (P.SESSION_EXPIRY, 100), filters=[(b"t", 1)])
    enter(world, b"p").send(*[publish_5(b"t", b"%d" % i, qos=1, packet_id=i + 1) for i in range(5)])
    first = got(subscriber)
    assert [one.body for one in first] == [b"0", b"1"]
    subscriber.send(puback(first[0].packet_id))
    assert [one.body for one in got(subscriber)] == [b"2"]
    subscriber.vanish()
    again = world.dial().send(connect_5(b"s", clean=False, properties=encoded((P.RECEIVE_MAX, 1))))
    (one,) = got(again)
    assert (one.body, one.dup) == (b"1", 1)
    (one,) = got(again.send(puback(one.packet_id)))
    assert (one.body, one.dup) == (b"2", 1)


def test_client_that_sends_more_at_once_than_it_may_is_told_so(world):  # MQTT-3.3.4-7
    world.flushes_by_itself = False
    peer = enter(world)
    for start in range(0, RECEIVE_MAX, 512):
        peer.send(*[publish_5(b"t", b"", qos=1, packet_id=i + 1) for i in range(start, start + 512)])
    assert not peer.is_closed
    peer.send(*[publish_5(b"t", b"", qos=1, packet_id=i + 5_000) for i in range(8)])
    (answer,) = peer.take()
    assert answer[2] == 0x93
    assert peer.is_closed


def test_message_too_large_for_one_costs_nobody_else_anything(world):  # MQTT-3.1.2-24, MQTT-3.1.2-25
    small = enter(world, b"s", (P.PACKET_BYTES_MAX, 60), filters=[(b"t", 1)])
    large = enter(world, b"l", filters=[(b"t", 1)])
    publisher = enter(world, b"p")
    publisher.send(*[publish_5(b"t", b"x" * size, qos=1, packet_id=size) for size in (10, 60, 20)])
    assert [len(one.body) for one in got(small)] == [10, 20]
    assert [len(one.body) for one in got(large)] == [10, 60, 20]
    assert world.counts.dropped == {"too_large_for_subscriber": 1}


# A disk that is low on room


def test_publishers_are_refused_while_the_room_is_low_and_their_pings_answered(make_world):
    world = make_world(store_settings=STORE.model_copy(update={"disk_free_bytes_min": 1_000}))
    subscriber = world.client(b"s", (b"t", 0))
    peer = enter(world).send(publish_5(b"t", b"0", qos=2, packet_id=9))
    world.set_free(0)
    peer.send(
        publish_5(b"t", b"0", qos=2, packet_id=9, dup=True),
        publish_5(b"t", b"1", qos=1, packet_id=1),
        publish_5(b"t", b"2", qos=2, packet_id=2),
        publish_5(b"t", b"3"),
        mqtt.PINGREQ,
    )
    packets = peer.take()
    packets.remove(mqtt.PINGRESP)
    why = b"quota exceeded: the disk is low on room"
    assert packets == [pubrec(9), pubrec(9), refusal_5(puback(1), 0x97, why), refusal_5(pubrec(2), 0x97, why)]
    world.set_free(10_000)
    peer.send(publish_5(b"t", b"4", qos=1, packet_id=1))
    assert peer.take() == [puback(1)]
    assert subscriber.bodies() == [b"0", b"4"]


# Anything


@settings(max_examples=150, deadline=None)
@given(data=st.binary(max_size=60), first=st.sampled_from([0x30, 0x32, 0x34, 0x82, 0xA2, 0x40, 0x50, 0x62, 0x70, 0xE0]))
def test_any_packet_is_taken_or_refused_and_nobody_else_notices(tmp_path_factory, data, first):
    world = _shared_world(tmp_path_factory)
    watcher = enter(world, b"w", filters=[(b"fine", 0)])
    peer = enter(world, b"fuzz").send(mqtt.packet(first, data))
    if peer.is_closed and first != 0xE0:
        answers = peer.take()
        assert answers[-1][0] == 0xE0
        assert answers[-1][2] >= 0x81
    world.client(b"p").send(publish(b"fine", b"x"))
    assert [one.body for one in got(watcher)] == [b"x"]
    for one in list(world.peers):
        if not one.is_closed:
            one.vanish()
    world.peers.clear()


_WORLDS = []


def _shared_world(tmp_path_factory):
    if not _WORLDS:
        _WORLDS.append(World(tmp_path_factory.mktemp("fuzz")))
    return _WORLDS[0]
