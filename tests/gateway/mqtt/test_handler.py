from __future__ import annotations

import pytest

from tests.support import mqtt
from tests.support.mqtt import Delivery, connack, puback, publish, suback, subscribe, unsuback, unsubscribe
from tests.support.mqtt_door import STORE


def test_message_goes_from_publisher_to_subscriber(world):
    subscriber = world.connect(b"s")
    assert subscriber.take() == [connack()]
    subscriber.send(subscribe(7, (b"a/+", 0)))
    assert subscriber.take() == [suback(7, 0)]
    world.client(b"p").send(publish(b"a/b", b"hello"), publish(b"other", b"no"), publish(b"a/c", b"", retain=True))
    assert subscriber.take_deliveries() == [
        Delivery(b"a/b", b"hello", 0, 0, retain=False, dup=False),
        Delivery(b"a/c", b"", 0, 0, retain=False, dup=False),
    ]
    assert world.counts.messages_in == 3
    assert world.counts.messages_out == 2
    assert world.counts.bytes_in == 7
    assert world.counts.bytes_out == 5


@pytest.mark.parametrize(("published", "granted", "expected"), [(0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 1)])
def test_message_is_delivered_at_the_lower_qos(world, published, granted, expected):
    subscriber = world.client(b"s", (b"t", granted))
    publisher = world.client(b"p")
    publisher.send(publish(b"t", b"x", qos=published, packet_id=9 * published))
    assert publisher.take() == [puback(9)] * published
    assert [(d.qos, d.packet_id) for d in subscriber.take_deliveries()] == [(expected, expected)]


def test_qos_2_subscription_is_granted_qos_1(world):
    subscriber = world.connect(b"s").send(subscribe(1, (b"a", 2), (b"b", 1), (b"c", 0)))
    assert subscriber.take()[1] == suback(1, 1, 1, 0)


def test_qos_2_publish_closes_the_connection_and_says_why(world, caplog):
    publisher = world.client(b"p").send(publish(b"a", b"x", qos=2, packet_id=1))
    assert publisher.is_closed
    assert "QoS 2" in caplog.text
    assert world.counts.refused == {"unsupported_qos": 1}


def test_acknowledgement_waits_for_the_flush(world):
    world.flushes_by_itself = False
    publisher = world.client(b"p").send(publish(b"t", b"x", qos=1, packet_id=3))
    assert publisher.take() == []
    world.flush()
    assert publisher.take() == [puback(3)]


def test_acknowledgement_is_not_sent_on_a_closed_connection(world):
    world.flushes_by_itself = False
    publisher = world.client(b"p").send(publish(b"t", b"x", qos=1, packet_id=3))
    publisher.vanish()
    world.flush()
    assert publisher.transport.sent == b""


def test_acknowledgements_keep_the_order_of_messages(world):  # MQTT-4.6.0-2
    publisher = world.client(b"p")
    publisher.send(*[publish(b"t/%d" % (i % 5), b"x", qos=1, packet_id=i) for i in range(1, 3001)])
    assert publisher.take() == [puback(i) for i in range(1, 3001)]


def test_order_of_messages_is_kept(world):  # MQTT-4.6.0-5
    subscriber = world.client(b"s", (b"t", 1))
    publisher = world.client(b"p")
    for start in range(0, 1500, 300):
        publisher.send(*[publish(b"t", b"%d" % i, qos=1, packet_id=i % 300 + 1) for i in range(start, start + 300)])
    assert subscriber.bodies() == [b"%d" % i for i in range(1500)]


def test_each_matching_subscription_of_a_session_gets_its_copy(world):
    subscriber = world.client(b"s", (b"a/#", 0), (b"a/+", 1))
    world.client(b"p").send(publish(b"a/b", b"x", qos=1, packet_id=1))
    assert sorted(d.qos for d in subscriber.take_deliveries()) == [0, 1]


def test_many_subscribers_of_one_filter_get_the_same(world):
    peers = [world.client(b"s%d" % i, (b"t/#", i % 2)) for i in range(10)]
    for peer in peers[::3]:
        peer.send(subscribe(2, (b"other", 1)))
        peer.take()
    publisher = world.client(b"p")
    publisher.send(publish(b"other", b"o", qos=1, packet_id=1))
    publisher.send(*[publish(b"t/%d" % i, b"%d" % i, qos=1, packet_id=i + 1) for i in range(20)])
    for number, peer in enumerate(peers):
        got = [d for d in peer.take_deliveries() if d.topic != b"other"]
        assert [d.body for d in got] == [b"%d" % i for i in range(20)]
        first = 2 if number % 3 == 0 else 1
        assert [d.packet_id for d in got] == ([0] * 20 if number % 2 == 0 else list(range(first, first + 20)))


def test_dollar_topics_hide_from_leading_wildcards(world):  # MQTT-4.7.2-1
    every = world.client(b"s", (b"#", 0), (b"+/x", 0))
    named = world.client(b"n", (b"$SYS/#", 0))
    world.client(b"p").send(publish(b"$SYS/x", b"1"))
    assert every.bodies() == []
    assert named.bodies() == [b"1"]


def test_unsubscribe_stops_the_messages(world):
    subscriber = world.client(b"s", (b"a", 0), (b"b", 0))
    subscriber.send(unsubscribe(5, b"a", b"never"))
    assert subscriber.take() == [unsuback(5)]
    world.client(b"p").send(publish(b"a", b"1"), publish(b"b", b"2"))
    assert subscriber.bodies() == [b"2"]
    assert [queue.name for queue in world.broker.explain(b"a")] == []


def test_in_flight_messages_survive_an_unsubscribe(world):  # MQTT-3.10.4-3
    subscriber = world.client(b"s", (b"a", 1), clean=False)
    world.client(b"p").send(publish(b"a", b"1", qos=1, packet_id=1))
    assert [d.packet_id for d in subscriber.take_deliveries()] == [1]
    subscriber.send(unsubscribe(5, b"a"))
    subscriber.vanish()
    again = world.connect(b"s", clean=False)
    assert [(d.body, d.packet_id, d.dup) for d in again.take_deliveries()] == [(b"1", 1, True)]
    again.send(puback(1), subscribe(6, (b"c", 1)))
    session = world.door.sessions.find(b"s")
    assert [source and source.topic_filter for source in session.sources] == [None, b"c"]


def test_window_bounds_what_is_in_flight(make_world):
    world = make_world(inflight_max=5)
    subscriber = world.client(b"s", (b"t", 1))
    world.client(b"p").send(*[publish(b"t", b"%d" % i, qos=1, packet_id=i + 1) for i in range(20)])
    assert [d.packet_id for d in subscriber.take_deliveries()] == [1, 2, 3, 4, 5]
    subscriber.send(puback(1), puback(2))
    assert [d.body for d in subscriber.take_deliveries()] == [b"5", b"6"]
    subscriber.send(puback(4), puback(5))
    assert subscriber.bodies() == []
    subscriber.send(puback(3))
    assert subscriber.bodies() == [b"7", b"8", b"9"]


def test_window_of_one_session_spans_its_subscriptions(make_world):
    world = make_world(inflight_max=4)
    subscriber = world.client(b"s", (b"a", 1), (b"b", 1))
    publisher = world.client(b"p")
    for i in range(4):
        publisher.send(publish(b"a", b"a%d" % i, qos=1, packet_id=1), publish(b"b", b"b%d" % i, qos=1, packet_id=2))
    got = [subscriber.take_deliveries()]
    assert len(got[0]) == 4
    for _ in range(8):
        subscriber.send(*[puback(d.packet_id) for d in got[-1]])
        got.append(subscriber.take_deliveries())
    bodies = [d.body for some in got for d in some]
    assert sorted(bodies) == sorted(b"%b%d" % (kind, i) for kind in (b"a", b"b") for i in range(4))


# Sessions


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


def test_empty_identifier_of_a_clean_session_is_replaced(world):  # MQTT-3.1.3-6
    peers = [world.connect(b""), world.connect(b"")]
    assert [peer.take() for peer in peers] == [[connack()]] * 2
    assert not any(peer.is_closed for peer in peers)


@pytest.mark.parametrize(
    "options", [{"clean": False}, {"protocol": b"MQIsdp", "level": 3}], ids=["MQTT-3.1.3-8", "MQTT 3.1"]
)
def test_empty_identifier_is_refused_otherwise(world, options):
    peer = world.connect(b"", **options)
    assert peer.take() == [connack(2)]
    assert peer.is_closed


def test_too_long_identifier_is_refused(make_world):
    world = make_world(client_id_bytes_max=30)
    assert world.connect(b"x" * 31).take() == [connack(2)]
    assert world.connect(b"x" * 30).take() == [connack()]


def test_a_refused_client_cannot_fill_the_log(world, caplog):
    caplog.set_level("INFO")
    world.connect(b"x" * 65_535)
    assert "refused client" in caplog.text
    assert len(caplog.text) < 1_000


def test_mqtt_5_is_refused_with_return_code_1(world):
    peer = world.dial().send(b"\x10\x10\x00\x04MQTT\x05\x02\x00<\x00\x00\x03abc")
    assert peer.take() == [connack(1)]
    assert peer.is_closed


def test_nothing_after_a_refused_connect_is_processed(make_world):  # MQTT-3.1.4-5
    world = make_world(auth={"mqtt_anonymous": False})
    subscriber_queue = world.broker.explain(b"t")
    peer = world.dial().send(mqtt.connect(), publish(b"t", b"x", retain=True))
    assert peer.take() == [connack(5)]
    assert peer.is_closed
    assert len(world.broker.retained) == 0
    assert subscriber_queue == []


def test_wrong_user_is_refused_with_return_code_4(world):
    assert world.connect(b"c", user=b"nobody", password=b"x").take() == [connack(4)]
    assert world.counts.refused == {"bad_credentials": 1}


def test_mqtt_3_1_client_is_served(world):
    peer = world.client(b"old", protocol=b"MQIsdp", level=3)
    peer.send(b"\x8a" + subscribe(4, (b"t", 1))[1:])
    assert peer.take() == [suback(4, 1)]


# Retained


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


# Will


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


# A killed process


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
    world.door.expire_sessions(world.now_ms + 59_999)
    assert world.counts.sessions == 2
    world.door.expire_sessions(world.now_ms + 60_000)
    assert world.counts.sessions == 1
    assert world.connect(b"s", clean=False).take() == [connack(session_present=False)]


# Slow ones


def test_stalled_subscriber_at_qos_0_is_sent_nothing_and_catches_up(world):
    slow = world.client(b"slow", (b"t", 0))
    fast = world.client(b"fast", (b"t", 0))
    publisher = world.client(b"p")
    slow.stall()
    for i in range(20):
        publisher.send(publish(b"t", b"%d" % i))
    assert len(fast.bodies()) == 20
    assert slow.transport.sent == b""
    slow.drain()
    assert slow.bodies() == [b"%d" % i for i in range(20)]
    publisher.send(publish(b"t", b"next"))
    assert slow.bodies() == fast.bodies() == [b"next"]
    assert world.counts.dropped == {}


def test_subscriber_at_qos_0_that_is_too_far_behind_loses_messages_which_are_counted(make_world):
    world = make_world(lag_count_max=10)
    slow = world.client(b"slow", (b"t", 0))
    publisher = world.client(b"p")
    slow.stall()
    for i in range(100):
        publisher.send(publish(b"t", b"%d" % i))
    lost = world.counts.dropped["slow_subscriber"]
    assert 80 <= lost <= 100
    slow.drain()
    assert slow.bodies() == [b"%d" % i for i in range(lost, 100)]


def test_stalled_subscriber_at_qos_1_waits_at_its_place(make_world):
    world = make_world(lag_count_max=10)
    slow = world.client(b"slow", (b"t", 1))
    publisher = world.client(b"p")
    slow.stall()
    for i in range(100):
        publisher.send(publish(b"t", b"%d" % i, qos=1, packet_id=1))
    assert slow.transport.sent == b""
    slow.drain()
    assert slow.bodies() == [b"%d" % i for i in range(100)]
    assert world.counts.dropped == {}


def test_publisher_that_reads_no_acknowledgements_is_read_no_more(world):
    publisher = world.client(b"p")
    publisher.stall()
    publisher.send(publish(b"t", b"x", qos=1, packet_id=1))
    assert not publisher.transport.is_reading
    publisher.drain()
    assert publisher.transport.is_reading


# Bad ones


@pytest.mark.parametrize("data", [row[1] for row in mqtt.MALFORMED_LATER], ids=[row[0] for row in mqtt.MALFORMED_LATER])
def test_malformed_packet_closes_its_own_connection_only(world, data):
    other = world.client(b"other", (b"t", 0))
    bad = world.client(b"bad")
    bad.send(publish(b"t", b"before") + data + publish(b"t", b"after"))
    if not bad.is_closed:
        bad.send(mqtt.PINGREQ * 4)
    assert bad.is_closed
    assert other.bodies() == [b"before"]
    assert not other.is_closed


def test_connection_without_connect_is_closed_in_time(world):
    peer = world.dial()
    assert peer.handler.next_deadline_ms() <= world.now_ms
    peer.handler.on_timer(world.now_ms)
    assert peer.handler.next_deadline_ms() == world.now_ms + 10_000
    world.now_ms += 10_000
    peer.handler.on_timer(world.now_ms)
    assert peer.is_closed


def test_too_large_message_closes_its_connection_only(make_world):
    world = make_world(store_settings=STORE.model_copy(update={"message_bytes_max": 1000}))
    other = world.client(b"other", (b"t", 0))
    bad = world.client(b"bad").send(publish(b"t", b"first"), publish(b"t", b"x" * 1001))
    assert bad.is_closed
    assert world.counts.refused == {"packet_too_large": 1}
    assert other.bodies() == [b"first"]


def test_message_that_may_not_be_published_is_acknowledged_and_counted(make_world, monkeypatch):  # MQTT-3.3.5-2
    monkeypatch.setenv("LMQ_TEST_PASSWORD", "secret")
    user = {"password_env": "LMQ_TEST_PASSWORD", "may_publish": False}
    world = make_world(auth={"users": {"u": user}})
    subscriber = world.client(b"s", (b"t", 0))
    publisher = world.client(b"p", user=b"u", password=b"secret")
    publisher.send(publish(b"t", b"x", qos=1, packet_id=2))
    assert publisher.take() == [puback(2)]
    assert subscriber.bodies() == []
    assert world.counts.refused == {"publish_not_authorized": 1}


def test_subscription_that_may_not_be_is_refused(make_world, monkeypatch):
    monkeypatch.setenv("LMQ_TEST_PASSWORD", "secret")
    user = {"password_env": "LMQ_TEST_PASSWORD", "may_subscribe": False}
    world = make_world(auth={"users": {"u": user}}, subscription_count_max=2)
    assert world.client(b"s", user=b"u", password=b"secret").send(subscribe(1, (b"t", 0))).take() == [suback(1, 0x80)]
    packet = subscribe(1, (b"a", 0), (b"$share/g/a", 0), (b"b", 0), (b"c", 0), (b"a", 1))
    assert world.client(b"r").send(packet).take() == [suback(1, 0, 0x80, 0, 0x80, 1)]
