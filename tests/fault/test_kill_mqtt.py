"""Persistent MQTT sessions through a gateway that is killed with -9 again and again."""

from __future__ import annotations

import socket
import threading

import pytest

from tests.gateway.mqtt.test_exact_outgoing import ExactClient, ExactSender
from tests.support import mqtt
from tests.support.gateway import GatewayProcess
from tests.support.mqtt_client import MqttClient

pytestmark = pytest.mark.slow

KILLS = 8
EXACT_KILLS = 4
BURST = 200


@pytest.mark.timeout(300)  # nine starts, beside other tests on a few cores
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


def test_each_message_at_qos_2_comes_exactly_once_from_publisher_to_subscriber(tmp_path):
    client, sender = ExactClient(), ExactSender()
    with GatewayProcess(tmp_path / "data") as gateway:
        for life in range(EXACT_KILLS):
            address = gateway.address("mqtt")
            with MqttClient(address, b"sub") as subscriber, MqttClient(address, b"pub") as publisher:
                if not life:
                    subscriber.send(mqtt.subscribe(1, (b"t", 2)))
                    assert subscriber.read() == [mqtt.suback(1, 2)]
                complete(publisher, sender)
                publisher.send(*[sender.next() for _ in range(40)])
                publisher.send(*sender.take(publisher.read(5 * life + 1)))
                client.take(subscriber.read(10 + 3 * life))
                subscriber.send(*client.answers[: 5 * life])
                client.take(subscriber.read(life + 1))
            client.answers.clear()
            gateway.restart()
        address = gateway.address("mqtt")
        with MqttClient(address, b"sub") as subscriber, MqttClient(address, b"pub") as publisher:
            complete(publisher, sender)
            while client.held or len(client.got) < sender.count:
                packets = subscriber.read()
                assert packets, "a message did not come, or was not released"
                client.take(packets)
                subscriber.send(*client.answers)
                client.answers.clear()
            wait_for_answer(subscriber)
    assert client.got == [b"%d" % i for i in range(1, EXACT_KILLS * 40 + 1)]


def complete(publisher, sender):
    """Send again what was not completed, and wait until it is."""
    publisher.send(*sender.again())
    while sender.unsent or sender.unreleased:
        packets = publisher.read()
        assert packets, "a packet was not answered"
        publisher.send(*sender.take(packets))


def test_session_and_will_of_a_client_that_had_its_connack_outlive_a_kill(tmp_path):
    names = [b"c%d" % i for i in range(40)]
    with GatewayProcess(tmp_path / "data") as gateway:
        with MqttClient(gateway.address("mqtt"), b"sub") as subscriber:
            subscriber.send(mqtt.subscribe(1, (b"will", 1)))
            assert mqtt.suback(1, 1) in subscriber.read()
        address = gateway.address("mqtt")
        clients = [MqttClient(address, name, will=(b"will", name, 1, False)) for name in names]
        gateway.kill()
        assert not any(client.session_present for client in clients)
        for client in clients:
            client.sock.close()
        gateway.start()
        with MqttClient(gateway.address("mqtt"), b"sub") as subscriber:
            assert sorted(d.body for d in take(subscriber, len(names))) == sorted(names)
        for name in names:
            with MqttClient(gateway.address("mqtt"), name) as client:
                assert client.session_present


WILL_DELAY_S = 1


def leave_a_will(gateway, delay_s):
    """Connect a client with a will and return its socket."""
    sock = socket.create_connection(gateway.address("mqtt"), timeout=20)
    delay = b"\x05\x18" + delay_s.to_bytes(4, "big") if delay_s else b"\0"
    expiry = b"\x05\x11" + (60).to_bytes(4, "big")
    sock.sendall(mqtt.connect_5(b"lost", properties=expiry, will=(b"will", b"gone", 1, False, delay)))
    assert sock.recv(100)[0] == 0x20
    sock.sendall(mqtt.subscribe_5(1, (b"own", 0)))
    assert sock.recv(100)[0] == 0x90  # what came before is on disk too
    return sock


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "stopped"])
def test_a_will_whose_time_came_meanwhile_is_published_at_the_start(tmp_path, is_killed):
    with GatewayProcess(tmp_path / "data") as gateway:
        with MqttClient(gateway.address("mqtt"), b"sub") as subscriber:
            subscriber.send(mqtt.subscribe(1, (b"will", 1)))
            assert mqtt.suback(1, 1) in subscriber.read()
        with leave_a_will(gateway, WILL_DELAY_S):
            if is_killed:
                gateway.kill()
        if not is_killed:
            assert gateway.stop() == 0
        threading.Event().wait(WILL_DELAY_S)  # the very time that the will waits
        gateway.start()
        with MqttClient(gateway.address("mqtt"), b"sub") as subscriber:
            assert [d.body for d in take(subscriber, 1)] == [b"gone"]


def test_retained_messages_in_flight_come_again_and_the_catch_up_goes_on_where_it_was(tmp_path):
    names = [b"r/%d" % i for i in range(BURST)]
    window = 64
    with GatewayProcess(tmp_path / "data", env={"LMQ_MQTT__INFLIGHT_MAX": str(window)}) as gateway:
        with MqttClient(gateway.address("mqtt"), b"pub") as publisher:
            publish_retained(publisher, *[(name, name) for name in names])
        with MqttClient(gateway.address("mqtt"), b"sub") as subscriber:
            subscriber.send(mqtt.subscribe(1, (b"r/#", 1)))
            assert [d.body for d in take(subscriber, window)] == names[:window]
            gateway.restart()
        done = 0
        while done < BURST:
            with MqttClient(gateway.address("mqtt"), b"sub") as subscriber:
                sent_before = names[done : done + window]
                got = take(subscriber, len(sent_before))
                assert [(d.body, d.retain, d.dup) for d in got] == [(name, True, True) for name in sent_before]
                subscriber.send(*[mqtt.puback(d.packet_id) for d in got[: window // 2]])
                unsent = names[done + len(got) :][: window // 2]
                assert [(d.body, d.dup) for d in take(subscriber, len(unsent))] == [(name, False) for name in unsent]
                wait_for_answer(subscriber)
                done += len(got[: window // 2])
            gateway.restart()
        with MqttClient(gateway.address("mqtt"), b"sub") as subscriber:
            wait_for_answer(subscriber)


@pytest.mark.parametrize("newer", [b"newer", b""])
def test_retained_message_in_flight_comes_again_before_what_replaced_or_cleared_it(tmp_path, newer):  # MQTT-4.4.0-1
    names = [b"r/%d" % i for i in range(20)]
    replaced = names[5:10]
    with GatewayProcess(tmp_path / "data") as gateway:
        with MqttClient(gateway.address("mqtt"), b"pub") as publisher:
            publish_retained(publisher, *[(name, b"older") for name in names])
        with MqttClient(gateway.address("mqtt"), b"sub") as subscriber:
            subscriber.send(mqtt.subscribe(1, (b"r/#", 1)))
            assert [d.topic for d in take(subscriber, len(names))] == names
        with MqttClient(gateway.address("mqtt"), b"pub") as publisher:
            publish_retained(publisher, *[(name, newer) for name in replaced])
        older = [(name, b"older", True, True) for name in names]
        for dup in (False, True):
            gateway.restart()
            with MqttClient(gateway.address("mqtt"), b"sub") as subscriber:
                got = take(subscriber, len(names) + len(replaced))
                told = [(d.topic, d.body, d.retain, d.dup) for d in got]
                assert told == older + [(name, newer, False, dup) for name in replaced]
                if dup:
                    subscriber.send(*[mqtt.puback(d.packet_id) for d in got])
                    wait_for_answer(subscriber)
        gateway.restart()
        with MqttClient(gateway.address("mqtt"), b"sub") as subscriber:
            wait_for_answer(subscriber)


def publish_retained(publisher, *messages):
    """Publish pairs of topic and body, and wait until all are acknowledged."""
    for packet_id, (topic, body) in enumerate(messages, 1):
        publisher.send(mqtt.publish(topic, body, qos=1, packet_id=packet_id, retain=True))
    take_acks(publisher, messages, set())


def take(subscriber, count):
    """Return so many messages, which come with nothing else."""
    packets = []
    while len(packets) < count:
        more = subscriber.read(count - len(packets))
        assert more, "a message did not come"
        packets += [packet for packet in more if packet[0] >> 4 == 3]
    return parse(packets)


def wait_for_answer(subscriber):
    """Wait until what was sent is worked off; nothing else comes."""
    subscriber.send(mqtt.PINGREQ)
    assert subscriber.read(1) == [mqtt.PINGRESP]


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
