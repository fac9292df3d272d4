"""What a start sends a session again has not ended; what it does not send again ended as it did before."""

from __future__ import annotations

import pytest

from core.lmq.queue_name import mqtt_queue_name
from gateway.mqtt.properties import Property, encode_properties
from gateway.mqtt.session import NEVER
from gateway.mqtt.sieve import TOO_LARGE
from tests.support import mqtt
from tests.support.exactly_once import restart
from tests.support.mqtt import puback, pubcomp, publish, pubrec, pubrel
from tests.support.mqtt_5 import got
from tests.support.walks import all_of

KEY = mqtt_queue_name(b"t")
SMALL, LARGE = b"small", b"x" * 400
STAYS = (Property.SESSION_EXPIRY, NEVER)
PACKET_MAX = (Property.PACKET_BYTES_MAX, 200)


def enter(world, *more, client_id=b"c"):
    return world.dial().send(mqtt.connect_5(client_id, clean=False, properties=encode_properties([STAYS, *more])))


def begin(world, qos):
    """Have a client in the middle of a small, a large and a small message, all sent to it; return the connection."""
    peer = enter(world).send(mqtt.subscribe_5(1, (b"t", qos)))
    publisher = world.client(b"publisher")
    for number, body in enumerate((SMALL, LARGE, SMALL), 1):
        publisher.send(publish(b"t", body, qos=2, packet_id=number), pubrel(number))
    publisher.vanish()
    peer.take()
    return peer


def told(world):
    """Return for what reason each of the messages ended, None where for none."""
    found = [world.broker.lasting_endings.find(KEY, b"c", offset) for offset in range(3)]
    return [one and one.reason for one in found]


def stages(world):
    """Return how far the client's session is with each of the messages."""
    found = [all_of(world.door.inventory().fates(KEY, offset)) for offset in range(3)]
    return [one.stage.value for (one,) in found]


@pytest.mark.parametrize("qos", [1, 2])
def test_message_of_an_ended_subscription_that_comes_again_after_a_kill_is_not_told_as_dropped(world, qos):
    peer = begin(world, 1)
    peer.send(mqtt.subscribe_5(2, (b"t", 0)), mqtt.subscribe_5(3, (b"t", qos))).vanish()
    enter(world, PACKET_MAX).vanish()
    assert told(world) == [None, TOO_LARGE, None]
    restart(world)
    peer = enter(world)
    again = got(peer)
    assert [one.body for one in again] == [SMALL, LARGE, SMALL]
    assert told(world) == [None, None, None]
    peer.send(*[puback(one.packet_id) for one in again]).vanish()
    restart(world)
    assert world.door.sessions.find(b"c") is not None
    assert told(world) == [None, None, None]


def test_other_messages_of_an_ended_subscription_are_told_as_before(world):
    peer = begin(world, 1)
    peer.send(mqtt.subscribe_5(2, (b"t", 0))).take()
    world.broker.lasting_endings.note_run((KEY, b"c"), 1, 2, TOO_LARGE, world.now_ms)
    world.broker.lasting_endings.note_run((KEY, b"c"), 3, 9, "slow_subscriber", world.now_ms)  # of what came at QoS 0
    peer.vanish()
    restart(world)
    assert world.door.sessions.find(b"c") is not None
    assert told(world) == [None, None, None]
    assert world.broker.lasting_endings.find(KEY, b"c", 4).reason == "slow_subscriber"


@pytest.mark.parametrize("is_complete", [False, True])
@pytest.mark.parametrize("ends", [False, True])
def test_what_was_only_released_at_qos_2_stays_told_as_dropped(world, ends, is_complete):
    peer = begin(world, 2)
    if ends:
        peer.send(mqtt.subscribe_5(2, (b"t", 0)))
    peer.vanish()
    peer = enter(world, PACKET_MAX)
    if is_complete:
        peer.send(pubcomp(2)).take()
    peer.vanish()
    assert told(world) == [None, TOO_LARGE, None]
    restart(world)
    peer = enter(world)
    assert [one.body for one in got(peer)] == [SMALL, SMALL]
    assert told(world) == [None, TOO_LARGE, None]


def test_what_was_dropped_before_it_was_sent_is_given_once_more_behind_what_is_not(world):
    """At QoS 2, with a place that is before all of it."""
    peer = begin(world, 2)
    peer.send(pubrec(2)).take()
    peer.send(pubcomp(2)).vanish()
    world.broker.lasting_endings.note_run((KEY, b"c"), 1, 9, TOO_LARGE, world.now_ms)
    restart(world)
    peer = enter(world)
    assert [one.body for one in got(peer)] == [SMALL, SMALL]
    assert told(world) == [None, TOO_LARGE, None]
    assert world.broker.lasting_endings.find(KEY, b"c", 3) is None


def complete_second(peer):
    peer.send(pubrec(2)).take()
    peer.send(pubcomp(2)).vanish()


def test_what_was_sent_at_qos_2_before_a_kill_is_not_told_as_waiting_but_where_it_is_to_be_sent_again(world):
    complete_second(begin(world, 2))
    restart(world)
    for _ in range(2):  # the session is looked at, then loaded
        assert stages(world) == ["taken", "done", "taken"]
        assert world.door.sessions.find(b"c") is not None


def test_what_was_sent_at_qos_2_before_a_kill_is_not_told_as_given_way_to_others(make_world):
    world = make_world(queued_count_max=2)
    complete_second(begin(world, 2))
    restart(world)
    publisher = world.client(b"publisher")
    publisher.send(*[publish(b"t", b"%d" % number, qos=1, packet_id=number) for number in range(1, 6)])
    dropped = world.counts.dropped.get("queue_full", 0)
    peer = enter(world)
    found = [one.body for one in got(peer)]
    assert found[:2] == [SMALL, SMALL]
    assert told(world) == [None, None, None]
    ends = [world.broker.lasting_endings.find(KEY, b"c", offset) for offset in range(3, 8)]
    assert [one is not None for one in ends] == [b"%d" % number not in found for number in range(1, 6)]
    assert world.counts.dropped["queue_full"] - dropped == 5 - len(found[2:]) > 0


def test_what_was_sent_at_qos_2_before_a_kill_has_not_expired_when_it_is_complete(world):
    peer = enter(world).send(mqtt.subscribe_5(1, (b"t", 2)))
    lives = encode_properties([(Property.MESSAGE_EXPIRY, 5)])
    publisher = enter(world, client_id=b"publisher")
    for number in (1, 2):
        publisher.send(mqtt.publish_5(b"t", SMALL, lives, qos=2, packet_id=number), pubrel(number))
    assert len(got(peer)) == 2
    complete_second(peer)
    restart(world)
    world.now_ms += 6_000
    enter(world).take()
    assert told(world)[1] is None
