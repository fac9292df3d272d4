"""A gateway that is killed with -9 long before it would sync by itself has all that it acknowledged."""

from __future__ import annotations

import random
import socket

import pytest
from pamqp.commands import Basic, Channel, Confirm, Connection, Queue

from tests.support import amqp, mqtt
from tests.support.gateway import GatewayProcess
from tests.support.mqtt_client import MqttClient

pytestmark = pytest.mark.slow

ASYNC = {"LMQ_STORE__FLUSH__MODE": "async", "LMQ_STORE__FLUSH__INTERVAL_MS": "60000"}
KILLS = 4
BURST = 100


def publish_retained(gateway, messages):
    """Publish topics and bodies, and return when the last is acknowledged."""
    with MqttClient(gateway.address("mqtt"), b"pub", clean=True) as publisher:
        packets = [
            mqtt.publish(topic, body, qos=1, packet_id=i, retain=True) for i, (topic, body) in enumerate(messages, 1)
        ]
        publisher.send(*packets)
        while mqtt.puback(len(messages)) not in publisher.read():
            pass


def read_retained(gateway):
    """Return body by topic of what a new subscriber is sent."""
    with MqttClient(gateway.address("mqtt"), b"sub", clean=True) as subscriber:
        subscriber.send(mqtt.subscribe(1, (b"#", 0)))
        packets = []
        while True:
            more = subscriber.read(wait_s=1)
            if not more:
                break
            packets += more
    found = [mqtt.parse_publish(packet) for packet in packets if packet[0] >> 4 == 3]
    return {one.topic: one.body for one in found if one.retain}


def test_retained_messages_are_what_the_last_acknowledged_ones_say(tmp_path):
    chance = random.Random(7)
    expected = {}
    with GatewayProcess(tmp_path / "data", env=ASYNC) as gateway:
        for number in range(KILLS):
            messages = [
                (b"t/%d" % chance.randrange(60), chance.choice([b"", b"%d-%d" % (number, i)])) for i in range(BURST)
            ]
            publish_retained(gateway, messages)
            expected.update(messages)
            gateway.restart()
            assert read_retained(gateway) == {topic: body for topic, body in expected.items() if body}


def test_queue_and_message_of_one_write_are_there_when_the_message_was_confirmed(tmp_path):
    opening = [
        amqp.method(0, Connection.StartOk({}, "PLAIN", "\0guest\0guest", "en_US")),
        amqp.method(0, Connection.TuneOk(2_047, 131_072, 0)),
        amqp.method(0, Connection.Open("/")),
        amqp.method(1, Channel.Open()),
    ]
    with GatewayProcess(tmp_path / "data", env=ASYNC) as gateway:
        for number in range(KILLS):
            queue = f"q{number}"
            declare = Queue.Declare(queue=queue, durable=True, nowait=True)
            asked = [amqp.method(1, one) for one in (Confirm.Select(), declare)]
            publish = amqp.publish(1, b"x", key=queue, delivery_mode=2)
            ask_amqp(gateway, [*opening, *asked, publish], Basic.Ack)
            gateway.restart()
            got = ask_amqp(gateway, [*opening, amqp.method(1, Basic.Get(queue=queue))], Basic.GetOk)
            assert got.redelivered is False


def ask_amqp(gateway, frames, wanted):
    """Send frames in one write; return the first method of the `wanted` kind that comes, before a close."""
    with socket.create_connection(gateway.address("amqp"), timeout=10) as sock:
        sock.sendall(amqp.PROTOCOL_HEADER + b"".join(frames))
        with sock.makefile("rb") as said:
            while True:
                head = said.read(7)
                rest = said.read(int.from_bytes(head[3:], "big") + 1)
                ((_, value),) = amqp.decode_frames(head + rest)
                if isinstance(value, wanted):
                    return value
                assert not isinstance(value, Channel.Close | Connection.Close), value.reply_text


def test_session_and_subscription_that_were_answered_are_there(tmp_path):
    with GatewayProcess(tmp_path / "data", env=ASYNC) as gateway:
        with MqttClient(gateway.address("mqtt"), b"s") as subscriber:
            subscriber.send(mqtt.subscribe(1, (b"t", 1)))
            assert mqtt.suback(1, 1) in subscriber.read()
        with MqttClient(gateway.address("mqtt"), b"p", clean=True) as publisher:
            publisher.send(mqtt.publish(b"t", b"x", qos=1, packet_id=1))
            assert publisher.read() == [mqtt.puback(1)]
        gateway.restart()
        with MqttClient(gateway.address("mqtt"), b"s") as subscriber:
            assert subscriber.session_present
            assert [mqtt.parse_publish(packet).body for packet in subscriber.read()] == [b"x"]
