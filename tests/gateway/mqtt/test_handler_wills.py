"""Wills at the door: when they are published, and when not."""

from __future__ import annotations

from tests.support import mqtt
from tests.support.mqtt import publish, subscribe

WILL = (b"w/t", b"gone", 1, False)


def test_will_is_published_when_the_connection_is_lost(world):  # MQTT-3.1.2-8
    watcher = world.client(b"s", (b"w/#", 1))
    world.client(b"c", will=WILL).vanish()
    assert [(d.topic, d.body, d.qos) for d in watcher.take_deliveries()] == [(b"w/t", b"gone", 1)]


def test_will_is_not_published_after_disconnect(world):  # MQTT-3.1.2-10
    watcher = world.client(b"s", (b"w/#", 1))
    peer = world.client(b"c", will=WILL).send(mqtt.DISCONNECT)
    assert peer.is_closed
    peer.handler.on_closed(world.now_ms)
    assert watcher.bodies() == []


def test_will_is_published_at_the_keep_alive_timeout(world):
    watcher = world.client(b"s", (b"w/#", 0), keep_alive_s=0)
    peer = world.client(b"c", will=WILL, keep_alive_s=10)
    world.now_ms += 14_999
    peer.handler.on_timer(world.now_ms)
    assert not peer.is_closed
    world.now_ms += 1
    peer.handler.on_timer(world.now_ms)
    world.turn()
    assert peer.is_closed
    assert watcher.bodies() == [b"gone"]
    assert world.counts.refused == {"keep_alive_timeout": 1}


def test_will_is_published_at_take_over_and_at_a_protocol_error(world):
    watcher = world.client(b"s", (b"w/#", 0))
    world.client(b"c", will=WILL)
    world.client(b"c", will=(b"w/t", b"second", 0, False)).send(b"\xff\xff")
    assert watcher.bodies() == [b"gone", b"second"]


def test_retained_will_is_retained(world):  # MQTT-3.1.2-17
    world.client(b"c", will=(b"w/t", b"gone", 0, True)).vanish()
    assert world.client(b"s").send(subscribe(1, (b"w/t", 0))).take()[1:] == [publish(b"w/t", b"gone", retain=True)]


def test_will_of_a_killed_process_is_published_at_the_start(world):
    world.client(b"s", (b"w/#", 1), clean=False)
    world.client(b"c", will=WILL).send(publish(b"t", b"x", qos=1, packet_id=1))
    world.close()
    world.open()
    assert [d.body for d in world.connect(b"s", clean=False).take_deliveries()] == [b"gone"]
    world.close()
    world.open()
    assert world.connect(b"s", clean=False).take_deliveries() != []  # not acknowledged
    assert len(world.store.table("mqtt_wills")) == 0


def test_stopping_closes_everybody_and_publishes_wills(world):
    watcher = world.client(b"s", (b"w/#", 1), clean=False)
    peer = world.client(b"c", will=WILL)
    stranger = world.dial()
    world.door.stop(world.now_ms)
    assert watcher.is_closed
    assert peer.is_closed
    assert stranger.is_closed
    world.close()
    world.open()
    assert world.connect(b"s", clean=False).bodies() == [b"gone"]
