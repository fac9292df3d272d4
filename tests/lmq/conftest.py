from __future__ import annotations

import pytest
import pytest_asyncio

from gateway.settings.models import AmqpSettings, MqttSettings
from lmq import Producer
from lmq.remoting.commands import Command, answer, encode_json
from lmq.routes import Routes
from tests.support.engines import MAKERS, stand_on
from tests.support.gateway import ANY_PORT, running_gateway
from tests.support.heard import Reader
from tests.support.remoting_server import RemotingServer


@pytest.fixture(params=MAKERS)
def engine(request):
    """Have gateways of this process stand on the embedded engine, and on one that answers late."""
    stand_on(request)


@pytest_asyncio.fixture
async def gateway(tmp_path, engine):
    async with running_gateway(
        tmp_path / "data", mqtt=MqttSettings(listen=ANY_PORT), amqp=AmqpSettings(listen="off")
    ) as gateway:
        yield gateway


@pytest.fixture
def namesrv(gateway):
    host, port = gateway.listening["namesrv"]
    return f"{host}:{port}"


@pytest_asyncio.fixture
async def server():
    async with RemotingServer() as server:
        yield server


@pytest_asyncio.fixture
async def producer(namesrv):
    async with Producer(namesrv) as producer:
        yield producer


@pytest_asyncio.fixture
async def reader(namesrv):
    routes = Routes(namesrv, timeout_s=3, greeting=lambda: Command(34, body=b"{}"))
    yield Reader(routes)
    await routes.close()


@pytest.fixture
def scripted(server):
    """A name server and broker in one whose answers to sends the test scripts."""
    broker = {"brokerAddrs": {"0": server.address}, "brokerName": "b", "cluster": "c"}
    queues = {"brokerName": "b", "readQueueNums": 2, "writeQueueNums": 2, "perm": 6}
    route = {"brokerDatas": [broker], "queueDatas": [queues]}
    server.on[105] = lambda request: answer(request, 0, body=encode_json(route))
    return server
