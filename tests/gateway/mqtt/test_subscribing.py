from __future__ import annotations

from core.lmq.queue_name import mqtt_queue_name
from gateway.mqtt.properties import Property
from tests.support import mqtt
from tests.support.mqtt_5 import enter


def queues(world, topic):
    return [queue.name for queue in world.broker.explain(topic)]


def test_filter_is_bound_to_its_light_queue_while_anybody_has_it(world):
    peers = [world.client(b"s%d" % i, (b"a/+", 0)) for i in range(3)]
    assert queues(world, b"a/b") == [mqtt_queue_name(b"a/+")]
    for peer in peers[:2]:
        peer.vanish()
    assert queues(world, b"a/b") == [mqtt_queue_name(b"a/+")]
    peers[2].send(mqtt.unsubscribe(1, b"a/+"))
    assert queues(world, b"a/b") == []


def test_durable_session_keeps_its_binding_while_it_is_away(world):
    world.client(b"s", (b"a/+", 1), clean=False).vanish()
    assert queues(world, b"a/b") == [mqtt_queue_name(b"a/+")]
    world.close()
    world.open()
    assert queues(world, b"a/b") == [mqtt_queue_name(b"a/+")]


def test_subscription_starts_where_its_queue_ends(world):
    first = world.client(b"first", (b"t", 1))
    publisher = world.client(b"p").send(mqtt.publish(b"t", b"old", qos=1, packet_id=1))
    second = world.client(b"second", (b"t", 1))
    publisher.send(mqtt.publish(b"t", b"new", qos=1, packet_id=2))
    assert first.bodies() == [b"old", b"new"]
    assert second.bodies() == [b"new"]


def test_same_filter_twice_in_a_packet_is_one_subscription(world):  # MQTT-3.8.4-3
    peer = world.client(b"s")
    assert peer.send(mqtt.subscribe(1, (b"t", 0), (b"t", 1))).take() == [mqtt.suback(1, 0, 1)]
    world.client(b"p").send(mqtt.publish(b"t", b"x", qos=1, packet_id=1))
    assert [d.qos for d in peer.take_deliveries()] == [1]


def test_very_long_filters_work_and_come_back(world):
    topic = b"x" * 200 + b"/" + b"y" * 200
    world.client(b"s", (topic, 1), clean=False).vanish()
    world.close()
    world.open()
    world.client(b"p").send(mqtt.publish(topic, b"1", qos=1, packet_id=1))
    assert world.connect(b"s", clean=False).bodies() == [b"1"]


def test_durable_subscriptions_are_refused_while_the_disk_has_no_room_for_them(world):
    peer = world.client(b"s", (b"old", 1), clean=False)
    world.set_room_for_definitions(False)
    world.flushes_by_itself = False
    assert peer.send(mqtt.subscribe(2, (b"new", 1), (b"old", 0))).take() == [mqtt.suback(2, 0x80, 0x80)]
    assert enter(world, b"five", (Property.SESSION_EXPIRY, 0), filters=((b"t", 1),)).take() == []
    passing = world.client(b"p")
    assert passing.send(mqtt.subscribe(3, (b"t", 1))).take() == [mqtt.suback(3, 1)]
    world.flushes_by_itself = True
    world.turn()
    passing.send(*[mqtt.publish(topic, topic, qos=1, packet_id=i) for i, topic in enumerate((b"old", b"new"), 1)])
    assert [(one.body, one.qos) for one in peer.take_deliveries()] == [(b"old", 1)]
    world.set_room_for_definitions(True)
    assert peer.send(mqtt.subscribe(4, (b"new", 1))).take() == [mqtt.suback(4, 1)]


def test_version_5_is_told_that_there_is_no_room_for_a_subscription(world):
    peer = enter(world, b"s", (Property.SESSION_EXPIRY, 60))
    world.set_room_for_definitions(False)
    peer.send(mqtt.subscribe_5(2, (b"t", 1)))
    assert peer.take() == [mqtt.suback_5(2, 0x97, reason=b"quota exceeded: t")]


def test_group_that_would_begin_behind_an_end_that_waits_for_room_is_refused(world):
    peer, other = world.client(b"a", (b"$share/g/t", 1), clean=False), world.client(b"b")
    world.flushes_by_itself = False
    peer.send(mqtt.unsubscribe(1, b"$share/g/t"))
    world.set_room_for_definitions(False)
    assert other.send(mqtt.subscribe(2, (b"$share/g/t", 1))).take() == [mqtt.suback(2, 0x80)]
    world.flushes_by_itself = True
    world.turn()


def test_client_before_mqtt_5_loses_its_connection_where_an_end_cannot_be_written_down(world, caplog):
    peer, passing = world.client(b"s", (b"t", 1), clean=False), world.client(b"passing", (b"t", 1))
    world.set_room_for_definitions(False, is_stuck=True)
    world.flushes_by_itself = False
    assert peer.send(mqtt.unsubscribe(2, b"t")).take() == []
    assert peer.is_closed
    assert "reason=" in caplog.text
    assert passing.send(mqtt.unsubscribe(2, b"t")).take() == [mqtt.unsuback(2)]
    world.set_room_for_definitions(True)
    world.flushes_by_itself = True
    world.turn()
    peer = world.client(b"s", clean=False)
    world.client(b"p").send(mqtt.publish(b"t", b"x", qos=1, packet_id=1))
    assert peer.bodies() == [b"x"]
    assert peer.send(mqtt.unsubscribe(3, b"t")).take() == [mqtt.unsuback(3)]


def test_mqtt_5_client_is_refused_an_end_that_cannot_be_written_down_and_keeps_its_subscription(world):
    peer = enter(world, b"s", (Property.SESSION_EXPIRY, 60), clean=False)
    passing = enter(world, b"passing")
    for one in (peer, passing):
        one.send(mqtt.subscribe_5(1, (b"t", 1))).take()
    world.set_room_for_definitions(False, is_stuck=True)
    world.flushes_by_itself = False
    assert peer.send(mqtt.unsubscribe_5(2, b"t", b"u")).take() == [mqtt.unsuback_5(2, 0x83, 0x83)]
    assert passing.send(mqtt.unsubscribe_5(2, b"t", b"u")).take() == [mqtt.unsuback_5(2, 0, 0x11)]
    world.set_room_for_definitions(True)
    world.flushes_by_itself = True
    world.client(b"p").send(mqtt.publish(b"t", b"x"))
    assert (len(peer.take()), passing.take()) == (1, [])
    assert peer.send(mqtt.unsubscribe_5(3, b"t", b"u")).take() == [mqtt.unsuback_5(3, 0, 0x11)]
