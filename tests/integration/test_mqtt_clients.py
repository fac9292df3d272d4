"""The MQTT door as clients in use find it: paho, aiomqtt, amqtt's client, and mosquitto's tools where they are."""

from __future__ import annotations

import asyncio
import queue
import shutil
import socket
import subprocess
import time

import aiomqtt
import paho.mqtt.client as paho
import pytest
from amqtt.client import MQTTClient

from tests.support import mqtt
from tests.support.gateway import GatewayProcess

pytestmark = pytest.mark.slow

WAIT_S = 15


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    with GatewayProcess(tmp_path_factory.mktemp("mqtt")) as running:
        yield running
        assert not any("Traceback" in line for line in running.errors), "".join(running.errors)


# Paho


class PahoClient:
    """Paho on its own thread; what it is told is put into queues."""

    def __init__(self, gateway, client_id, **options):
        self.messages = queue.Queue()
        self.acks = queue.Queue()
        self.connacks = queue.Queue()
        manual_ack = options.pop("manual_ack", False)
        self.client = paho.Client(paho.CallbackAPIVersion.VERSION2, client_id, manual_ack=manual_ack, **options)
        self.client.on_message = lambda _client, _userdata, message: self.messages.put(message)
        self.client.on_connect = lambda _client, _userdata, flags, code, _properties: self.connacks.put((flags, code))
        self.client.on_subscribe = lambda _client, _userdata, _id, codes, _properties: self.acks.put(codes)
        self.address = gateway.address("mqtt")

    def __enter__(self):
        self.client.connect(*self.address)
        self.client.loop_start()
        self.flags, self.code = self.connacks.get(timeout=WAIT_S)
        return self

    def __exit__(self, *exc_info):
        self.client.disconnect()
        self.client.loop_stop()

    def subscribe(self, topic_filter, qos):
        self.client.subscribe(topic_filter, qos)
        (code,) = self.acks.get(timeout=WAIT_S)
        return code.value

    def publish(self, topic, body, qos=1, *, retain=False):
        self.client.publish(topic, body, qos, retain).wait_for_publish(WAIT_S)

    def take(self, count):
        return [self.messages.get(timeout=WAIT_S) for _ in range(count)]


@pytest.mark.parametrize("protocol", [paho.MQTTv311, paho.MQTTv31])
def test_paho_publishes_and_subscribes(gateway, protocol):
    topic = f"paho/{protocol}/t"
    with PahoClient(gateway, f"paho{protocol}", protocol=protocol, clean_session=True) as client:
        assert client.subscribe(f"paho/{protocol}/#", 2) == 1
        for i in range(500):
            client.client.publish(topic, b"%d" % i, i % 2)
        got = client.take(500)
        assert {(message.topic, message.retain, message.dup) for message in got} == {(topic, False, False)}
        for qos in (0, 1):  # paho itself holds back QoS 1 beyond its window, and lets QoS 0 pass
            assert [m.payload for m in got if m.qos == qos] == [b"%d" % i for i in range(500) if i % 2 == qos]


def test_paho_with_a_persistent_session_gets_what_it_missed(gateway):
    with PahoClient(gateway, "paho-durable", clean_session=False) as client:
        assert not client.flags.session_present
        client.subscribe("durable/+", 1)
    with PahoClient(gateway, "paho-other", clean_session=True) as other:
        for i in range(50):
            other.publish("durable/x", b"%d" % i)
    with PahoClient(gateway, "paho-durable", clean_session=False) as client:
        assert client.flags.session_present
        assert [message.payload for message in client.take(50)] == [b"%d" % i for i in range(50)]


def test_paho_that_acknowledges_late_gets_messages_again_marked(gateway):
    with PahoClient(gateway, "paho-late", clean_session=False, manual_ack=True) as client:
        client.subscribe("late/t", 1)
        for i in range(5):
            client.publish("late/t", b"%d" % i)
        got = client.take(5)
        assert not any(message.dup for message in got)
        for message in got[:2]:
            client.client.ack(message.mid, message.qos)
    with PahoClient(gateway, "paho-late", clean_session=False) as client:
        assert [(message.payload, message.dup) for message in client.take(3)] == [(b"%d" % i, True) for i in (2, 3, 4)]


def test_paho_gets_retained_messages_and_wills(gateway):
    with PahoClient(gateway, "paho-sub", clean_session=True) as client:
        with PahoClient(gateway, "paho-pub", clean_session=True) as other:
            other.publish("kept/1", b"state", 0, retain=True)
            other.publish("kept/2", b"", 1, retain=True)
        client.subscribe("kept/#", 1)
        (message,) = client.take(1)
        assert (message.topic, message.payload, message.retain, message.qos) == ("kept/1", b"state", True, 0)
        client.subscribe("gone/#", 1)
        with socket.create_connection(gateway.address("mqtt")) as sock:
            sock.sendall(mqtt.connect(b"dying", will=(b"gone/dying", b"bye", 1, False)))
            assert sock.recv(4) == mqtt.connack()
        (message,) = client.take(1)
        assert (message.topic, message.payload, message.qos) == ("gone/dying", b"bye", 1)


def test_paho_at_qos_2_is_disconnected(gateway):
    with PahoClient(gateway, "paho-qos2", clean_session=True) as client:
        gone = queue.Queue()
        client.client.on_disconnect = lambda *arguments: gone.put(arguments)
        client.client.reconnect_delay_set(60, 60)
        client.client.publish("t", b"x", 2)
        gone.get(timeout=WAIT_S)


def test_mqtt_5_client_is_told_that_its_level_is_not_spoken(gateway):
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, "five", protocol=paho.MQTTv5)
    refused = queue.Queue()
    client.on_connect_fail = lambda *arguments: refused.put(arguments)
    client.on_disconnect = lambda *arguments: refused.put(arguments)
    client.on_connect = lambda *arguments: refused.put(arguments)
    client.connect(*gateway.address("mqtt"))
    client.loop_start()
    refused.get(timeout=WAIT_S)
    assert not client.is_connected()
    client.loop_stop()


# asyncio clients


@pytest.mark.asyncio
async def test_aiomqtt_fans_out_to_many(gateway):
    host, port = gateway.address("mqtt")
    count = 200

    async def subscriber(ready):
        async with aiomqtt.Client(host, port) as client:
            await client.subscribe("fan/+/x", qos=1)
            ready.set()
            return [message.payload async for message in _first(client.messages, count)]

    ready = [asyncio.Event() for _ in range(5)]
    tasks = [asyncio.create_task(subscriber(one)) for one in ready]
    await asyncio.gather(*[one.wait() for one in ready])
    async with aiomqtt.Client(host, port) as client:
        for i in range(count):
            await client.publish(f"fan/{i}/x", b"%d" % i, qos=1)
    expected = [b"%d" % i for i in range(count)]
    assert await asyncio.wait_for(asyncio.gather(*tasks), WAIT_S) == [expected] * 5


async def _first(messages, count):
    async for message in messages:
        yield message
        count -= 1
        if not count:
            return


@pytest.mark.asyncio
async def test_amqtt_client_publishes_and_subscribes(gateway):
    host, port = gateway.address("mqtt")
    client = MQTTClient(client_id="amqtt-client", config={"auto_reconnect": False})
    await client.connect(f"mqtt://{host}:{port}/")
    assert await client.subscribe([("amqtt/#", 1)]) == [1]
    for i in range(20):
        await client.publish("amqtt/t", b"%d" % i, qos=i % 2)
    got = [await client.deliver_message(timeout_duration=WAIT_S) for _ in range(20)]
    assert [bytes(message.data) for message in got] == [b"%d" % i for i in range(20)]
    await client.unsubscribe(["amqtt/#"])
    await client.disconnect()


# mosquitto's tools


@pytest.mark.skipif(shutil.which("mosquitto_sub") is None, reason="mosquitto's tools are not installed")
def test_mosquitto_tools_publish_and_subscribe(gateway):
    def run(tool, *options):
        command = [shutil.which(tool), "-h", "127.0.0.1", "-p", str(gateway.port("mqtt")), *options]
        return subprocess.run(command, check=True, timeout=WAIT_S, capture_output=True, text=True).stdout

    session = ("-c", "-i", "mosq", "-t", "mosq/#", "-q", "1")
    run("mosquitto_sub", *session, "-E")  # leaves when it has its SUBACK
    for qos in ("0", "1", "1"):
        run("mosquitto_pub", "-t", f"mosq/{qos}", "-m", "hello", "-q", qos)
    lines = run("mosquitto_sub", *session, "-C", "3", "-F", "%t %p %q").splitlines()
    assert lines == ["mosq/0 hello 0", "mosq/1 hello 1", "mosq/1 hello 1"]


# The socket


def test_connection_without_connect_or_with_rubbish_is_closed_and_others_live(gateway):
    with PahoClient(gateway, "bystander", clean_session=True) as client:
        client.subscribe("ok", 0)
        for _, data in mqtt.MALFORMED_FIRST[:10]:
            with socket.create_connection(gateway.address("mqtt"), timeout=WAIT_S) as sock:
                sock.sendall(data)
                assert sock.recv(100) == b""
        client.publish("ok", b"still here", 1)
        assert client.take(1)[0].payload == b"still here"


def test_keep_alive_ends_a_silent_connection_and_publishes_its_will(gateway):
    with PahoClient(gateway, "watcher", clean_session=True) as client:
        client.subscribe("silent", 1)
        began = time.monotonic()
        with socket.create_connection(gateway.address("mqtt"), timeout=WAIT_S) as sock:
            sock.sendall(mqtt.connect(b"mute", keep_alive_s=1, will=(b"silent", b"gone", 1, False)))
            assert sock.recv(4) == mqtt.connack()
            assert sock.recv(4) == b""
        assert 1.4 < time.monotonic() - began < 4
        assert client.take(1)[0].payload == b"gone"
