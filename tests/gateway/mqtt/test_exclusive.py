"""Exclusive subscriptions, as EMQX has them."""

from __future__ import annotations

from gateway.mqtt.reason_codes import ReasonCode
from tests.support import mqtt
from tests.support.mqtt import publish, subscribe, subscribe_5, unsubscribe
from tests.support.mqtt_5 import enter

FILTER = b"$exclusive/t/+"


def codes(peer):
    return [data[-1] for data in peer.take() if data[0] == 0x90]


def test_second_subscriber_is_told_that_there_is_one(world):
    holder = world.client(b"a", (FILTER, 1))
    assert codes(enter(world, b"b").send(subscribe_5(1, (FILTER, 1)))) == [ReasonCode.QUOTA_EXCEEDED]
    assert codes(world.connect(b"c").send(subscribe(1, (FILTER, 1)))) == [0x80]
    other = world.client(b"d", (b"t/+", 0), (b"$exclusive/u", 0))
    world.client(b"p").send(publish(b"t/1", b"x"))
    assert holder.bodies() == other.bodies() == [b"x"]
    assert codes(holder.send(subscribe(2, (FILTER, 0)))) == [0]  # its own, with other options


def test_it_is_free_again_when_its_holder_goes(world):
    for client_id in (b"a", b"b"):
        peer = world.connect(client_id).send(subscribe(1, (FILTER, 1)))
        assert codes(peer) == [1]
        peer.vanish()
    peer = world.client(b"c", (FILTER, 1))
    peer.send(unsubscribe(2, FILTER))
    assert codes(world.connect(b"d").send(subscribe(1, (FILTER, 1)))) == [1]


def test_durable_session_keeps_it_while_its_client_is_away(world):
    world.client(b"a", (FILTER, 1), clean=False).vanish()
    world.close()
    world.open()
    assert codes(world.connect(b"b").send(subscribe(1, (FILTER, 1)))) == [0x80]
    world.client(b"p").send(publish(b"t/1", b"x", qos=1, packet_id=1))
    again = world.connect(b"a", clean=False)
    assert again.bodies() == [b"x"]
    again.send(mqtt.DISCONNECT)
    world.connect(b"a")  # a clean session ends the other
    assert codes(world.connect(b"b2").send(subscribe(1, (FILTER, 1)))) == [1]


def test_retained_messages_are_those_of_the_filter(world):
    world.client(b"p").send(publish(b"t/1", b"kept", retain=True))
    peer = world.connect(b"a", clean=False).send(subscribe(1, (FILTER, 1), (b"$exclusive/t/1", 0)))
    assert [(one.topic, one.body, one.retain) for one in peer.take_deliveries()] == [(b"t/1", b"kept", 1)] * 2


def test_filters_that_are_none_are_refused(world):
    peer = enter(world, b"a").send(subscribe_5(1, (b"$exclusive/", 0), (b"$exclusive/$share/g/t", 0)))
    (data,) = peer.take()
    assert data.endswith(bytes([ReasonCode.TOPIC_FILTER_INVALID] * 2))
