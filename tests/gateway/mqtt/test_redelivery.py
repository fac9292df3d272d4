"""Messages that are sent again, and retained ones: nobody is held up, and nothing is lost."""

from __future__ import annotations

import pytest

from tests.support import mqtt
from tests.support.mqtt_5 import P, encoded, enter, got


def test_what_is_sent_again_is_counted_of_the_door_and_of_the_session(world):
    peer = world.client(b"s", (b"t", 1), clean=False)
    other = world.client(b"o", (b"t", 1))
    world.client(b"p").send(*[mqtt.publish(b"t", b"%d" % i, qos=i % 2, packet_id=1) for i in range(6)])
    for one in peer.take_deliveries()[:3]:  # the second was at QoS 1
        peer.send(*[mqtt.puback(one.packet_id)] if one.qos else [])
    assert len(other.take_deliveries()) == 6
    for _ in range(2):
        peer.vanish()
        peer = world.connect(b"s", clean=False)
        assert [(d.body, d.dup) for d in peer.take_deliveries()] == [(b"3", True), (b"5", True)]
    sessions = {one.client: one.redelivered for one in world.door.inventory().sessions() if one is not None}
    assert sessions == {"s": 4, "o": 0, "p": 0}
    assert world.counts.redelivered == 4


def test_what_may_have_been_sent_before_a_restart_is_counted(world):
    peer = world.client(b"s", (b"t", 1), clean=False)
    world.client(b"p").send(*[mqtt.publish(b"t", b"%d" % i, qos=1, packet_id=1) for i in range(5)])
    first, *_ = peer.take_deliveries()
    peer.send(mqtt.puback(first.packet_id))
    peer.vanish()
    world.close()
    world.open()
    before = world.counts.redelivered
    got = world.connect(b"s", clean=False).take_deliveries()
    assert world.counts.redelivered - before == sum(one.dup for one in got) == 4
    world.client(b"p").send(mqtt.publish(b"t", b"new", qos=1, packet_id=1))
    assert world.counts.redelivered - before == 4


@pytest.mark.parametrize("strategy", ["round_robin", "hash_topic"])
def test_what_another_member_of_a_shared_group_had_is_counted(make_world, strategy):
    world = make_world(shared_strategy=strategy)
    leaver = world.client(b"a", (b"$share/g/t", 1))
    world.client(b"p").send(*[mqtt.publish(b"t", b"%d" % i, qos=1, packet_id=1) for i in range(4)])
    assert len(leaver.take_deliveries()) == 4
    assert world.counts.redelivered == 0
    stayer = world.client(b"b", (b"$share/g/t", 1))
    leaver.vanish()
    assert [one.body for one in stayer.take_deliveries()] == [b"0", b"1", b"2", b"3"]
    assert world.counts.redelivered == 4
    others = world.client(b"c", (b"$share/others/t", 1))
    (found,) = [one for one in world.door.inventory().repeating_groups() if one is not None]
    assert (found.group, found.topic, found.redelivered, found.came) == ("g", "t", 4, 4)
    assert {one.group: one.redelivered for one in world.door.inventory().groups()} == {"g": 4, "others": 0}
    others.vanish()


def test_what_is_sent_again_waits_for_the_outlet(world):
    peer = world.client(b"s", (b"t", 1), clean=False)
    world.client(b"p").send(*[mqtt.publish(b"t", b"%d" % i, qos=1, packet_id=1) for i in range(5)])
    peer.vanish()
    again = world.dial()
    again.stall()
    again.send(mqtt.connect(b"s", clean=False))
    assert again.take() == [mqtt.connack(session_present=True)]
    again.drain()
    got = again.take_deliveries()
    assert [(d.body, d.dup) for d in got] == [(b"%d" % i, True) for i in range(5)]


def test_subscriptions_wait_until_all_is_sent_again(world):  # MQTT-4.6.0-1
    peer = world.client(b"s", (b"a", 1), (b"b", 1), clean=False)
    publisher = world.client(b"p")
    publisher.send(*[mqtt.publish(b"ab"[i % 2 :][:1], b"%d" % i, qos=1, packet_id=1) for i in range(6)])
    before = peer.take_deliveries()
    peer.vanish()
    publisher.send(mqtt.publish(b"a", b"new", qos=1, packet_id=1))
    got = world.connect(b"s", clean=False).take_deliveries()
    assert [(d.body, d.packet_id) for d in got[:6]] == [(d.body, d.packet_id) for d in before]
    assert [d.body for d in got[6:]] == [b"new"]


def test_reconnecting_again_and_again_loses_nothing(make_world):
    world = make_world(inflight_max=4)
    world.client(b"s", (b"t", 1), clean=False).vanish()
    world.client(b"p").send(*[mqtt.publish(b"t", b"%d" % i, qos=1, packet_id=1) for i in range(30)])
    acked = []
    for _ in range(40):
        peer = world.connect(b"s", clean=False)
        got = peer.take_deliveries()
        if got:
            acked.append(got[0].body)
            peer.send(mqtt.puback(got[0].packet_id))
        peer.vanish()
    assert acked == [b"%d" % i for i in range(30)]


def test_retained_messages_stop_while_the_outlet_is_full(world):
    world.client(b"p").send(*[mqtt.publish(b"r/%d" % i, b"x", retain=True) for i in range(9)])
    peer = world.client(b"s")
    peer.stall()
    peer.send(mqtt.subscribe(1, (b"r/#", 0)))
    assert peer.take() == [mqtt.suback(1, 0)]
    peer.drain()
    assert len(peer.take_deliveries()) == 9


def test_retained_message_comes_again_with_the_identifier_of_its_subscription(world):  # MQTT-3.3.4-3
    world.client(b"p").send(mqtt.publish(b"t", b"x", qos=1, packet_id=1, retain=True))
    lasting = (P.SESSION_EXPIRY, 100)
    peer = enter(world, b"c", lasting)
    peer.send(mqtt.subscribe_5(1, (b"t", 1), properties=encoded((P.SUBSCRIPTION_ID, 9))))
    assert [one.properties.numbers[P.SUBSCRIPTION_ID] for one in got(peer)] == [9]
    peer.vanish()
    peer = world.dial().send(mqtt.connect_5(b"c", clean=False, properties=encoded(lasting)))
    assert [(one.dup, one.properties.numbers[P.SUBSCRIPTION_ID]) for one in got(peer)] == [(1, 9)]


@pytest.mark.parametrize("is_retained", [False, True])
def test_what_is_too_large_for_the_next_connection_is_not_sent_again(world, is_retained):  # MQTT-3.1.2-24
    lasting = (P.SESSION_EXPIRY, 100)
    publisher = world.client(b"p")
    texts = [b"small", b"x" * 400, b"little", b"y" * 400, b"last"]
    sent = [mqtt.publish(b"t/%d" % i, text, qos=1, packet_id=1, retain=is_retained) for i, text in enumerate(texts)]
    if is_retained:
        publisher.send(*sent)
    peer = enter(world, b"c", lasting, filters=[(b"t/+", 1)])
    publisher.send(*([] if is_retained else sent))
    peer.vanish()
    small = (P.PACKET_BYTES_MAX, 300)
    peer = world.dial().send(mqtt.connect_5(b"c", clean=False, properties=encoded(lasting, small)))
    again = got(peer)
    assert [one.body for one in again] == [b"small", b"little", b"last"]
    assert world.counts.dropped["too_large_for_subscriber"] == 2
    peer.send(*[mqtt.puback(one.packet_id) for one in again]).vanish()
    peer = world.dial().send(mqtt.connect_5(b"c", clean=False, properties=encoded(lasting)))
    assert got(peer) == []


def test_log_need_not_keep_what_was_left_out_for_a_session(world):
    no_local = 0x04
    peer = enter(world, b"c", (P.SESSION_EXPIRY, 100), filters=[(b"t", no_local | 1)])
    peer.send(*[mqtt.publish_5(b"t", b"own", qos=1, packet_id=1 + i) for i in range(5)])
    assert [position for _, position in world.door.sessions.held_positions()] == [5]
