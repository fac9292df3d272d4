"""What clients of MQTT 5 may ask for with a SUBSCRIBE, at the door."""

from __future__ import annotations

import pytest

from tests.support import mqtt
from tests.support.mqtt import (
    connect_5,
    puback,
    publish,
    publish_5,
    suback_5,
    subscribe_5,
    unsubscribe_5,
)
from tests.support.mqtt_5 import P, encoded, enter, got


def test_subscription_identifier_comes_with_each_message(world):  # MQTT-3.3.4-3
    subscriber = enter(world, b"s", (P.SESSION_EXPIRY, 100))
    subscriber.send(subscribe_5(1, (b"t", 1), properties=encoded((P.SUBSCRIPTION_ID, 300))))
    subscriber.send(subscribe_5(2, (b"#", 1), properties=encoded((P.SUBSCRIPTION_ID, 7))))
    subscriber.take()
    publisher = world.client(b"p").send(publish(b"t", b"x"))
    assert sorted(one.properties.number(P.SUBSCRIPTION_ID, 0) for one in got(subscriber)) == [7, 300]
    subscriber.vanish()
    world.close()
    world.open()
    world.client(b"p").send(publish(b"t", b"y", qos=1, packet_id=1))
    peer = world.dial().send(connect_5(b"s", clean=False))
    assert sorted(one.properties.number(P.SUBSCRIPTION_ID, 0) for one in got(peer) if one.body == b"y") == [7, 300]
    del publisher


def test_own_messages_do_not_come_back_where_they_are_not_wanted(world):  # MQTT-3.8.3-3
    peer = enter(world, b"c", filters=[(b"t", 0x04 | 1)])
    other = enter(world, b"o", filters=[(b"t", 1)])
    peer.send(publish_5(b"t", b"mine"))
    other.send(publish_5(b"t", b"others"))
    assert [one.body for one in got(peer)] == [b"others"]
    assert [one.body for one in got(other)] == [b"mine", b"others"]


def test_retain_flag_is_kept_where_that_is_wanted(world):  # MQTT-3.3.1-12, MQTT-3.3.1-13
    keeps = enter(world, b"k", filters=[(b"t", 0x08 | 1)])
    plain = enter(world, b"o", filters=[(b"t", 1)])
    enter(world, b"p").send(publish_5(b"t", b"r", retain=True), publish_5(b"t", b"n"))
    assert [(one.body, one.retain) for one in got(keeps)] == [(b"r", 1), (b"n", 0)]
    assert [(one.body, one.retain) for one in got(plain)] == [(b"r", 0), (b"n", 0)]


@pytest.mark.parametrize(("handling", "first", "second"), [(0x00, 1, 1), (0x10, 1, 0), (0x20, 0, 0)])
@pytest.mark.parametrize("expiry_s", [0, 100])
def test_retained_messages_come_as_the_subscription_says(world, handling, first, second, expiry_s):
    enter(world, b"p").send(publish_5(b"t", b"r", retain=True, qos=1, packet_id=1))  # MQTT-3.3.1-9 to MQTT-3.3.1-11
    peer = enter(world, b"c", (P.SESSION_EXPIRY, expiry_s))
    counts = []
    for _ in range(2):
        messages = got(peer.send(subscribe_5(1, (b"t", handling | 1))))
        peer.send(*[puback(one.packet_id) for one in messages])
        counts.append(len(messages))
    assert counts == [first, second]


def test_filters_are_answered_with_their_reasons(make_world):
    world = make_world(subscription_count_max=2)
    peer = enter(world)
    peer.send(subscribe_5(1, (b"a", 2), (b"b", 0), (b"c", 1)))
    assert peer.take() == [suback_5(1, 2, 0, 0x97, reason=b"quota exceeded: c")]
    peer.send(unsubscribe_5(2, b"a", b"z"))
    assert peer.take() == [mqtt.packet(0xB0, b"\0\2\0\x00\x11")]


def test_subscription_changes_its_options_and_keeps_its_place(world):  # MQTT-3.8.4-3
    peer = enter(world, b"c", filters=[(b"t", 1)])
    peer.send(subscribe_5(2, (b"t", 0x04 | 1)))
    peer.take()
    peer.send(publish_5(b"t", b"mine"))
    world.client(b"p").send(publish(b"t", b"others"))
    assert [one.body for one in got(peer)] == [b"others"]
    peer.send(subscribe_5(2, (b"t", 0)))
    peer.take()
    peer.send(publish_5(b"t", b"mine"))
    assert [one.body for one in got(peer)] == [b"mine"]
