from __future__ import annotations

import asyncio
import contextlib
import gc
import weakref
from collections import Counter

import aiormq
import pytest
import pytest_asyncio
from pamqp.commands import Connection

from gateway.process.collector import MIDDLE, NEVER, NEW_ROUNDS, Collector
from gateway.settings.models import AuthSettings
from lmq.remoting.request_codes import RequestCode
from tests.support import amqp, mqtt
from tests.support.connections import run_turns
from tests.support.gateway import running_gateway
from tests.support.heap import leave_alone_what_stays
from tests.support.logins import quick_hash
from tests.support.rocketmq import request_frame, send_frame

ROUNDS = 5
OURS = ("core.", "gateway.amqp.", "gateway.auth.", "gateway.mqtt.", "gateway.net.", "gateway.rocketmq.")
pytestmark = pytest.mark.asyncio


@pytest.fixture
def _what_stays_is_left_alone_again():
    """Undo what tests of the collector do to the objects of this run."""
    yield
    gc.unfreeze()
    leave_alone_what_stays()


@contextlib.contextmanager
def collecting():
    """Have a collector at work."""
    collector = Collector()
    collector.start()
    try:
        yield
    finally:
        collector.stop()
        gc.unfreeze()


def make_a_round_due(kept):
    """Make new objects, which stay in a list, until they are to be looked at."""
    while gc.get_count()[MIDDLE] < NEW_ROUNDS:
        kept.append([])


@pytest_asyncio.fixture
async def gateway(tmp_path):
    users = {"alice": {"password_hash": quick_hash("secret")}}
    async with running_gateway(tmp_path, auth=AuthSettings.model_validate({"users": users})) as gateway:
        yield gateway


@contextlib.asynccontextmanager
async def nothing_left_to_collect(gateway):
    """Fail where the gateway's side leaves something that only the collector of cycles would free."""
    gc.collect()
    gc.disable()
    try:
        yield
        async with asyncio.timeout(10):
            while len(gateway.connections):
                await asyncio.sleep(0.01)
        await answered(gateway)
        await run_turns()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        names = (f"{type(each).__module__}.{type(each).__name__}" for each in gc.garbage)
        left = Counter(name for name in names if name.startswith(OURS))
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not left


async def answered(gateway):
    """Wait until the disk has what others waited for: outcomes come in the order in which they were asked for."""
    done = asyncio.get_running_loop().create_future()
    gateway.broker.when_kept(done.set_result)
    assert await asyncio.wait_for(done, 10) is None


async def talk(gateway, door, *said, unanswered=b""):
    """Say each to a door and read an answer to it; then hang up without a word."""
    reader, writer = await asyncio.open_connection(*gateway.listening[door])
    for data in said:
        writer.write(data)
        await asyncio.wait_for(reader.read(1 << 16), 10)
    writer.write(unanswered)
    await run_turns()  # the door has read it
    writer.transport.abort()


async def test_mqtt_connections_leave_nothing(gateway):
    async with nothing_left_to_collect(gateway):
        for number in range(ROUNDS):
            for clean, last in ((True, b"\xe0\x00"), (False, b"garbage")):
                await talk(
                    gateway,
                    "mqtt",
                    mqtt.connect(b"c%d" % number, clean=clean),
                    mqtt.subscribe(1, (b"a/%d/+" % number, 1), (b"a/#", 0)),
                    mqtt.publish(b"a/%d/b" % number, b"body", qos=1, packet_id=1),
                    mqtt.unsubscribe(2, b"a/#"),
                    last,
                )


async def test_logins_leave_nothing(gateway):
    start_ok = {
        password: Connection.StartOk({}, "PLAIN", f"\0alice\0{password}", "en_US") for password in ("secret", "x")
    }
    async with nothing_left_to_collect(gateway):
        for number in range(ROUNDS):
            for password in (b"secret", b"%d" % number):
                await talk(gateway, "mqtt", mqtt.connect(b"c", user=b"alice", password=password))
                await talk(gateway, "mqtt", unanswered=mqtt.connect(b"c", user=b"alice", password=password))
            for method in start_ok.values():
                await talk(gateway, "amqp", amqp.PROTOCOL_HEADER, amqp.method(0, method))


async def use_amqp(gateway):
    host, port = gateway.listening["amqp"]
    connection = await aiormq.connect(f"amqp://guest:guest@{host}:{port}/")
    channel = await connection.channel()
    queue = (await channel.queue_declare("", exclusive=True)).queue
    await channel.exchange_declare("e", exchange_type="topic")
    await channel.queue_bind(queue, "e", "a.#")
    came = asyncio.Event()

    async def take(message):
        came.set()  # and stays unacknowledged

    await channel.basic_consume(queue, take)
    await channel.basic_publish(b"body", exchange="e", routing_key="a.b")
    await asyncio.wait_for(came.wait(), 10)
    other = await connection.channel()
    with contextlib.suppress(aiormq.exceptions.AMQPError):
        await other.queue_declare("none", passive=True)
    await connection.close()


async def test_amqp_connections_leave_nothing(gateway):
    async with nothing_left_to_collect(gateway):
        for _ in range(ROUNDS):
            await use_amqp(gateway)
            await talk(gateway, "amqp", b"AMQP\x00\x00\x09\x01", b"garbage that is no frame")
            await talk(gateway, "amqp", b"HTTP/1.1")


async def test_rocketmq_connections_leave_nothing(gateway):
    pull = {
        "consumerGroup": "g", "topic": "T", "queueId": 0, "maxMsgNums": 32, "sysFlag": 6, "commitOffset": 0,
        "suspendTimeoutMillis": 15_000, "subVersion": 0, "subscription": "*", "expressionType": "TAG",
    }  # fmt: skip
    async with nothing_left_to_collect(gateway):
        for number in range(ROUNDS):
            await talk(
                gateway,
                "broker",
                send_frame(e="0"),
                request_frame(RequestCode.PULL_MESSAGE, queueOffset=number, **pull),
                request_frame(RequestCode.GET_MAX_OFFSET, topic="none", queueId=0),
                unanswered=request_frame(RequestCode.PULL_MESSAGE, queueOffset=number + 1, **pull),
            )
            await talk(gateway, "namesrv", request_frame(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic="none"))
            await talk(gateway, "broker", b"garbage that is no frame")


@pytest.mark.usefixtures("_what_stays_is_left_alone_again")
async def test_new_objects_are_looked_at_once_and_then_left_alone():
    before, callbacks, frozen = gc.get_threshold(), list(gc.callbacks), gc.get_freeze_count()
    with collecting():
        assert gc.get_threshold()[MIDDLE:] == (NEVER, NEVER)
        begun = gc.get_freeze_count()
        assert begun > frozen
        kept = []
        for _ in range(3):
            make_a_round_due(kept)
            assert gc.get_freeze_count() < begun + len(kept)  # not in the midst of other work
            await run_turns()
            looked_at = {id(each) for each in gc.get_objects()}
            assert not [each for each in kept if id(each) in looked_at]
            assert gc.get_count()[MIDDLE] == 0
    assert gc.get_threshold() == before
    assert gc.callbacks == callbacks


@pytest.mark.usefixtures("_what_stays_is_left_alone_again")
async def test_dicts_that_grow_are_looked_at_once_too():
    with collecting():
        growing = {}  # of keys that the collector has nothing to do with once it has seen them
        kept = []
        for number in range(3):
            growing["key", number] = None
            make_a_round_due(kept)
            await run_turns()
        growing["key", 3] = None
        assert gc.is_tracked(growing)
        assert not [each for each in gc.get_objects() if each is growing]


@pytest.mark.usefixtures("_what_stays_is_left_alone_again")
async def test_cycles_among_new_objects_are_freed():
    with collecting():
        kept = []
        cycle = asyncio.Event()
        cycle.itself = cycle
        gone = weakref.ref(cycle)
        del cycle
        make_a_round_due(kept)
        await run_turns()
        assert gone() is None


@pytest.mark.usefixtures("_what_stays_is_left_alone_again")
async def test_new_objects_of_another_thread_are_looked_at_on_the_loop():
    with collecting():
        begun = gc.get_freeze_count()
        kept = await asyncio.to_thread(lambda: [[] for _ in range(50_000)])
        await run_turns()
        assert gc.get_freeze_count() - begun > len(kept) // 2


@pytest.mark.usefixtures("_what_stays_is_left_alone_again")
async def test_nothing_is_left_alone_that_comes_due_as_it_stops():
    collector = Collector()
    collector.start()
    kept = []
    make_a_round_due(kept)
    collector.stop()
    gc.unfreeze()
    await run_turns()
    assert gc.get_freeze_count() == 0
