"""Retained messages at the door: who gets them, and what is owed of them."""

from __future__ import annotations

from tests.support import mqtt
from tests.support.mqtt import Delivery, connack, puback, publish, suback, subscribe, unsuback, unsubscribe


def test_retained_message_is_delivered_to_a_new_subscription(world):  # MQTT-3.3.1-6
    publisher = world.client(b"p")
    publisher.send(publish(b"r/1", b"old", qos=1, packet_id=1, retain=True))
    publisher.send(publish(b"r/1", b"one", qos=1, packet_id=1, retain=True), publish(b"r/2", b"two", retain=True))
    subscriber = world.connect(b"s").send(subscribe(1, (b"r/+", 1)))
    packets = subscriber.take()
    assert packets[:2] == [connack(), suback(1, 1)]
    got = sorted((mqtt.parse_publish(one) for one in packets[2:]), key=lambda d: d.topic)
    assert got == [Delivery(b"r/1", b"one", 1, 1, retain=True, dup=False), Delivery(b"r/2", b"two", 0, 0, True, False)]
    publisher.send(publish(b"r/1", b"live", retain=True))
    assert [d.retain for d in subscriber.take_deliveries()] == [False]  # MQTT-3.3.1-9


def test_empty_retained_message_removes_it(world):  # MQTT-3.3.1-10
    world.client(b"p").send(publish(b"r", b"x", retain=True), publish(b"r", b"", retain=True))
    assert world.client(b"s").send(subscribe(1, (b"r", 0))).take() == [suback(1, 0)]


def test_retained_message_comes_with_each_subscribe(world):  # MQTT-3.8.4-3
    world.client(b"p").send(publish(b"r", b"x", retain=True))
    subscriber = world.client(b"s")
    for packet_id in (1, 2):
        assert subscriber.send(subscribe(packet_id, (b"r", 0))).take()[1:] == [publish(b"r", b"x", retain=True)]


def test_retained_messages_wait_for_the_window_and_come_again(make_world):
    world = make_world(inflight_max=3)
    world.client(b"p").send(*[publish(b"r/%d" % i, b"%d" % i, qos=1, packet_id=i + 1, retain=True) for i in range(8)])
    subscriber = world.client(b"s", clean=False)
    subscriber.send(subscribe(1, (b"r/#", 1)))
    got = subscriber.take_deliveries()
    assert [d.packet_id for d in got] == [1, 2, 3]
    subscriber.send(puback(1))
    got += subscriber.take_deliveries()
    assert len(got) == 4
    subscriber.vanish()
    again = world.connect(b"s", clean=False).take_deliveries()
    assert [(d.body, d.retain, d.dup) for d in again] == [(d.body, True, True) for d in got[1:]]


def test_retained_messages_that_were_not_sent_come_after_a_reconnect(make_world):
    world = make_world(inflight_max=3)
    world.client(b"p").send(*[publish(b"r/%d" % i, b"%d" % i, qos=1, packet_id=i + 1, retain=True) for i in range(8)])
    subscriber = world.client(b"s", clean=False)
    first = subscriber.send(subscribe(1, (b"r/#", 1))).take_deliveries()
    first += subscriber.send(puback(1)).take_deliveries()
    subscriber.vanish()
    subscriber = world.connect(b"s", clean=False)
    got = subscriber.take_deliveries()
    assert [d.body for d in got] == [d.body for d in first[1:]]  # what is in flight comes first
    while more := subscriber.send(*[puback(d.packet_id) for d in got[-3:]]).take_deliveries():
        got += more
    assert all(d.retain for d in got)
    assert {d.body for d in got} == {b"%d" % i for i in range(8)}
    subscriber.vanish()
    assert world.connect(b"s", clean=False).take_deliveries() == []


def test_unsubscribing_ends_what_is_still_to_be_sent_of_retained_messages(make_world):
    world = make_world(inflight_max=2)
    world.client(b"p").send(*[publish(b"r/%d" % i, b"x", qos=1, packet_id=i + 1, retain=True) for i in range(5)])
    subscriber = world.client(b"s", clean=False)
    assert len(subscriber.send(subscribe(1, (b"r/#", 1))).take_deliveries()) == 2
    subscriber.send(unsubscribe(2, b"r/#"), puback(1), puback(2))
    assert subscriber.take() == [unsuback(2)]


def test_retained_messages_survive_the_process(world):
    world.client(b"p").send(publish(b"r", b"kept", qos=1, packet_id=1, retain=True))
    world.close()
    world.open()
    assert world.client(b"s").send(subscribe(1, (b"#", 0))).take()[1:] == [publish(b"r", b"kept", retain=True)]


def test_retained_messages_that_were_not_acknowledged_come_again_after_a_kill(make_world):
    world = make_world(inflight_max=4)
    names = [b"r/%d" % i for i in range(6)]
    world.client(b"p").send(*[publish(name, name, qos=1, packet_id=1, retain=True) for name in names])
    world.client(b"p").send(publish(b"r/zero", b"at most once", retain=True))
    subscriber = world.client(b"s", clean=False)
    subscriber.send(subscribe(1, (b"r/#", 1)))
    first = subscriber.take_deliveries()
    subscriber.send(puback(first[0].packet_id))
    assert len(first) < 6
    for _ in range(2):
        world.close()
        world.open()
        again = world.connect(b"s", clean=False)
        got = again.take_deliveries()
        while more := again.send(*[puback(d.packet_id) for d in got[-4:-1]]).take_deliveries():
            got += more
        assert {d.body for d in got} >= {*names} - {first[0].body}
        assert {(d.qos, d.retain, d.dup) for d in got} == {(1, True, True)}
    again.send(puback(got[-1].packet_id))
    world.close()
    world.open()
    assert world.connect(b"s", clean=False).take() == [connack(session_present=True)]


def test_retained_message_that_was_replaced_meanwhile_comes_once_after_a_kill(world):
    publisher = world.client(b"p").send(publish(b"r", b"old", qos=1, packet_id=1, retain=True))
    world.client(b"s", (b"r", 1), clean=False)
    publisher.send(publish(b"r", b"new", qos=1, packet_id=2, retain=True))
    world.close()
    world.open()
    got = world.connect(b"s", clean=False).take_deliveries()
    assert [(d.body, d.retain, d.dup) for d in got] == [(b"new", False, True)]


def test_retained_message_that_comes_after_the_subscription_is_not_owed(world):
    subscriber = world.client(b"s", (b"r", 1), clean=False)
    world.client(b"p").send(publish(b"r", b"x", qos=1, packet_id=1, retain=True))
    subscriber.send(puback(1))
    world.close()
    world.open()
    assert world.connect(b"s", clean=False).take_deliveries() == []
