from __future__ import annotations

import pytest

from gateway.mqtt.connection import MqttConnection
from gateway.mqtt.errors import (
    ConnectTimeoutError,
    KeepAliveTimeoutError,
    MqttError,
    ProtocolViolationError,
)
from gateway.mqtt.events import AckRun, PingRun, PublishRun, RunPool
from gateway.mqtt.packets import Connect, Disconnect, Subscribe, Unsubscribe
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.topics import check_topic
from tests.support import mqtt


def make():
    return MqttConnection(RunPool(16), 1 << 16, 10_000)


def feed(connection, data, now_ms=0):
    """Return all events of `data`; topics are checked, and filters read, as the handler does."""
    events = []
    connection.receive_data(data, now_ms)
    for came in connection.events():
        event = came
        if isinstance(event, Connect):
            connection.accept(now_ms)
        if isinstance(event, PublishRun):
            for topic in event.columns.batch.topics:
                check_topic(topic)
        elif isinstance(event, Subscribe | Unsubscribe):
            event = type(event)(event.packet_id, list(event.filters))
        events.append(event)
    return events


def feed_all(connection, pieces):
    for piece in pieces:
        feed(connection, piece)


def opened(**options):
    connection = make()
    feed(connection, mqtt.connect(**options))
    return connection


WAYS = {
    "whole": lambda data: [data],
    "byte by byte": lambda data: [data[i : i + 1] for i in range(len(data))],
    "with a tail": lambda data: [data + mqtt.publish(b"never", b"read") * 3],
}


def must_fail(connection, data, way):
    with pytest.raises(MqttError) as caught:
        feed_all(connection, WAYS[way](data))
    assert caught.value.clause.startswith("MQTT-")
    assert caught.value.reason


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("data", [row[1] for row in mqtt.MALFORMED_FIRST], ids=[row[0] for row in mqtt.MALFORMED_FIRST])
def test_malformed_first_packet_ends_the_connection(data, way):
    must_fail(make(), data, way)


@pytest.mark.parametrize(
    "said",
    [
        b"PROXY TCP4 192.0.2.7 192.0.2.99 40000 1883\r\n",
        b"\r\n\r\n\x00\r\nQUIT\n",
        b"GET / HTTP/1.1",
        b"\x30\xff\xff\x7f",
    ],
)
@pytest.mark.parametrize("size", [1, 5, 100])
def test_first_packet_that_is_no_connect_is_refused_before_all_of_it_has_come(said, size):
    with pytest.raises(ProtocolViolationError) as caught:
        feed(make(), said[:size])
    assert caught.value.clause == "MQTT-3.1.0-1"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("data", [row[1] for row in mqtt.MALFORMED_LATER], ids=[row[0] for row in mqtt.MALFORMED_LATER])
def test_malformed_later_packet_ends_the_connection(data, way):
    must_fail(opened(), data, way)


def test_connect_reports_all_its_fields():
    connection = make()
    data = mqtt.connect(
        b"me", clean=False, keep_alive_s=7, will=(b"w/t", b"gone", 1, True), user=b"u", password=b"\xff\x00"
    )
    (event,) = feed(connection, data)
    assert isinstance(event, Connect)
    assert (event.level, event.client_id, event.is_clean, event.keep_alive_s) == (4, b"me", False, 7)
    assert (event.user, event.password) == (b"u", b"\xff\x00")
    assert (event.will.topic, event.will.body, event.will.qos, event.will.is_retained) == (b"w/t", b"gone", 1, True)


def test_mqtt_3_1_is_spoken():
    (event,) = feed(make(), mqtt.connect(protocol=b"MQIsdp", level=3))
    assert event.level == 3


@pytest.mark.parametrize(
    ("protocol", "level"), [(b"MQTT", 6), (b"MQTT", 3), (b"MQIsdp", 4), (b"MQTT", 0x85), (b"MQTT", 0x83)]
)
def test_other_level_is_answered_with_return_code_1(protocol, level):  # MQTT-3.1.2-2
    connection = make()
    with pytest.raises(ProtocolViolationError):
        feed(connection, mqtt.connect(protocol=protocol, level=level))
    assert connection.data_to_send() == mqtt.connack(1)


@pytest.mark.parametrize(("protocol", "level"), [(b"MQTT", 4), (b"MQIsdp", 3)])
def test_bridge_of_mosquitto_gets_none_of_its_own_messages_and_retain_flags_as_they_were(protocol, level):
    connection = make()
    (event,) = feed(connection, mqtt.connect(protocol=protocol, level=level | 0x80))
    assert (event.level, event.is_bridge) == (level, True)
    (event,) = feed(connection, mqtt.subscribe(1, (b"a/#", 1), (b"$share/g/a", 1)))
    assert list(event.filters) == [(b"a/#", 0x0D), (b"$share/g/a", 1)]


def test_malformed_connect_of_version_5_is_answered_with_its_reason():
    connection = make()
    with pytest.raises(MqttError):
        feed(connection, mqtt.connect_5(properties=b"\x03\x21\0\0"))
    assert connection.data_to_send() == b"\x20\x03\x00\x82\x00"


def test_events_come_in_the_order_of_the_bytes():
    events = feed(
        opened(),
        mqtt.publish(b"a", b"x") * 2 + mqtt.subscribe(9, (b"a", 2)) + mqtt.puback(3) + mqtt.publish(b"b", b"y"),
    )
    assert [type(event) for event in events] == [PublishRun, Subscribe, AckRun, PublishRun]
    assert events[1] == Subscribe(9, [(b"a", 2)])


def test_run_is_its_own_while_other_connections_of_the_door_go_on():
    pool = RunPool(16)
    one, other = MqttConnection(pool, 1 << 16, 10_000), MqttConnection(pool, 1 << 16, 10_000)
    feed(one, mqtt.connect())
    feed(other, mqtt.connect())
    (first,) = feed(one, mqtt.publish(b"a", b"first") * 2)
    (second, acks) = feed(other, mqtt.publish(b"b", b"second") + mqtt.puback(7))
    feed(one, mqtt.puback(9))

    def bodies(run):
        batch = run.columns.batch
        return [bytes(batch.buf[batch.body_start[i] : batch.body_end[i]]) for i in range(batch.count)]

    assert (first.columns.batch.topics, bodies(first)) == ([b"a"], [b"first"] * 2)
    assert (second.columns.batch.topics, bodies(second)) == ([b"b"], [b"second"])
    assert list(acks.columns.packet_ids[: acks.columns.ack_count]) == [7]


def test_what_was_cut_off_a_run_comes_again():
    connection = opened()
    connection.receive_data(mqtt.publish(b"a", b"1") + mqtt.publish(b"a", b"2") + mqtt.PINGREQ, 0)
    run = next(connection.events())
    run.columns.batch.count = 1
    connection.unread(run)
    run.release()
    again, pings = connection.events()
    assert bytes(again.columns.batch.buf[again.columns.batch.body_start[0] :][:1]) == b"2"
    assert isinstance(pings, PingRun)


def test_ping_is_answered():  # MQTT-3.12.4-1
    connection = opened()
    (event,) = feed(connection, mqtt.PINGREQ * 2)
    assert isinstance(event, PingRun)
    assert event.count == 2
    assert connection.data_to_send() == mqtt.PINGRESP * 2
    assert connection.data_to_send() == b""


def test_nothing_is_taken_after_disconnect():  # MQTT-3.14.4-2
    connection = opened()
    assert feed(connection, mqtt.DISCONNECT + mqtt.publish(b"a", b"x")) == [Disconnect()]
    assert feed(connection, mqtt.publish(b"a", b"x")) == []


def test_connect_must_come_in_time():
    connection = make()
    assert connection.next_deadline_ms() == 0
    connection.handle_timer(500)
    assert connection.next_deadline_ms() == 10_500
    feed(connection, mqtt.connect()[:5], 9_000)
    connection.handle_timer(10_499)
    with pytest.raises(ConnectTimeoutError):
        connection.handle_timer(10_500)


def test_keep_alive_is_over_after_one_and_a_half_times():  # MQTT-3.1.2-24
    connection = make()
    feed(connection, mqtt.connect(keep_alive_s=10), 1_000)
    feed(connection, mqtt.PINGREQ, 5_000)
    assert connection.next_deadline_ms() == 20_000
    connection.handle_timer(19_999)
    with pytest.raises(KeepAliveTimeoutError):
        connection.handle_timer(20_000)


def test_keep_alive_0_never_ends():
    connection = make()
    feed(connection, mqtt.connect(keep_alive_s=0))
    assert connection.next_deadline_ms() is None
    connection.handle_timer(10**12)


def test_stopped_connection_has_no_deadline():
    connection = opened()
    connection.receive_eof()
    assert connection.next_deadline_ms() is None
    assert feed(connection, b"\xff\xff") == []


@pytest.mark.parametrize(("told_bytes_max", "said"), [(0, 10), (10, 10), (9, 4), (4, 4), (3, 0)])
def test_reason_is_given_in_words_where_the_peer_takes_them(told_bytes_max, said):  # MQTT-3.14.2-3
    connection = make()
    connection.receive_data(mqtt.connect_5(), 0)
    next(connection.events())
    connection.accept(0, told_bytes_max=told_bytes_max)
    connection.say_why(ReasonCode.PROTOCOL_ERROR, "why")
    assert len(connection.data_to_send()) == said
    assert connection.takes(4) is (said >= 4)
