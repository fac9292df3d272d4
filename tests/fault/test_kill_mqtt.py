"""Persistent MQTT sessions through a gateway that is killed with -9 again and again."""

from __future__ import annotations

import pytest

from tests.support import mqtt
from tests.support.gateway import GatewayProcess
from tests.support.mqtt_client import MqttClient

pytestmark = pytest.mark.slow

KILLS = 8
BURST = 200


def test_persistent_session_loses_nothing_and_acknowledged_messages_do_not_come_again(tmp_path):
    confirmed = set()  # the gateway acknowledged them to the publisher
    received = {}  # body -> how often
    finished = set()  # acknowledged by the subscriber, and known to be taken
    with GatewayProcess(tmp_path / "data") as gateway:
        for round_number in range(KILLS):
            address = gateway.address("mqtt")
            with MqttClient(address, b"sub") as subscriber, MqttClient(address, b"pub") as publisher:
                assert subscriber.session_present == (round_number > 0)
                if not round_number:
                    subscriber.send(mqtt.subscribe(1, (b"t/#", 1)))
                    assert mqtt.suback(1, 1) in subscriber.read()
                bodies = [b"%d-%d" % (round_number, i) for i in range(BURST)]
                publisher.send(*[mqtt.publish(b"t/x", body, qos=1, packet_id=i + 1) for i, body in enumerate(bodies)])
                take_acks(publisher, bodies, confirmed)
                taken = take_some(subscriber, received, finished)
                # A PINGRESP says that the acknowledgements before it were taken.
                subscriber.send(mqtt.PINGREQ)
                while mqtt.PINGRESP not in (packets := subscriber.read()):
                    note(packets, received, finished)
                finished |= taken
            gateway.restart()
        with MqttClient(gateway.address("mqtt"), b"sub") as subscriber:
            while packets := subscriber.read(wait_s=2):
                note(packets, received, finished)
                subscriber.send(*[mqtt.puback(d.packet_id) for d in parse(packets)])
    assert len(confirmed) == KILLS * BURST
    assert confirmed <= set(received)


def test_retained_messages_in_flight_to_a_persistent_session_come_again(tmp_path):
    names = {b"r/%d" % i for i in range(BURST)}
    with GatewayProcess(tmp_path / "data", env={"LMQ_MQTT__INFLIGHT_MAX": "64"}) as gateway:
        with MqttClient(gateway.address("mqtt"), b"pub") as publisher:
            publisher.send(*[mqtt.publish(name, name, qos=1, packet_id=1, retain=True) for name in names])
            take_acks(publisher, [b""] * 1, set())
        with MqttClient(gateway.address("mqtt"), b"sub") as subscriber:
            subscriber.send(mqtt.subscribe(1, (b"r/#", 1)))
            first = parse(subscriber.read())
            while not first:
                first = parse(subscriber.read())
            gateway.restart()
        missing = names
        for acknowledged_count in (0, 100, BURST):
            with MqttClient(gateway.address("mqtt"), b"sub") as subscriber:
                got = []
                while len(got) < min(acknowledged_count + 1, BURST):
                    more = parse(subscriber.read())
                    assert more
                    got += more
                    if acknowledged_count:
                        subscriber.send(*[mqtt.puback(d.packet_id) for d in more])
                assert all(d.retain and d.dup for d in got)
                missing = names - {d.body for d in got}
                subscriber.send(mqtt.PINGREQ)
                while mqtt.PINGRESP not in subscriber.read():
                    pass
            gateway.restart()
        assert not missing
        with MqttClient(gateway.address("mqtt"), b"sub") as subscriber:
            subscriber.send(mqtt.PINGREQ)
            assert subscriber.read() == [mqtt.PINGRESP]


def take_acks(publisher, bodies, confirmed):
    acked = set()
    while len(acked) < len(bodies):
        acked |= {int.from_bytes(packet[2:4], "big") for packet in publisher.read() if packet[0] == 0x40}
    confirmed.update(bodies[packet_id - 1] for packet_id in acked)


def take_some(subscriber, received, finished):
    """Receive half of what there is and acknowledge most of that."""
    taken = set()
    while len(taken) < BURST // 2:
        deliveries = note(subscriber.read(), received, finished)
        keep = deliveries[: len(deliveries) * 2 // 3 + 1]
        subscriber.send(*[mqtt.puback(d.packet_id) for d in keep])
        taken |= {d.body for d in keep}
        if len(keep) < len(deliveries):
            break  # what comes after one that is not acknowledged may come again
    return taken


def note(packets, received, finished):
    deliveries = parse(packets)
    for delivery in deliveries:
        assert delivery.body not in finished, "an acknowledged message came again"
        assert received.get(delivery.body, 0) == 0 or delivery.dup, "a message came again without the mark"
        received[delivery.body] = received.get(delivery.body, 0) + 1
    return deliveries


def parse(packets):
    return [mqtt.parse_publish(packet) for packet in packets if packet[0] >> 4 == 3]
