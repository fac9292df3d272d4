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
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tests.support import mqtt
from tests.support.gateway import GatewayProcess
from tests.support.store import read_folder

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


@pytest.mark.parametrize("protocol", [paho.MQTTv311, paho.MQTTv31, paho.MQTTv5])
def test_paho_publishes_and_subscribes(gateway, protocol):
    options = {} if protocol == paho.MQTTv5 else {"clean_session": True}
    topic = f"paho/{protocol}/t"
    with PahoClient(gateway, f"paho{protocol}", protocol=protocol, **options) as client:
        assert client.subscribe(f"paho/{protocol}/#", 2) == 2
        for i in range(600):
            client.client.publish(topic, b"%d" % i, i % 3)
        got = client.take(600)
        assert {(message.topic, message.retain, message.dup) for message in got} == {(topic, False, False)}
        # Paho holds back QoS 1 and 2 beyond its window, lets QoS 0 pass, and hands QoS 2 on in the end.
        for qos in (0, 1, 2):
            assert [m.payload for m in got if m.qos == qos] == [b"%d" % i for i in range(600) if i % 3 == qos]


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


def test_paho_gets_each_message_at_qos_2_once_over_kills_of_the_gateway(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    off = [part for door in ("amqp", "namesrv", "broker", "admin") for part in (f"--{door}", "off")]
    with GatewayProcess(tmp_path / "data", "--mqtt", f"127.0.0.1:{port}", *off, doors=()) as gateway:
        subscriber = PahoClient(gateway, "exact-sub", clean_session=False)
        publisher = PahoClient(gateway, "exact-pub", clean_session=False)
        for client in (subscriber, publisher):
            client.client.reconnect_delay_set(1, 1)
        with subscriber, publisher:
            subscriber.subscribe("exact/t", 2)
            for i in range(300):
                publisher.client.publish("exact/t", b"%d" % i, 2)
                if i in {50, 150, 250}:
                    gateway.restart()
            got = [message.payload for message in subscriber.take(300)]
            assert subscriber.messages.empty()
        assert sorted(got, key=int) == [b"%d" % i for i in range(300)]
        gateway.stop()
        assert got == read_folder(tmp_path / "data")[0]  # paho itself may send a new one before those that it repeats


def properties_of(packet_type, **values):
    made = Properties(packet_type)
    for name, value in values.items():
        setattr(made, name, value)
    return made


def test_paho_of_version_5_gets_all_that_was_published(gateway):
    with PahoClient(gateway, "five", protocol=paho.MQTTv5) as client:
        assert client.subscribe("five/#", 2) == 2
        properties = properties_of(
            PacketTypes.PUBLISH,
            ContentType="text/plain",
            ResponseTopic="five/answers",
            CorrelationData=b"\x00\xff",
            PayloadFormatIndicator=1,
            MessageExpiryInterval=60,
            UserProperty=[("b", "1"), ("a", "2"), ("b", "3")],
        )
        client.client.publish("five/t", b"x", 2, properties=properties).wait_for_publish(WAIT_S)
        (message,) = client.take(1)
        found = message.properties
        assert (message.payload, message.qos, found.ContentType) == (b"x", 2, "text/plain")
        assert (found.ResponseTopic, found.CorrelationData) == ("five/answers", b"\x00\xff")
        assert found.UserProperty == [("b", "1"), ("a", "2"), ("b", "3")]
        assert 58 <= found.MessageExpiryInterval <= 60


def test_paho_of_version_5_resumes_its_session(gateway):
    expiry = properties_of(PacketTypes.CONNECT, SessionExpiryInterval=600)
    for is_present in (False, True):
        client = PahoClient(gateway, "five-durable", protocol=paho.MQTTv5)
        client.client.connect(*client.address, clean_start=False, properties=expiry)
        client.client.loop_start()
        flags, code = client.connacks.get(timeout=WAIT_S)
        assert (flags.session_present, code.value) == (is_present, 0)
        if is_present:
            assert [message.payload for message in client.take(2)] == [b"1", b"2"]
        else:
            client.subscribe("five-kept/#", 1)
        client.client.disconnect()
        client.client.loop_stop()
        with PahoClient(gateway, "five-other", protocol=paho.MQTTv5) as other:
            other.publish("five-kept/t", b"1")
            other.publish("five-kept/t", b"2")


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


@pytest.mark.asyncio
async def test_aiomqtt_of_version_5_asks_and_answers(gateway):
    host, port = gateway.address("mqtt")
    version = {"protocol": aiomqtt.ProtocolVersion.V5}
    async with aiomqtt.Client(host, port, **version) as server, aiomqtt.Client(host, port, **version) as client:
        await server.subscribe("ask/t", qos=2)
        await client.subscribe("ask/answers", qos=1)
        question = properties_of(PacketTypes.PUBLISH, ResponseTopic="ask/answers", CorrelationData=b"7")
        await client.publish("ask/t", b"?", qos=2, properties=question)
        async for message in _first(server.messages, 1):
            answer = properties_of(PacketTypes.PUBLISH, CorrelationData=message.properties.CorrelationData)
            await server.publish(message.properties.ResponseTopic, b"!", qos=1, properties=answer)
        async for message in _first(client.messages, 1):
            assert (message.payload, message.properties.CorrelationData) == (b"!", b"7")


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


# gmqtt


class GmqttClient:
    """gmqtt, which calls back; what it is told is put into queues.

    It is no part of the set-up, for it brings a package `tests` that would stand in place of ours.
    """

    def __init__(self, gateway, client_id, version, **options):
        gmqtt = pytest.importorskip("gmqtt")
        self.client = gmqtt.Client(client_id, **options)
        self.messages, self.acks = asyncio.Queue(), asyncio.Queue()
        self.client.on_message = lambda _client, topic, body, qos, items: self._note(topic, body, qos, items)
        self.client.on_subscribe = lambda _client, _id, codes, _properties: self.acks.put_nowait(codes)
        self._where = (*gateway.address("mqtt"), False, 60, version)

    def _note(self, *message):
        self.messages.put_nowait(message)
        return 0

    async def __aenter__(self):
        host, port, ssl, keep_alive_s, version = self._where
        await self.client.connect(host, port, ssl, keep_alive_s, version)
        return self

    async def __aexit__(self, *exc_info):
        await self.client.disconnect()

    async def subscribe(self, topic_filter, qos):
        self.client.subscribe(topic_filter, qos=qos)
        return await asyncio.wait_for(self.acks.get(), WAIT_S)

    async def take(self, count):
        return [await asyncio.wait_for(self.messages.get(), WAIT_S) for _ in range(count)]


@pytest.mark.asyncio
@pytest.mark.parametrize("version", [4, 5])
async def test_gmqtt_publishes_subscribes_and_resumes(gateway, version):
    name = f"gmqtt-{version}"
    lasts = {"clean_session": False} | ({"session_expiry_interval": 60} if version == 5 else {})
    items = {"user_property": [("k", "v"), ("k", "w")], "content_type": "a/b"} if version == 5 else {}
    async with GmqttClient(gateway, name, version, **lasts) as one:
        assert list(await one.subscribe(f"{name}/#", 2)) == [2]
        for i in range(30):
            one.client.publish(f"{name}/t", b"%d" % i, qos=i % 3, **items)
        got = await one.take(30)
        assert sorted(int(body) for _, body, _, _ in got) == list(range(30))
        assert all(qos == int(body) % 3 for _, body, qos, _ in got)
        if items:
            assert all(found["user_property"] == items["user_property"] for *_, found in got)
            assert all(found["content_type"] == ["a/b"] for *_, found in got)
    async with GmqttClient(gateway, "p" + name, version, clean_session=True) as other:
        other.client.publish(f"{name}/later", b"later", qos=1, retain=True)
    async with GmqttClient(gateway, name, version, **lasts) as again:
        while (found := (await again.take(1))[0])[0] == f"{name}/t":
            assert found[2]  # it had not acknowledged that when it left
        assert found[:3] == (f"{name}/later", b"later", 1)
    async with GmqttClient(gateway, "r" + name, version, clean_session=True) as reader:
        await reader.subscribe(f"{name}/later", 0)
        (found,) = await reader.take(1)
        assert (found[1], found[3]["retain"]) == (b"later", 1)


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


@pytest.mark.skipif(shutil.which("mosquitto_sub") is None, reason="mosquitto's tools are not installed")
def test_mosquitto_tools_of_version_5_see_all_properties(gateway):
    def run(tool, *options):
        command = [shutil.which(tool), "-h", "127.0.0.1", "-p", str(gateway.port("mqtt")), "-V", "5", *options]
        return subprocess.run(command, check=True, timeout=WAIT_S, capture_output=True, text=True).stdout

    session = ("-c", "-i", "mosq5", "-t", "mosq5/#", "-q", "2", "-x", "60")
    run("mosquitto_sub", *session, "-E")
    properties = ("-D", "publish", "user-property", "k", "v", "-D", "publish", "content-type", "a/b")
    more = ("-D", "publish", "response-topic", "r/t", "-D", "publish", "correlation-data", "c")
    run("mosquitto_pub", "-t", "mosq5/t", "-m", "hello", "-q", "2", *properties, *more)
    assert run("mosquitto_sub", *session, "-C", "1", "-F", "%t %p %q %P %C %R %D").split() == [
        "mosq5/t",
        "hello",
        "2",
        "k:v",
        "a/b",
        "r/t",
        "c",
    ]


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
