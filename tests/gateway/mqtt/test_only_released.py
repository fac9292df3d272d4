"""A message at QoS 2 that is not sent again is released all the same: its packet identifier comes to its end."""

from __future__ import annotations

import pytest

from core.lmq.queue_name import mqtt_queue_name
from tests.support import mqtt
from tests.support.exactly_once import restart
from tests.support.mqtt import connack, pubcomp, publish, pubrec, pubrel
from tests.support.mqtt_5 import P, encoded
from tests.support.store import retire

HOUR_MS = 3_600_000
LASTING = (P.SESSION_EXPIRY, 100)


def send_one(world, body=b"x", *, retain=False):
    world.client(b"p").send(publish(b"t", body, qos=2, packet_id=1, retain=retain), pubrel(1)).vanish()


def lose_from_log(world):
    """Let retention take all messages so far, needed or not."""
    filler = world.client(b"filler")
    for _ in range(30):
        filler.send(publish(b"other", b"x" * 50_000))
    filler.vanish()
    world.store.flush()
    world.store.prepare()
    assert retire(world.store, world.now_ms + 1_000 * HOUR_MS) > 0
    queue_ref = world.broker.find_queue(mqtt_queue_name(b"t"))
    assert world.broker.min_offset(queue_ref) == world.broker.max_offset(queue_ref)


def is_released_once(world, packet_id):
    """Check that a client is told to release an identifier until it has, and then sent what is new."""
    for _ in range(2):
        peer = world.connect(b"c", clean=False)
        assert peer.take() == [connack(session_present=True), pubrel(packet_id)]
        peer.vanish()
        restart(world)
    peer = world.connect(b"c", clean=False)
    peer.send(pubcomp(packet_id)).vanish()
    peer = world.connect(b"c", clean=False)
    assert peer.take() == [connack(session_present=True)]
    assert list(world.broker.table("mqtt_ended").items()) == []


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("is_ended", [False, True])
def test_what_the_log_has_no_more_is_released(world, is_killed, is_ended):
    peer = world.client(b"c", (b"t", 2), clean=False)
    send_one(world)
    (one,) = peer.take_deliveries()
    if is_ended:
        peer.send(mqtt.unsubscribe(2, b"t"))
    peer.vanish()
    lose_from_log(world)
    if is_killed:
        restart(world)
    is_released_once(world, one.packet_id)


def test_retained_message_that_is_no_more_is_released(world):
    send_one(world, retain=True)
    peer = world.client(b"c", clean=False)
    (one,) = peer.send(mqtt.subscribe(1, (b"t", 2))).take_deliveries()
    peer.send(mqtt.subscribe(2, (b"t", 0)))
    peer.vanish()
    world.client(b"p").send(publish(b"t", b"", retain=True)).vanish()
    lose_from_log(world)
    is_released_once(world, one.packet_id)


def test_what_is_too_large_for_a_new_connection_is_released(world):
    peer = world.dial().send(mqtt.connect_5(b"c", clean=False, properties=encoded(LASTING)))
    peer.send(mqtt.subscribe_5(1, (b"t", 2))).take()
    send_one(world, b"x" * 400)
    (one,) = peer.take_deliveries()
    peer.vanish()
    small = encoded(LASTING, (P.PACKET_BYTES_MAX, 300))
    peer = world.dial().send(mqtt.connect_5(b"c", clean=False, properties=small))
    assert peer.take()[1:] == [pubrel(one.packet_id)]
    peer.send(pubcomp(one.packet_id)).vanish()
    peer = world.dial().send(mqtt.connect_5(b"c", clean=False, properties=encoded(LASTING)))
    assert peer.take()[1:] == []


@pytest.mark.parametrize("has_it", [False, True])
def test_what_may_not_be_read_any_more_is_released(world, has_it):
    peer = world.client(b"c", (b"t", 2), clean=False)
    send_one(world)
    (one,) = peer.take_deliveries()
    if has_it:
        peer.send(pubrec(one.packet_id))
    peer.vanish()
    assert world.door.subscribing.end_denied(world.door.sessions.find(b"c"), NoRights())
    is_released_once(world, one.packet_id)


@pytest.mark.parametrize("topic_filter", [b"t", b"$share/g/t"])
def test_what_its_client_has_is_not_told_as_not_permitted(world, topic_filter):
    peer = world.client(b"c", (topic_filter, 2), clean=False)
    send_one(world)
    (one,) = peer.take_deliveries()
    peer.send(pubrec(one.packet_id)).vanish()
    world.door.subscribing.end_denied(world.door.sessions.find(b"c"), NoRights())
    assert world.broker.lasting_endings.find(mqtt_queue_name(b"t"), b"c", 0) is None
    assert world.broker.pop.endings.find(mqtt_queue_name(b"t"), b"mqtt:g", 0) is None


class NoRights:
    """The right to read nothing."""

    def may_subscribe(self, topic_filter):
        return False
