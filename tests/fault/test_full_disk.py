"""A disk that gets full, with real processes: publishers wait, consumers do not, and nothing acknowledged is lost."""

from __future__ import annotations

import shutil
import threading
import urllib.request

import pytest

from tests.support import mqtt
from tests.support.gateway import DOORS, GatewayProcess
from tests.support.mqtt_client import MqttClient

pytestmark = pytest.mark.slow

MIB = 1 << 20
BODY_BYTES = 8 * 1024
NUMBER_BYTES = 4
QUIET_S = 1.0  # a publisher that is not answered for so long is held
WAIT_S = 20
HELD = "publishers are held back"
TOPIC, FILTER = b"plant/1", b"plant/#"


def serve(data_dir, free_bytes_min, segment_bytes=MIB):
    env = {"LMQ_STORE__DISK_FREE_BYTES_MIN": str(free_bytes_min), "LMQ_STORE__SEGMENT_BYTES": str(segment_bytes)}
    return GatewayProcess(data_dir, env=env, doors=DOORS)


class Publisher:
    """Sends numbered messages at QoS 1, one at a time, and knows which were acknowledged."""

    def __init__(self, gateway, sent=0):
        self.client = MqttClient(gateway.address("mqtt"), b"sender", clean=True)
        self.sent = sent
        self.acknowledged = []

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.client.sock.close()

    def publish(self, wait_s):
        """Send the next message; return whether it was acknowledged in time."""
        self.sent += 1
        body = self.sent.to_bytes(NUMBER_BYTES, "big") + bytes(BODY_BYTES)
        self.client.send(mqtt.publish(TOPIC, body, qos=1, packet_id=self.sent))
        return self.hear(wait_s)

    def hear(self, wait_s):
        """Return whether the last message is acknowledged in time."""
        packets = self.client.read(1, wait_s)
        if packets:
            assert packets == [mqtt.puback(self.sent)]
            self.acknowledged.append(self.sent)
        return bool(packets)

    def fill(self, gateway):
        """Publish until the gateway holds publishers back; the last message stays unanswered."""
        answered = True
        while answered:
            answered = self.publish(QUIET_S)
            while not answered and not any(HELD in line for line in gateway.errors):
                answered = self.hear(QUIET_S)  # slow is not held


def subscribe(gateway):
    """Return a persistent session of the filter, for what is published from now on."""
    client = MqttClient(gateway.address("mqtt"), b"reader")
    if not client.session_present:
        client.send(mqtt.subscribe(1, (FILTER, 1)))
        client.read(1)
    return client


def take_all(client, last):
    """Read and acknowledge until the message of number `last` came; return the numbers."""
    found = []
    while not found or found[-1] != last:
        packets = client.read()
        assert packets, "a message is missing"
        for packet in packets:
            delivery = mqtt.parse_publish(packet)
            found.append(int.from_bytes(delivery.body[:NUMBER_BYTES], "big"))
            client.send(mqtt.puback(delivery.packet_id))
    return found


def wait_for_line(gateway, text):
    never = threading.Event()
    for _ in range(50 * WAIT_S):
        if lines := [line for line in gateway.errors if text in line]:
            return lines
        never.wait(0.02)
    raise AssertionError(f"not said: {text}\n" + "".join(gateway.errors))


def test_mark_that_is_reached_from_the_start_holds_publishers_and_no_consumers(tmp_path):
    data_dir = tmp_path / "data"
    with serve(data_dir, 0) as gateway, Publisher(gateway) as sender:
        subscribe(gateway).sock.close()
        for _ in range(3):
            assert sender.publish(WAIT_S)
        gateway.stop()
    with serve(data_dir, 1 << 60) as gateway, Publisher(gateway, sent=3) as held:
        (line,) = wait_for_line(gateway, HELD)
        assert f"disk_free_bytes_min={1 << 60}" in line
        assert str(data_dir) in line
        with subscribe(gateway) as reader:
            assert take_all(reader, 3) == [1, 2, 3]
        assert held.publish(WAIT_S)  # it was read before it was known for a publisher
        assert not held.publish(QUIET_S)
        with urllib.request.urlopen("http://{}:{}/readyz".format(*gateway.address("admin")), timeout=20) as answer:
            assert answer.status == 200
        gateway.kill()
    with serve(data_dir, 0) as gateway, Publisher(gateway, sent=5) as sender, subscribe(gateway) as reader:
        assert sender.publish(WAIT_S)
        assert take_all(reader, 6) == [4, 6]


@pytest.mark.parametrize(
    ("free_bytes_min", "segment_bytes", "least_bytes", "most_bytes"),
    [
        # Between two looks 512 KiB are written, what was read by then is taken, and a segment is ready ahead.
        pytest.param(8 * MIB, MIB, 4 * MIB, 9 * MIB, id="mark"),
        # Large segments: the second half of one is full long after the next is missed.
        pytest.param(0, 16 * MIB, 0, 16 * MIB, id="full"),
    ],
)
def test_publishers_wait_until_there_is_room_again_and_nothing_is_lost(
    small_disk, free_bytes_min, segment_bytes, least_bytes, most_bytes
):
    with serve(small_disk / "data", free_bytes_min, segment_bytes) as gateway:
        subscribe(gateway).sock.close()
        with Publisher(gateway) as sender:
            sender.fill(gateway)
            assert least_bytes <= shutil.disk_usage(small_disk).free < most_bytes
            (small_disk / "ballast").unlink()
            assert sender.hear(WAIT_S)
            wait_for_line(gateway, "publishers go on")
            for _ in range(100):
                assert sender.publish(WAIT_S)
        assert sender.acknowledged == list(range(1, sender.sent + 1))
        gateway.restart()
        with subscribe(gateway) as reader:
            assert take_all(reader, sender.sent) == sender.acknowledged
        assert gateway.stop() == 0
