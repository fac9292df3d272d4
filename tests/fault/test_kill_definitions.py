"""Definitions that a gateway changed and could not commit before it is killed with -9."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import AsyncExitStack, closing, contextmanager, suppress

import aio_pika
import pytest
from aio_pika import Message

from tests.support import mqtt
from tests.support.amqp_clients import take
from tests.support.gateway import GatewayProcess
from tests.support.mqtt_client import MqttClient

pytestmark = pytest.mark.slow

SHARED = b"$share/g/t"


TIMES_PINGED = 3  # what was sent before by another connection is done by then; one ping may be read in the same turn


@contextmanager
def uncommitted(gateway):
    """Let nothing that is defined meanwhile be committed, and kill the gateway at the end."""
    with closing(sqlite3.connect(gateway.data_dir / "definitions.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")  # a gateway that waits for a lock does so for a second
        yield
        gateway.kill()


def ping(client):
    """Return what comes up to the answer to a ping: what was sent before was done then."""
    client.send(mqtt.PINGREQ)
    packets = []
    while mqtt.PINGRESP not in packets:
        packets += client.read()
    return packets


@pytest.mark.parametrize("clean", [False, True])
def test_backlog_of_a_group_is_there_where_its_end_and_the_next_begin_were_not_answered(tmp_path, clean):
    with GatewayProcess(tmp_path / "data") as gateway:
        address = gateway.address("mqtt")
        with MqttClient(address, b"first") as first:
            first.send(mqtt.subscribe(1, (SHARED, 1)))
            assert first.read() == [mqtt.suback(1, 1)]
            with MqttClient(address, b"sender", clean=True) as sender:
                sender.send(*[mqtt.publish(b"t", b"%d" % i, qos=1, packet_id=i) for i in range(1, 4)])
                acks = []
                while len(acks) < 3:
                    acks += sender.read()
            got = [mqtt.parse_publish(each) for each in first.read(3)]
            first.send(mqtt.puback(got[0].packet_id))
            ping(first)
            with MqttClient(address, b"second", clean=clean) as second:
                with uncommitted(gateway):
                    first.send(mqtt.unsubscribe(2, SHARED))
                    assert ping(first) == [mqtt.PINGRESP]
                    second.send(mqtt.subscribe(1, (SHARED, 1)))
                    for _ in range(TIMES_PINGED):
                        assert ping(first) == [mqtt.PINGRESP]
                assert second.read() == []
        gateway.start()
        with MqttClient(gateway.address("mqtt"), b"first") as first:
            left = [mqtt.parse_publish(first.read(1)[0]).body for _ in range(2)]
    assert left == [b"2", b"3"]


async def send_unanswered(gateway):
    """Delete `q`, and declare it with priorities by another connection; kill the gateway before either is answered."""
    url = "amqp://guest:guest@{}:{}/".format(*gateway.address("amqp"))
    async with AsyncExitStack() as stack:
        connections = [await stack.enter_async_context(await aio_pika.connect(url)) for _ in range(3)]
        deleter, declarer, pinger = [await one.channel() for one in connections]
        with uncommitted(gateway):
            waiting = []
            for work in (
                deleter.queue_delete("q"),
                declarer.declare_queue("q", durable=True, arguments={"x-max-priority": 5}),
            ):
                waiting.append(asyncio.ensure_future(work))
                for _ in range(TIMES_PINGED):
                    await pinger.set_qos(1)
            assert not any(one.done() for one in waiting)
        with suppress(Exception):
            await asyncio.gather(*waiting)
        for one in waiting:
            assert one.exception() is not None


async def fill(gateway):
    """Declare `q`, put two messages into it, and take one."""
    async with await aio_pika.connect("amqp://guest:guest@{}:{}/".format(*gateway.address("amqp"))) as connection:
        channel = await connection.channel()
        queue = await channel.declare_queue("q", durable=True, arguments={"x-max-length": 9})
        for body in (b"taken", b"left"):
            await channel.default_exchange.publish(Message(body, delivery_mode=2), "q")
        assert await take(queue, 1) == [b"taken"]


async def drain(gateway):
    """Return what is in `q`, which is as it was declared first."""
    async with await aio_pika.connect("amqp://guest:guest@{}:{}/".format(*gateway.address("amqp"))) as connection:
        channel = await connection.channel()
        queue = await channel.declare_queue("q", durable=True, arguments={"x-max-length": 9})
        return await take(queue, queue.declaration_result.message_count)


def test_queue_is_there_whole_where_its_deletion_and_another_declaration_were_not_answered(tmp_path):
    with GatewayProcess(tmp_path / "data") as gateway:
        asyncio.run(fill(gateway))
        asyncio.run(send_unanswered(gateway))
        gateway.start()
        assert asyncio.run(drain(gateway)) == [b"left"]
