"""The AMQP door as aiormq, clients that open virtual hosts, and clients that go on sending find it."""

from __future__ import annotations

import asyncio
import contextlib

import aio_pika
import aiormq
import pika
import pytest
from pamqp.commands import Channel, Connection

from tests.support import amqp
from tests.support.amqp_clients import WAIT_S, in_thread, take, url
from tests.support.gateway import running_gateway

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]


async def test_aiormq_publishes_a_thousand_with_confirms(gateway):
    connection = await aiormq.connect(url(gateway))
    channel = await connection.channel(publisher_confirms=True)
    declared = await channel.queue_declare("many", durable=True)
    bodies = [b"%d" % i for i in range(1_000)]
    properties = aiormq.spec.Basic.Properties(delivery_mode=2)
    confirms = [channel.basic_publish(body, routing_key="many", properties=properties) for body in bodies]
    answers = await asyncio.wait_for(asyncio.gather(*confirms), WAIT_S)
    assert all(isinstance(answer, aiormq.spec.Basic.Ack) for answer in answers)
    got: list[bytes] = []
    all_here = asyncio.Event()

    async def on_message(message):
        got.append(message.body)
        await channel.basic_ack(message.delivery.delivery_tag)
        if len(got) == len(bodies):
            all_here.set()

    await channel.basic_qos(prefetch_count=100)
    await channel.basic_consume(declared.queue, on_message)
    await asyncio.wait_for(all_here.wait(), WAIT_S)
    assert sorted(got) == sorted(bodies)
    await connection.close()


async def test_aiormq_is_refused_with_a_wrong_password(gateway):
    host, port = gateway.listening["amqp"]
    with pytest.raises(aiormq.exceptions.ProbableAuthenticationError, match="ACCESS_REFUSED"):
        await aiormq.connect(f"amqp://guest:wrong@{host}:{port}/")


async def test_aiormq_is_refused_another_virtual_host(gateway):
    host, port = gateway.listening["amqp"]
    with pytest.raises(aiormq.exceptions.AMQPError, match=r"Connection\.Close"):
        await aiormq.connect(f"amqp://guest:guest@{host}:{port}/other")


@pytest.mark.parametrize("path", ["plant", "of%2Fplant"])
async def test_clients_open_a_virtual_host_by_its_url(tmp_path, path):
    async with running_gateway(tmp_path, amqp={"listen": "127.0.0.1:0", "vhosts": ["plant", "of/plant"]}) as gateway:
        async with await aio_pika.connect(url(gateway)) as connection:
            await (await connection.channel()).declare_queue("tasks", durable=True)
        async with await aio_pika.connect(url(gateway) + path) as connection:
            channel = await connection.channel()
            queue = await channel.declare_queue("tasks", durable=True)
            await channel.default_exchange.publish(aio_pika.Message(b"there"), "tasks")
            assert await take(queue, 1) == [b"there"]
        assert await in_thread(pika_gets_and_deletes, url(gateway) + path) is None
        async with await aio_pika.connect(url(gateway)) as connection:
            queue = await (await connection.channel()).declare_queue("tasks", durable=True, passive=True)
            assert queue.declaration_result.message_count == 0


def pika_gets_and_deletes(address):
    with pika.BlockingConnection(pika.URLParameters(address)) as connection:
        channel = connection.channel()
        found = channel.basic_get("tasks")[2]
        channel.queue_delete("tasks")
        return found


async def test_aiormq_closes_channels_that_the_gateway_closes_too(gateway):
    connection = await aiormq.connect(url(gateway))
    for _ in range(20):
        channel = await connection.channel()
        await channel.basic_ack(99)
        with contextlib.suppress(aiormq.exceptions.AMQPError):
            await channel.close()
    channel = await connection.channel()
    assert (await channel.queue_declare("q", exclusive=True)).queue == "q"
    await connection.close()


async def test_a_client_that_goes_on_sending_reads_why_its_connection_was_closed(gateway):
    reader, writer = await asyncio.open_connection(*gateway.listening["amqp"])
    said = Connection.StartOk({}, "PLAIN", "\0guest\0guest", "en_US")
    opening = [amqp.method(0, one) for one in (said, Connection.TuneOk(0, 0, 0), Connection.Open("/"))]
    writer.write(b"".join([amqp.PROTOCOL_HEADER, *opening, amqp.method(1, Channel.Open())]))
    writer.write(b"\x07")  # no frame: from here on nothing can be told apart
    writer.write(bytes(8 << 20))
    async with asyncio.timeout(WAIT_S):
        await writer.drain()
        data = b""
        while b"unknown_frame" not in data:
            data += await reader.read(1 << 16)
    writer.close()


async def test_a_client_that_closes_and_goes_on_sending_is_answered_and_not_reset(gateway):
    reader, writer = await asyncio.open_connection(*gateway.listening["amqp"])
    said = Connection.StartOk({}, "PLAIN", "\0guest\0guest", "en_US")
    methods = (said, Connection.TuneOk(0, 0, 0), Connection.Open("/"), Connection.Close(200, "", 0, 0))
    writer.write(b"".join([amqp.PROTOCOL_HEADER, *[amqp.method(0, one) for one in methods], bytes(8 << 20)]))
    async with asyncio.timeout(WAIT_S):
        await writer.drain()
        *_, (_, last) = amqp.decode_frames(await reader.read())
    assert isinstance(last, Connection.CloseOk)
    writer.close()
