"""Real MQTT clients over every kind of stream, and proxies in front of doors."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import struct

import aio_pika
import aiomqtt
import httpx
import pytest

from tests.support.certificates import client_context, server_files
from tests.support.gateway import ANY_PORT, GatewayProcess
from tests.support.rocketmq import request_frame

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]

WAIT_S = 10


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streams")
    certificate, key = server_files()
    tls = {"certificate": str(certificate), "key": str(key)}
    listen = [
        ANY_PORT,
        {"address": ANY_PORT, "tls": tls},
        {"address": ANY_PORT, "websocket": "/mqtt"},
        {"address": ANY_PORT, "websocket": "/mqtt", "tls": tls},
        f"unix:{folder}/mqtt.sock",
    ]
    proxied = {"address": ANY_PORT, "proxies": ["127.0.0.0/8"]}
    others = {"address": ANY_PORT, "proxies": ["192.0.2.0/24"]}
    env = {"LMQ_MQTT__LISTEN": json.dumps(listen), "LMQ_AMQP__LISTEN": json.dumps([proxied, others])}
    with GatewayProcess(folder / "data", env=env, doors=("namesrv", "broker", "admin")) as running:
        running.folder = folder
        running.untrusting = running.all_listening["amqp"][1]
        yield running
        assert not any("Traceback" in line for line in running.errors), "".join(running.errors)


def client(gateway, kind, **options):
    if kind == "unix":
        return aiomqtt.Client(f"{gateway.folder}/mqtt.sock", 1883, transport="unix", timeout=WAIT_S, **options)
    if kind in {"ws", "wss"}:
        options |= {"transport": "websockets", "websocket_path": "/mqtt"}
    if kind in {"mqtts", "wss"}:
        options["tls_context"] = client_context()
    host, port = gateway.address(kind)
    return aiomqtt.Client(host, port, timeout=WAIT_S, **options)


STREAMS = ["mqtt", "mqtts", "ws", "wss", "unix"]


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_messages_come_back_in_order(gateway, kind, qos):
    async with client(gateway, kind) as one:
        topic = f"order/{kind}/{qos}"
        await one.subscribe(topic, qos=qos)
        bodies = [b"%d" % number for number in range(50)] + [b""] + [os.urandom(100_000), os.urandom(2_000_000)]
        for body in bodies:
            await one.publish(topic, body, qos=qos)
        async with asyncio.timeout(WAIT_S):
            for body in bodies:
                assert (await anext(one.messages)).payload == body


@pytest.mark.parametrize("kind", STREAMS)
async def test_many_clients_of_one_kind_share_what_the_others_publish(gateway, kind):
    async with contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(client(gateway, kind)) for _ in range(10)]
        for one in clients:
            await one.subscribe(f"many/{kind}", qos=1)
        await asyncio.gather(*(one.publish(f"many/{kind}", b"x" * 5_000, qos=1) for one in clients))
        for one in clients:
            async with asyncio.timeout(WAIT_S):
                for _ in clients:
                    assert len((await anext(one.messages)).payload) == 5_000


@pytest.mark.parametrize("kind", STREAMS)
async def test_a_session_is_taken_up_by_another_kind_of_stream(gateway, kind):
    options = {"identifier": f"roaming-{kind}", "clean_session": False}
    async with client(gateway, kind, **options) as one:
        await one.subscribe(f"roam/{kind}", qos=1)
    async with client(gateway, "mqtt") as other:
        await other.publish(f"roam/{kind}", b"kept", qos=1)
    async with client(gateway, "mqtts", **options) as one, asyncio.timeout(WAIT_S):
        assert (await anext(one.messages)).payload == b"kept"


@pytest.mark.parametrize("kind", STREAMS)
async def test_the_will_of_a_client_that_vanishes_is_published(gateway, kind):
    async with client(gateway, "mqtt") as watcher:
        await watcher.subscribe(f"will/{kind}")
        one = client(gateway, kind, will=aiomqtt.Will(f"will/{kind}", b"gone"))
        await one.__aenter__()
        with socket.socket(fileno=os.dup(one._client.socket().fileno())) as sock:
            sock.shutdown(socket.SHUT_RDWR)  # without a word
        async with asyncio.timeout(WAIT_S):
            assert (await anext(watcher.messages)).payload == b"gone"
        with contextlib.suppress(aiomqtt.MqttError):
            await one.__aexit__(None, None, None)
        with contextlib.suppress(aiomqtt.MqttError):
            await asyncio.wait_for(one._disconnected, WAIT_S)


async def test_a_browser_page_of_another_kind_is_refused(gateway):
    host, port = gateway.address("ws")
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(b"GET / HTTP/1.1\r\nHost: gateway\r\n\r\n")
    assert (await asyncio.wait_for(reader.read(), WAIT_S)).startswith(b"HTTP/1.1 4")
    writer.close()


# Proxies in front


async def until_logged(gateway, text):
    async with asyncio.timeout(WAIT_S):
        while not any(text in line for line in gateway.errors):
            await asyncio.sleep(0.01)


class Proxy:
    """Passes connections on, and tells their clients' addresses by the PROXY protocol."""

    def __init__(self, target, header):
        self.target = target
        self.header = header

    async def __aenter__(self):
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.tasks = set()
        return self.server.sockets[0].getsockname()

    async def __aexit__(self, *exc_info):
        self.server.close()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def _serve(self, reader, writer):
        there_reader, there = await asyncio.open_connection(*self.target)
        there.write(self.header)
        self.tasks |= {asyncio.create_task(_pump(*ends)) for ends in ((reader, there), (there_reader, writer))}


async def _pump(reader, writer):
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
    except ConnectionError:
        pass
    finally:
        writer.close()


def text_header(host):
    return f"PROXY TCP4 {host} 192.0.2.99 40000 5672\r\n".encode()


def binary_header(host):
    body = socket.inet_aton(host) + socket.inet_aton("192.0.2.99") + struct.pack(">HH", 40_000, 5672)
    return b"\r\n\r\n\x00\r\nQUIT\n\x21\x11" + len(body).to_bytes(2) + body


@pytest.mark.parametrize("header", [text_header("127.9.9.9"), binary_header("127.9.9.9")], ids=["text", "binary"])
async def test_an_amqp_client_behind_a_proxy_has_its_own_address(gateway, header):
    async with Proxy(gateway.address("amqp"), header) as (host, port):
        connection = await aio_pika.connect(f"amqp://guest:guest@{host}:{port}/", timeout=WAIT_S)
        channel = await connection.channel()
        queue = await channel.declare_queue("behind", auto_delete=True)
        await channel.default_exchange.publish(aio_pika.Message(b"x"), "behind")
        assert (await queue.get(timeout=WAIT_S)).body == b"x"
        await connection.close()
    await until_logged(gateway, "peer=127.9.9.9:40000")


async def test_guest_behind_a_proxy_on_this_machine_is_not_on_this_machine(gateway):
    async with Proxy(gateway.address("amqp"), text_header("192.0.2.7")) as (host, port):
        with pytest.raises(aio_pika.exceptions.ProbableAuthenticationError):
            await aio_pika.connect(f"amqp://guest:guest@{host}:{port}/", timeout=WAIT_S)


async def test_who_comes_without_the_header_is_refused(gateway):
    reader, writer = await asyncio.open_connection(*gateway.address("amqp"))
    writer.write(b"AMQP\x00\x00\x09\x01")
    assert await asyncio.wait_for(reader.read(), WAIT_S) == b""
    writer.close()
    await until_logged(gateway, "reason=proxy: the header is missing")


@pytest.mark.parametrize("header", [text_header("127.9.9.9"), binary_header("127.9.9.9")], ids=["text", "binary"])
async def test_header_of_somebody_who_is_no_trusted_proxy_makes_nobody_of_another_address(gateway, header):
    hello = b"AMQP\x00\x00\x09\x01"
    with contextlib.suppress(ConnectionResetError):
        reader, writer = await asyncio.open_connection(*gateway.untrusting)
        writer.write(header + hello)
        assert await asyncio.wait_for(reader.read(), WAIT_S) == b""
        writer.close()
    await until_logged(gateway, "not a trusted proxy")
    with contextlib.suppress(ConnectionResetError):  # where no proxy is said to be, a header is no MQTT
        reader, writer = await asyncio.open_connection(*gateway.address("mqtt"))
        writer.write(header)
        assert await asyncio.wait_for(reader.read(), WAIT_S) == b""
        writer.close()
    await until_logged(gateway, "the first packet is no CONNECT [MQTT-3.1.0-1], but a PROXY header")
    async with client(gateway, "mqtt") as other:
        await other.publish("still", b"here", qos=1)


# The other doors behind a proxy, and by a Unix socket


@pytest.fixture(scope="module")
def behind(tmp_path_factory):
    """A gateway whose doors are all behind proxies, but for a Unix socket of AMQP."""
    folder = tmp_path_factory.mktemp("behind")
    proxied = [{"address": ANY_PORT, "proxies": ["127.0.0.0/8"]}]
    names = ("LMQ_MQTT__LISTEN", "LMQ_ROCKETMQ__BROKER", "LMQ_ROCKETMQ__NAMESRV", "LMQ_ADMIN__LISTEN")
    env = {name: json.dumps(proxied) for name in names}
    env["LMQ_AMQP__LISTEN"] = json.dumps([f"unix:{folder}/amqp.sock"])
    with GatewayProcess(folder / "data", env=env, doors=()) as running:
        running.folder = folder
        yield running
        assert not any("Traceback" in line for line in running.errors), "".join(running.errors)


HEADERS = pytest.mark.parametrize("make_header", [text_header, binary_header])


@HEADERS
async def test_an_mqtt_client_behind_a_proxy_has_its_own_address(behind, make_header):
    async with (
        Proxy(behind.address("mqtt"), make_header("203.0.113.7")) as (host, port),
        aiomqtt.Client(host, port, timeout=WAIT_S) as one,
    ):
        await one.publish("behind", b"x", qos=1)
    await until_logged(behind, "door=mqtt peer=203.0.113.7:40000")


@HEADERS
@pytest.mark.parametrize("name", ["broker", "namesrv"])
async def test_a_rocketmq_client_behind_a_proxy_has_its_own_address(behind, make_header, name):
    frame = request_frame(105, topic="TBW102", opaque=7)
    async with Proxy(behind.address(name), make_header("203.0.113.8")) as (host, port):
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(frame)
        size = int.from_bytes(await asyncio.wait_for(reader.readexactly(4), WAIT_S))
        assert b'"opaque":7' in await asyncio.wait_for(reader.readexactly(size), WAIT_S)
        writer.close()
    await until_logged(behind, "door=rocketmq peer=203.0.113.8:40000")


@HEADERS
async def test_who_asks_the_admin_api_behind_a_proxy_is_on_this_machine_where_the_proxy_says_so(behind, make_header):
    for asker, code in (("127.9.9.9", 200), ("203.0.113.9", 401)):
        async with (
            Proxy(behind.address("admin"), make_header(asker)) as (host, port),
            httpx.AsyncClient(timeout=20) as client,
        ):
            for login in (None, ("guest", "guest")):
                answer = await client.get(f"http://{host}:{port}/api/overview", auth=login)
                assert answer.status_code == code


async def test_an_amqp_client_comes_by_a_unix_socket(behind):
    async def serve(reader, writer):
        there = await asyncio.open_unix_connection(behind.folder / "amqp.sock")
        tasks.extend(asyncio.create_task(_pump(*ends)) for ends in ((reader, there[1]), (there[0], writer)))

    tasks = []
    server = await asyncio.start_server(serve, "127.0.0.1", 0)  # the client itself knows TCP alone
    host, port = server.sockets[0].getsockname()
    connection = await aio_pika.connect(f"amqp://guest:guest@{host}:{port}/", timeout=WAIT_S)
    channel = await connection.channel()
    queue = await channel.declare_queue("by-unix", auto_delete=True)
    await channel.default_exchange.publish(aio_pika.Message(b"x"), "by-unix")
    assert (await queue.get(timeout=WAIT_S)).body == b"x"
    await connection.close()
    server.close()
    await asyncio.gather(*tasks)
    await until_logged(behind, "door=amqp peer=unix:0")
