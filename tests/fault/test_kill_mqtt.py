"""Persistent MQTT sessions through a gateway that is killed with -9 again and again."""

from __future__ import annotations

import select
import socket
import time

import pytest

from tests.support import mqtt
from tests.support.gateway import GatewayProcess

pytestmark = pytest.mark.slow

KILLS = 8
BURST = 200
WAIT_S = 15


class Client:
    """A client on a blocking socket."""

    def __init__(self, gateway, client_id):
        self.sock = socket.create_connection(gateway.address("mqtt"), timeout=WAIT_S)
        self.tail = b""
        self.sock.sendall(mqtt.connect(client_id, clean=False))
        (first,) = self.read(1)
        assert first[:2] == b"\x20\x02"
        assert first[3] == 0
        self.session_present = bool(first[2])

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.sock.close()

    def send(self, *packets):
        self.sock.sendall(b"".join(packets))

    def read(self, count_max=None, wait_s=WAIT_S):
        """Return whole packets that came: at least one, or none after `wait_s`, or on a connection that is lost."""
        until = time.monotonic() + wait_s
        while time.monotonic() < until:
            packets, self.tail = split(self.tail, count_max)
            if packets:
                return packets
            if select.select([self.sock], [], [], max(until - time.monotonic(), 0))[0]:
                data = self.sock.recv(1 << 16)
                if not data:
                    return []
                self.tail += data
        return []


def split(data, count_max):
    """Return the whole packets at the start of `data`, and the rest."""
    packets = []
    pos = 0
    while pos + 2 <= len(data) and (count_max is None or len(packets) < count_max):
        size, at, shift = 0, pos + 1, 0
        while at < len(data):
            size |= (data[at] & 0x7F) << shift
            shift += 7
            at += 1
            if data[at - 1] < 0x80:
                break
        else:
            break
        if at + size > len(data):
            break
        packets.append(data[pos : at + size])
        pos = at + size
    return packets, data[pos:]


def test_persistent_session_loses_nothing_and_acknowledged_messages_do_not_come_again(tmp_path):
    confirmed = set()  # the gateway acknowledged them to the publisher
    received = {}  # body -> how often
    finished = set()  # acknowledged by the subscriber, and known to be taken
    with GatewayProcess(tmp_path / "data") as gateway:
        for round_number in range(KILLS):
            with Client(gateway, b"sub") as subscriber, Client(gateway, b"pub") as publisher:
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
        with Client(gateway, b"sub") as subscriber:
            while packets := subscriber.read(wait_s=2):
                note(packets, received, finished)
                subscriber.send(*[mqtt.puback(d.packet_id) for d in parse(packets)])
    assert len(confirmed) == KILLS * BURST
    assert confirmed <= set(received)


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
