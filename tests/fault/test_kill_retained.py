"""Retained messages that are set and cleared while the gateway is killed with -9: each topic has its newest."""

from __future__ import annotations

import contextlib
import random
import threading

import pytest

from tests.support import mqtt
from tests.support.gateway import GatewayProcess
from tests.support.mqtt_client import MqttClient

KILLS = 3
TOPICS = [b"r/%d" % i for i in range(30)]
WAIT_S = 30
pytestmark = pytest.mark.slow


class Setter:
    """Sets and clears retained messages, one at a time, and knows what each topic may have now."""

    def __init__(self, chance):
        self.chance = chance
        self.number = 0
        self.acknowledged = 0
        self.may_have = {topic: {b""} for topic in TOPICS}  # empty: nothing

    def begin(self, gateway):
        """Return a thread that goes on until the gateway is gone."""
        thread = threading.Thread(target=self._work, args=(gateway.address("mqtt"),), daemon=True)
        thread.start()
        return thread

    def _work(self, address):
        with contextlib.suppress(OSError), MqttClient(address, b"setter", clean=True) as client:
            while True:
                self.number += 1
                topic = self.chance.choice(TOPICS)
                body = b"" if self.chance.random() < 0.3 else b"%d" % self.number
                self.may_have[topic].add(body)
                packet_id = 1 + self.number % 60_000
                client.send(mqtt.publish(topic, body, qos=1, packet_id=packet_id, retain=True))
                if client.read(1, WAIT_S) != [mqtt.puback(packet_id)]:
                    return
                self.may_have[topic] = {body}
                self.acknowledged += 1


def read_retained(gateway):
    """Return the retained message of each topic that has one; that of a second SUBSCRIBE says that these are all."""
    found = {}
    with MqttClient(gateway.address("mqtt"), b"looker", clean=True) as client:
        client.send(mqtt.publish(b"end", b"x", qos=1, packet_id=1, retain=True))
        assert client.read(1, WAIT_S) == [mqtt.puback(1)]
        client.send(mqtt.subscribe(1, (b"r/#", 0)), mqtt.subscribe(2, (b"end", 0)))
        while packets := client.read(wait_s=WAIT_S):
            for packet in packets:
                if packet in {mqtt.suback(1, 0), mqtt.suback(2, 0)}:
                    continue
                delivery = mqtt.parse_publish(packet)
                assert delivery.retain
                if delivery.topic == b"end":
                    return found
                assert delivery.topic not in found
                found[delivery.topic] = delivery.body
    raise AssertionError(f"the end does not come, behind {len(found)} messages")


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_each_topic_has_the_newest_retained_message_that_was_acknowledged_or_a_later_one(tmp_path, mode):
    chance = random.Random(mode)
    setter = Setter(chance)
    with GatewayProcess(tmp_path, env={"LMQ_STORE__FLUSH__MODE": mode}) as gateway:
        for _ in range(KILLS):
            before = setter.acknowledged
            thread = setter.begin(gateway)
            thread.join(chance.uniform(0.5, 1.5))  # the moment of the kill, by the case
            gateway.restart()
            thread.join(WAIT_S)
            assert setter.acknowledged > before
            found = read_retained(gateway)
            for topic, bodies in setter.may_have.items():
                assert found.get(topic, b"") in bodies, topic
                setter.may_have[topic] = {found.get(topic, b"")}
        assert gateway.stop() == 0
