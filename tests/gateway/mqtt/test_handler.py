from __future__ import annotations

import pytest

from tests.support import mqtt
from tests.support.logins import quick_hash
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


@pytest.mark.parametrize(("published", "granted", "expected"), [(0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 1), (1, 2, 1)])
def test_message_is_delivered_at_the_lower_qos(world, published, granted, expected):
    subscriber = world.client(b"s", (b"t", granted))
    publisher = world.client(b"p")
    publisher.send(publish(b"t", b"x", qos=published, packet_id=9 * published))
    assert publisher.take() == [puback(9)] * published
    assert [(d.qos, d.packet_id) for d in subscriber.take_deliveries()] == [(expected, expected)]


def test_subscription_is_granted_the_qos_it_asks_for(world):
    subscriber = world.connect(b"s").send(subscribe(1, (b"a", 2), (b"b", 1), (b"c", 0)))
    assert subscriber.take()[1] == suback(1, 2, 1, 0)


@pytest.mark.at_once(reason="the flush itself brings the answer")
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


@pytest.mark.at_once(reason="the flush itself brings the answer")
def test_what_came_before_the_end_is_acknowledged_and_the_will_is_published(world):  # MQTT-3.1.2-8
    subscriber = world.client(b"s", (b"gone", 0))
    publisher = world.client(b"p", will=(b"gone", b"lost", 0, False))
    world.flushes_by_itself = False
    publisher.end(publish(b"t", b"x", qos=1, packet_id=3))
    assert subscriber.bodies() == [b"lost"]
    assert publisher.take() == []
    assert not publisher.is_closed
    world.flush()
    assert publisher.take() == [puback(3)]
    assert publisher.is_closed
    publisher.vanish()
    assert subscriber.bodies() == []


@pytest.mark.at_once(reason="the flush itself brings the answer")
def test_subscription_of_a_durable_session_is_answered_after_the_end(make_world):
    world = make_world(is_sync=False)
    subscriber = world.client(b"s", clean=False)
    world.flushes_by_itself = False
    subscriber.end(subscribe(7, (b"t", 1)))
    assert subscriber.take() == []
    assert not subscriber.is_closed
    world.flush()
    assert subscriber.take() == [suback(7, 1)]
    assert subscriber.is_closed
    world.flushes_by_itself = True
    world.client(b"p").send(publish(b"t", b"x", qos=1, packet_id=1))
    assert subscriber.transport.sent == b""
    assert world.connect(b"s", clean=False).bodies() == [b"x"]


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
    assert subscriber.bodies() == [b"7", b"8"]
    subscriber.send(puback(4), puback(5))
    assert subscriber.bodies() == []
    subscriber.send(puback(3))
    assert subscriber.bodies() == [b"9"]


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
    assert "login refused" in caplog.text
    assert len(caplog.text) < 1_000


def test_nothing_after_a_refused_connect_is_processed(make_world):  # MQTT-3.1.4-5
    world = make_world(auth={"mqtt_anonymous": False})
    subscriber_queue = world.broker.explain(b"t")
    peer = world.dial().send(mqtt.connect(), publish(b"t", b"x", retain=True))
    assert peer.take() == [connack(5)]
    assert peer.is_closed
    assert len(world.broker.retained) == 0
    assert subscriber_queue == []


def test_wrong_user_is_refused_with_return_code_4(make_world):
    world = make_world(auth={"mqtt_anonymous": False})
    assert world.connect(b"c", user=b"nobody", password=b"x").take() == [connack(4)]
    assert world.counts.refused == {"bad_credentials": 1}


def test_the_log_alone_says_whether_a_user_is_there(make_world, caplog):
    world = make_world(auth={"mqtt_anonymous": False, "users": {"ann": {"password_hash": quick_hash("x")}}})
    told = []
    world.authenticator.events.listen(lambda event: told.append((event.kind, event.fields["reason"])))
    answers = [world.connect(b"c", user=user, password=b"wrong").take() for user in (b"nobody", b"ann")]
    assert answers == [[connack(4)]] * 2
    assert told == [("user.authentication.failure", "wrong user name or password")] * 2
    said = [line.partition("reason=")[2] for line in caplog.messages if "login refused" in line]
    assert said == ["no such user in the settings or the data folder", "wrong password or secret"]
    assert {one.outcome for one, _ in world.authenticator.events.churn.find_logins(9)[0]} == {
        "wrong user name or password"
    }


def test_mqtt_3_1_client_is_served(world):
    peer = world.client(b"old", protocol=b"MQIsdp", level=3)
    peer.send(b"\x8a" + subscribe(4, (b"t", 1))[1:])
    assert peer.take() == [suback(4, 1)]


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
    packet = subscribe(1, (b"a", 0), (b"b", 0), (b"c", 0), (b"$share/g/a", 0), (b"a", 1))
    assert world.client(b"r").send(packet).take() == [suback(1, 0, 0, 0x80, 0x80, 1)]


def test_settings_bound_packets_and_the_time_to_connect(make_world):
    world = make_world(packet_bytes_max=1_024, connect_timeout_ms=300)
    stranger = world.dial()
    stranger.handler.on_timer(world.now_ms)
    stranger.handler.on_timer(world.now_ms + 299)
    assert not stranger.is_closed
    stranger.handler.on_timer(world.now_ms + 300)
    assert stranger.is_closed
    subscriber = world.client(b"s", (b"t", 0))
    publisher = world.client(b"p").send(publish(b"t", b"x" * 1_000), publish(b"t", b"x" * 1_025))
    assert publisher.is_closed
    assert world.counts.refused == {"connect_timeout": 1, "packet_too_large": 1}
    assert [len(body) for body in subscriber.bodies()] == [1_000]


@pytest.mark.here(reason="looks at the turn in which the message came")
@pytest.mark.parametrize("qos", [0, 1])
def test_a_lone_message_goes_out_in_the_turn_in_which_it_came(world, qos):
    subscriber = world.client(b"s", (b"t", qos))
    publisher = world.client(b"p")
    publisher.handler.on_data(publish(b"t", b"x", qos=qos, packet_id=qos), world.now_ms)
    world.broker.run_turn(world.now_ms)
    assert subscriber.bodies() == [b"x"]
