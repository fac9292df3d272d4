"""A gateway that is killed with -9 long before it would sync by itself has all that it acknowledged."""

from __future__ import annotations

import random

import pytest

from tests.support import mqtt
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
