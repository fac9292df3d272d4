"""Two gateways in this process: one with a bridge to the other."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import aiomqtt
import pytest

from gateway.settings.bridges import BridgeSettings
from gateway.settings.models import AmqpSettings, MqttSettings, RocketmqSettings
from tests.support.gateway import running_gateway

WAIT_S = 15
OFF = {"amqp": AmqpSettings(listen="off"), "rocketmq": RocketmqSettings(namesrv="off", broker="off")}


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Site:
    """Folders and ports of the two, and how they are started."""

    def __init__(self, tmp_path):
        self.tmp_path = tmp_path
        self.remote_port = free_port()

    def remote(self, **blocks):
        mqtt = MqttSettings(listen=f"127.0.0.1:{self.remote_port}")
        return running_gateway(self.tmp_path / "remote", **{"mqtt": mqtt, **OFF, **blocks})

    def local(self, *topics, name="cloud", bridges=None, mqtt=None, **settings):
        made = {name: self.bridge(topics, **settings)} if bridges is None else bridges
        blocks = OFF if mqtt is None else {**OFF, "mqtt": mqtt}
        return running_gateway(self.tmp_path / "local", **blocks, bridges=made)

    def bridge(self, topics, **settings):
        quick = {"client_id": "gw1", "retry_min_ms": 10, "retry_max_ms": 50}
        return BridgeSettings(address=f"127.0.0.1:{self.remote_port}", topics=topics, **{**quick, **settings})

    @contextlib.asynccontextmanager
    async def broker(self, serve):
        """Something else in the place of the other gateway, which ends each connection after `serve`.

        Its port is its own: bridges that are made before do not know it.
        """
        tasks = []

        async def handle(reader, writer):
            tasks.append(asyncio.current_task())
            try:
                await serve(reader, writer)
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()

        async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
            self.remote_port = server.sockets[0].getsockname()[1]
            yield
        await asyncio.gather(*tasks, return_exceptions=True)

    @contextlib.asynccontextmanager
    async def client(self, gateway, *filters, **options):
        """A client of version 5 that is subscribed."""
        host, port = gateway.listening["mqtt"]
        options = {"protocol": aiomqtt.ProtocolVersion.V5, **options}
        async with aiomqtt.Client(host, port, **options) as client:
            for name in filters:
                await client.subscribe(name, qos=2)
            yield client

    @staticmethod
    async def take(client, count):
        """Return the topics and bodies of the next messages."""
        return [(str(one.topic), one.payload) for one in await Site.messages(client, count)]

    @staticmethod
    async def messages(client, count):
        found = []
        async with asyncio.timeout(WAIT_S):
            async for message in client.messages:
                found.append(message)
                if len(found) == count:
                    return found
        raise AssertionError


@pytest.fixture
def site(tmp_path, engine):
    return Site(tmp_path)
