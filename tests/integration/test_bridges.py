"""Bridges to a real Mosquitto, and what a kill -9 of either end leaves."""

from __future__ import annotations

import select
import shutil
import signal
import socket
import subprocess
import time

import pytest

from tests.support import mqtt
from tests.support.gateway import GatewayProcess
from tests.support.mqtt_client import WAIT_S, MqttClient

MOSQUITTO = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(MOSQUITTO is None, reason="mosquitto is not installed")]

COUNT = 50
SETTINGS = """
[bridges.cloud]
address = "127.0.0.1:{port}"
client_id = "gw1"
version = "{version}"
retry_min_ms = 50
retry_max_ms = 200
topics = [
  {{ filter = "up/#", remote_prefix = "site1/" }},
  {{ filter = "down/#", direction = "in", remote_prefix = "site1/" }},
  {{ filter = "shared/#", direction = "both" }},
]
"""


class Mosquitto:
    """A broker on one port, which keeps its sessions in memory."""

    def __init__(self, folder):
        self.folder = folder
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            self.port = sock.getsockname()[1]
        self.process = None

    def start(self, *more):
        path = self.folder / "mosquitto.conf"
        path.write_text("\n".join([f"listener {self.port} 127.0.0.1", "allow_anonymous true", *more, ""]))
        self.process = subprocess.Popen([MOSQUITTO, "-c", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
            except OSError:
                select.select([], [], [], 0.01)
            else:
                return
        raise AssertionError("mosquitto does not listen")

    def kill(self):
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None

    def client(self, client_id, **options):
        return MqttClient(("127.0.0.1", self.port), client_id, **options)


@pytest.fixture
def mosquitto(tmp_path):
    broker = Mosquitto(tmp_path)
    yield broker
    broker.kill()


def bridged(tmp_path, mosquitto, version="5"):
    path = tmp_path / "bridge.toml"
    path.write_text(SETTINGS.format(port=mosquitto.port, version=version))
    return GatewayProcess(tmp_path / "data", "--config", str(path))


def wait_until_it_stands(gateway):
    """Wait for the bridge: what is published there before it is subscribed is not its."""
    deadline = time.monotonic() + WAIT_S
    while not any("bridge stands" in line for line in gateway.errors):
        assert time.monotonic() < deadline, gateway.errors
        select.select([], [], [], 0.02)


def publish(client, topic, bodies, *, retain=False):
    for number, body in enumerate(bodies, 1):
        client.send(mqtt.publish(topic + b"/%d" % number, body, qos=1, packet_id=number, retain=retain))
    acked = 0
    while acked < len(bodies):
        packets = client.read()
        assert packets
        acked += sum(one[0] >> 4 == 4 for one in packets)


def subscribe(client, topic_filter):
    client.send(mqtt.subscribe(1, (topic_filter, 1)))
    assert client.read(1)[0][0] == 0x90


def take(client, count):
    """Return topics and bodies of at least `count` messages, in their order, each once."""
    found = {}
    while len(found) < count:
        packets = client.read()
        assert packets, f"only {len(found)} of {count} came"
        for packet in packets:
            if packet[0] >> 4 == 3:
                one = mqtt.parse_publish(packet)
                found.setdefault(one.topic, one.body)
                if one.qos:
                    client.send(mqtt.puback(one.packet_id))
    return found


def numbered(topic, count=COUNT):
    return {topic + b"/%d" % k: b"%d" % k for k in range(1, count + 1)}


BODIES = [b"%d" % k for k in range(1, COUNT + 1)]


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_messages_cross_to_mosquitto_and_back_and_none_is_echoed(tmp_path, mosquitto, version):
    mosquitto.start()
    with (
        bridged(tmp_path, mosquitto, version) as gateway,
        mosquitto.client(b"there", clean=True) as there,
        mosquitto.client(b"from there", clean=True) as from_there,
        MqttClient(gateway.address("mqtt"), b"here", clean=True) as here,
        MqttClient(gateway.address("mqtt"), b"from here", clean=True) as from_here,
    ):
        wait_until_it_stands(gateway)
        subscribe(there, b"#")
        subscribe(here, b"#")
        publish(from_here, b"up", BODIES)
        assert take(there, COUNT) == numbered(b"site1/up")
        assert take(here, COUNT) == numbered(b"up")
        publish(from_there, b"site1/down", BODIES)
        assert take(here, COUNT) == numbered(b"down")
        assert take(there, COUNT) == numbered(b"site1/down")
        publish(from_here, b"shared/here", [b"x"])
        publish(from_there, b"shared/there", [b"y"])
        both = {b"shared/here/1": b"x", b"shared/there/1": b"y"}
        assert take(here, 2) == both
        assert take(there, 2) == both
        assert (here.read(wait_s=0.2), there.read(wait_s=0.2)) == ([], [])
    assert not [line for line in gateway.errors if "Traceback" in line]


def test_what_was_acknowledged_survives_a_kill_of_the_gateway_while_the_other_broker_is_away(tmp_path, mosquitto):
    with bridged(tmp_path, mosquitto) as gateway:
        with MqttClient(gateway.address("mqtt"), b"here", clean=True) as here:
            publish(here, b"up", BODIES, retain=True)
        gateway.restart()
        mosquitto.start()
        with mosquitto.client(b"there", clean=True) as there:
            subscribe(there, b"site1/#")
            assert take(there, COUNT) == numbered(b"site1/up")


def test_what_comes_in_waits_while_the_gateway_is_killed(tmp_path, mosquitto):
    mosquitto.start()
    with bridged(tmp_path, mosquitto) as gateway, mosquitto.client(b"there", clean=True) as there:
        wait_until_it_stands(gateway)
        with MqttClient(gateway.address("mqtt"), b"here") as here:
            subscribe(here, b"down/#")
        gateway.kill()
        publish(there, b"site1/down", BODIES)
        gateway.start()
        with MqttClient(gateway.address("mqtt"), b"here") as here:
            assert take(here, COUNT) == numbered(b"down")


def test_what_goes_out_waits_while_mosquitto_is_killed(tmp_path, mosquitto):
    mosquitto.start()
    with bridged(tmp_path, mosquitto) as gateway, MqttClient(gateway.address("mqtt"), b"here", clean=True) as here:
        wait_until_it_stands(gateway)
        mosquitto.kill()
        publish(here, b"up", BODIES, retain=True)
        mosquitto.start()
        with mosquitto.client(b"there", clean=True) as there:
            subscribe(there, b"site1/#")
            assert take(there, COUNT) == numbered(b"site1/up")


@pytest.mark.parametrize("version", ["mqttv311", "mqttv50"])
def test_bridge_of_mosquitto_to_the_gateway_carries_both_ways_and_nothing_comes_back(tmp_path, mosquitto, version):
    with GatewayProcess(tmp_path / "data") as gateway:
        host, port = gateway.address("mqtt")
        lines = [
            "connection gateway",
            f"address {host}:{port}",
            f"bridge_protocol_version {version}",
            "restart_timeout 1",
            "remote_clientid theirs",
            "notification_topic bridge",
            "topic shared/# both 1",
        ]
        with MqttClient(gateway.address("mqtt"), b"here", clean=True) as here:
            subscribe(here, b"bridge")
            mosquitto.start(*lines)
            assert take(here, 1) == {b"bridge": b"1"}
            with (
                mosquitto.client(b"there", clean=True) as there,
                mosquitto.client(b"from there", clean=True) as from_there,
                MqttClient(gateway.address("mqtt"), b"from here", clean=True) as from_here,
            ):
                subscribe(there, b"shared/#")
                subscribe(here, b"shared/#")
                wait_until_it_carries(from_here, there)
                publish(from_here, b"shared/here", BODIES)
                publish(from_there, b"shared/there", BODIES)
                both = numbered(b"shared/here") | numbered(b"shared/there")
                assert take(there, 2 * COUNT) == both
                assert (there.read(wait_s=0.2), came_again(here, both)) == ([], {})


def wait_until_it_carries(from_here, there):
    """Publish until Mosquitto's bridge has subscribed, and read all that came of that."""
    deadline = time.monotonic() + WAIT_S
    while not there.read(wait_s=0.1):
        assert time.monotonic() < deadline
        from_here.send(mqtt.publish(b"shared/ready", b""))
    from_here.send(mqtt.publish(b"shared/last", b""))
    topics = set()
    while b"shared/last" not in topics:
        packets = there.read()
        assert packets
        topics |= {mqtt.parse_publish(packet).topic for packet in packets if packet[0] >> 4 == 3}


def came_again(client, expected):
    """Return how often messages came that did not come once, when all had their time to come."""
    counts = dict.fromkeys(expected, 0)
    while packets := client.read(wait_s=0.5 if all(counts.values()) else WAIT_S):
        for one in [mqtt.parse_publish(packet) for packet in packets if packet[0] >> 4 == 3]:
            if one.topic in counts:
                counts[one.topic] += 1
            if one.qos:
                client.send(mqtt.puback(one.packet_id))
    return {topic: count for topic, count in counts.items() if count != 1}
