"""Sessions at the door: what outlives a connection, and what outlives the process."""

from __future__ import annotations

import pytest

from tests.support import mqtt
from tests.support.mqtt import DISCONNECT, connack, puback, publish, suback, subscribe, unsuback, unsubscribe


def test_clean_session_is_forgotten(world):  # MQTT-3.1.2-6
    first = world.client(b"s", (b"t", 1))
    first.vanish()
    world.client(b"p").send(publish(b"t", b"x", qos=1, packet_id=1))
    again = world.connect(b"s", clean=False)
    assert again.take() == [connack(session_present=False)]
    assert world.broker.explain(b"t") == []


def test_persistent_session_gets_what_came_while_it_was_away(world):  # MQTT-3.1.2-4
    world.client(b"s", (b"t/#", 1), clean=False).send(mqtt.DISCONNECT)
    world.client(b"p").send(*[publish(b"t/x", b"%d" % i, qos=1, packet_id=i + 1) for i in range(3)])
    again = world.connect(b"s", clean=False)
    packets = again.take()
    assert packets[0] == connack(session_present=True)
    assert [mqtt.parse_publish(one).body for one in packets[1:]] == [b"0", b"1", b"2"]
    assert not any(mqtt.parse_publish(one).dup for one in packets[1:])


def test_qos_0_subscription_of_a_persistent_session_gets_nothing_from_before(world):
    world.client(b"s", (b"t", 0), clean=False).vanish()
    publisher = world.client(b"p").send(publish(b"t", b"lost"))
    again = world.connect(b"s", clean=False)
    assert again.take() == [connack(session_present=True)]
    publisher.send(publish(b"t", b"new"))
    assert again.bodies() == [b"new"]


def test_clean_connect_ends_a_persistent_session(world):
    world.client(b"s", (b"t", 1), clean=False).vanish()
    assert world.connect(b"s").take() == [connack(session_present=False)]
    world.client(b"p").send(publish(b"t", b"x"))
    world.turn()
    assert world.broker.explain(b"t") == []
    assert len(world.store.table("mqtt_subscriptions")) == 0


def test_unacknowledged_messages_come_again_with_their_identifiers(world):  # MQTT-4.4.0-1
    subscriber = world.client(b"s", (b"t", 1), clean=False)
    publisher = world.client(b"p")
    publisher.send(*[publish(b"t", b"%d" % i, qos=1, packet_id=i + 1) for i in range(6)])
    assert len(subscriber.bodies()) == 6
    subscriber.send(puback(1), puback(2), puback(4))
    subscriber.vanish()
    publisher.send(publish(b"t", b"later", qos=1, packet_id=1))
    again = world.connect(b"s", clean=False)
    got = again.take_deliveries()
    assert [(d.body, d.packet_id, d.dup) for d in got] == [
        (b"2", 3, True),
        (b"4", 5, True),
        (b"5", 6, True),
        (b"later", 7, False),
    ]
    again.send(*[puback(d.packet_id) for d in got])
    again.vanish()
    assert world.connect(b"s", clean=False).take_deliveries() == []


def test_resubscribing_keeps_the_place_and_changes_the_qos(world):
    subscriber = world.client(b"s", (b"t", 1), clean=False)
    publisher = world.client(b"p").send(publish(b"t", b"1", qos=1, packet_id=1))
    subscriber.take()
    subscriber.send(subscribe(2, (b"t", 0)))
    assert subscriber.take() == [suback(2, 0)]
    publisher.send(publish(b"t", b"2", qos=1, packet_id=1))
    assert [d.qos for d in subscriber.take_deliveries()] == [0]
    subscriber.send(subscribe(3, (b"t", 1)))
    subscriber.vanish()
    publisher.send(publish(b"t", b"3", qos=1, packet_id=1))
    got = world.connect(b"s", clean=False).take_deliveries()
    assert [(d.body, d.dup) for d in got] == [(b"1", True), (b"3", False)]


def test_same_client_takes_over(world):  # MQTT-3.1.4-2
    first = world.client(b"s", (b"t", 1), clean=False)
    second = world.connect(b"s", clean=False)
    assert first.is_closed
    assert second.take() == [connack(session_present=True)]
    first.handler.on_closed(world.now_ms)
    world.client(b"p").send(publish(b"t", b"x", qos=1, packet_id=1))
    assert second.bodies() == [b"x"]
    assert world.counts.connections == 2
    assert world.counts.sessions == 2


def test_session_survives_the_process(world):
    subscriber = world.client(b"s", (b"t/#", 1), (b"q", 0), clean=False)
    publisher = world.client(b"p")
    publisher.send(*[publish(b"t/x", b"%d" % i, qos=1, packet_id=i + 1) for i in range(5)])
    assert len(subscriber.bodies()) == 5
    subscriber.send(puback(1), puback(2))
    world.close()
    world.open()
    world.client(b"p").send(publish(b"t/x", b"new", qos=1, packet_id=1))
    again = world.connect(b"s", clean=False)
    packets = again.take()
    assert packets[0] == connack(session_present=True)
    got = [mqtt.parse_publish(one) for one in packets[1:]]
    assert [(d.body, d.dup) for d in got] == [(b"2", True), (b"3", True), (b"4", True), (b"new", False)]
    again.send(*[puback(d.packet_id) for d in got])
    world.close()
    world.open()
    assert world.connect(b"s", clean=False).take() == [connack(session_present=True)]


def test_ended_subscription_stays_ended_after_the_process(world):
    world.client(b"s", (b"t", 1), (b"u", 1), clean=False).send(unsubscribe(2, b"t"))
    world.client(b"x", (b"t", 1))
    world.close()
    world.open()
    again = world.connect(b"s", clean=False)
    again.take()
    world.client(b"p").send(publish(b"t", b"1"), publish(b"u", b"2"))
    assert again.bodies() == [b"2"]
    assert world.connect(b"x", clean=False).take() == [connack(session_present=False)]


def test_message_at_qos_0_is_not_sent_twice_after_the_process(world):
    subscriber = world.client(b"s", (b"t", 1), clean=False)
    publisher = world.client(b"p")
    publisher.send(
        publish(b"t", b"a", qos=1, packet_id=1), publish(b"t", b"zero"), publish(b"t", b"b", qos=1, packet_id=2)
    )
    assert len(subscriber.bodies()) == 3
    world.close()
    world.open()
    assert world.connect(b"s", clean=False).bodies() == [b"a", b"b"]


@pytest.mark.at_once(reason="the flush itself brings the answer")
def test_suback_of_a_persistent_session_waits_until_it_is_written_down(world):
    subscriber = world.client(b"s", clean=False)
    world.flushes_by_itself = False
    subscriber.send(subscribe(1, (b"t", 1)))
    assert subscriber.take() == []
    world.flush()
    assert subscriber.take() == [suback(1, 1)]


def test_retention_keeps_what_a_session_needs(world):
    world.client(b"s", (b"t", 1), clean=False).vanish()
    world.client(b"p").send(publish(b"t", b"x", qos=1, packet_id=1))
    (held,) = world.door.sessions.held_positions()
    assert held == (world.store.find_queue(b"%LMQ%mqtt%t"), 0)


def test_session_without_connection_expires(make_world):
    world = make_world(session_expiry_s=60)
    world.client(b"s", (b"t", 1), clean=False).vanish()
    world.client(b"live", (b"t", 1), clean=False)
    world.door.tend(world.now_ms + 59_999)
    assert world.counts.sessions == 2
    world.door.tend(world.now_ms + 60_000)
    assert world.counts.sessions == 1
    assert world.connect(b"s", clean=False).take() == [connack(session_present=False)]


def test_answer_to_an_unsubscribe_before_a_disconnect_waits_until_it_is_kept(world):
    peer = world.client(b"s", (b"t", 1), clean=False)
    world.flushes_by_itself = False
    peer.send(unsubscribe(2, b"t"), DISCONNECT)
    assert peer.take() == []
    assert not peer.is_closed
    again = world.connect(b"s", clean=False)  # the client's next connection waits for that, too
    assert again.take() == []
    assert not peer.is_closed
    world.flushes_by_itself = True
    world.turn()
    assert peer.take() == [unsuback(2)]
    assert peer.is_closed
    assert again.take() == [connack(session_present=True)]
