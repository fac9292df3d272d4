"""The AMQP door as aio-pika sees it, unchanged."""

from __future__ import annotations

import asyncio

import aio_pika
import pytest
import pytest_asyncio

from gateway.amqp.policies import Policy
from tests.support.amqp_clients import WAIT_S, take, url
from tests.support.gateway import running_gateway

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]


@pytest_asyncio.fixture
async def gateway_of_large_segments(tmp_path):
    async with running_gateway(tmp_path, store={"segment_bytes": 64 << 20}) as gateway:
        yield gateway


async def test_aio_pika_works_a_queue(gateway):
    async with await aio_pika.connect(url(gateway)) as connection:
        channel = await connection.channel()
        await channel.set_qos(prefetch_count=10)
        queue = await channel.declare_queue("tasks", durable=True)
        for i in range(50):
            body = aio_pika.Message(b"%d" % i, delivery_mode=2, content_type="text/plain", headers={"n": i})
            await channel.default_exchange.publish(body, "tasks")
        assert await take(queue, 50) == [b"%d" % i for i in range(50)]
        assert (await channel.declare_queue("tasks", durable=True, passive=True)).declaration_result.message_count == 0


@pytest.mark.parametrize("kind", ["direct", "fanout", "topic"])
async def test_aio_pika_publishes_through_exchanges(gateway, kind):
    async with await aio_pika.connect(url(gateway)) as connection:
        channel = await connection.channel(on_return_raises=True)
        exchange = await channel.declare_exchange("events", kind, durable=True)
        queue = await channel.declare_queue(exclusive=True)
        await queue.bind(exchange, "a.*.c" if kind == "topic" else "a.b.c")
        await exchange.publish(aio_pika.Message(b"hello", message_id="m-1", timestamp=1_700_000_000), "a.b.c")
        message = await queue.get(timeout=WAIT_S)
        assert (message.body, message.message_id, message.routing_key) == (b"hello", "m-1", "a.b.c")
        assert message.exchange == "events"
        await message.ack()
        await queue.unbind(exchange, "a.*.c" if kind == "topic" else "a.b.c")
        with pytest.raises(aio_pika.exceptions.PublishError):
            await exchange.publish(aio_pika.Message(b"lost"), "a.b.c", mandatory=True)
        await exchange.delete()


async def test_aio_pika_routes_by_headers_and_through_exchanges(gateway):
    async with await aio_pika.connect(url(gateway)) as connection:
        channel = await connection.channel()
        asked = await channel.declare_exchange("asked", aio_pika.ExchangeType.HEADERS)
        fan = await channel.declare_exchange("fan", aio_pika.ExchangeType.FANOUT)
        queue = await channel.declare_queue("pdfs")
        await fan.bind(asked, arguments={"x-match": "any", "format": "pdf", "kind": "report"})
        await queue.bind(fan)
        for headers in ({"format": "pdf"}, {"format": "txt"}, {"kind": "report", "n": 1}, {}):
            await asked.publish(aio_pika.Message(str(headers).encode(), headers=headers), "")
        assert await take(queue, 2) == [b"{'format': 'pdf'}", b"{'kind': 'report', 'n': 1}"]
        await fan.unbind(asked, arguments={"x-match": "any", "format": "pdf", "kind": "report"})


async def test_aio_pika_parts_messages_by_a_hash_and_by_chance(gateway):
    async with await aio_pika.connect(url(gateway)) as connection:
        channel = await connection.channel()
        by_hash = await channel.declare_exchange("by_hash", aio_pika.ExchangeType.X_CONSISTENT_HASH)
        chance = await channel.declare_exchange("chance", "x-random")
        await by_hash.bind(chance)
        queues = [await channel.declare_queue(name) for name in ("first", "second")]
        for queue in queues:
            await queue.bind(by_hash, "10")
        for i in range(20):
            await chance.publish(aio_pika.Message(b"%d" % i), f"key {i}")
        counts = [(await channel.declare_queue(queue.name, passive=True)).declaration_result for queue in queues]
        assert sum(one.message_count for one in counts) == 20
        assert all(one.message_count for one in counts)


async def test_aio_pika_delays_messages(gateway):
    async with await aio_pika.connect(url(gateway)) as connection:
        channel = await connection.channel()
        kind = aio_pika.ExchangeType.X_DELAYED_MESSAGE
        later = await channel.declare_exchange("later", kind, arguments={"x-delayed-type": "topic"})
        queue = await channel.declare_queue("delayed")
        await queue.bind(later, "a.#")
        delayed = [aio_pika.Message(b"%d" % delay, headers={"x-delay": delay}) for delay in (400, 200, 0)]
        await asyncio.gather(*(later.publish(message, "a.b") for message in delayed))  # at once, on a busy machine too
        found = []
        async with queue.iterator(timeout=10) as messages:
            async for message in messages:
                found.append((message.body, message.headers["x-delay"]))
                await message.ack()
                if len(found) == 3:
                    break
        assert found == [(b"0", 0), (b"200", -200), (b"400", -400)]


async def test_aio_pikas_remote_procedure_calls(gateway):
    async def multiply(*, x, y):
        return x * y

    async def fail(**_):
        raise ValueError("no")

    async with await aio_pika.connect(url(gateway)) as server, await aio_pika.connect(url(gateway)) as caller:
        served = await aio_pika.patterns.RPC.create(await server.channel())
        await served.register("multiply", multiply, auto_delete=True)
        await served.register("fail", fail, auto_delete=True)
        calls = await aio_pika.patterns.RPC.create(await caller.channel())
        async with asyncio.timeout(WAIT_S):
            assert [await calls.call("multiply", {"x": i, "y": 3}) for i in range(20)] == [3 * i for i in range(20)]
            with pytest.raises(ValueError, match="no"):
                await calls.call("fail", {})
            with pytest.raises(aio_pika.exceptions.MessageProcessError):
                await calls.call("nobody", {})
        for one in (calls, served):
            await one.close()


async def test_aio_pika_reads_a_queue_again(gateway):
    async with await aio_pika.connect(url(gateway)) as connection:
        channel = await connection.channel()
        await channel.set_qos(prefetch_count=10)
        queue = await channel.declare_queue("log", durable=True)
        for i in range(30):
            await channel.default_exchange.publish(aio_pika.Message(b"%d" % i), "log")
        assert len(await take(queue, 30)) == 30
        found = asyncio.Queue()
        tag = await queue.consume(found.put, arguments={"x-stream-offset": 12})
        async with asyncio.timeout(WAIT_S):
            for i in range(12, 30):
                message = await found.get()
                assert (message.body, message.headers["x-stream-offset"]) == (b"%d" % i, i)
                await message.ack()
        await queue.cancel(tag)


@pytest.mark.at_once(reason="bytes are counted when they are read, which may be after the next message")
async def test_aio_pika_is_refused_what_a_queue_has_no_room_for(gateway):
    async with await aio_pika.connect(url(gateway)) as connection:
        channel = await connection.channel()
        arguments = {"x-max-priority": 9, "x-max-length-bytes": 40, "x-overflow": "reject-publish"}
        await channel.declare_queue("jobs", durable=True, arguments=arguments)
        for i in range(10):
            await channel.default_exchange.publish(aio_pika.Message(b"%04d" % i, priority=i % 3), "jobs")
        with pytest.raises(aio_pika.exceptions.DeliveryError):
            await channel.default_exchange.publish(aio_pika.Message(b"more"), "jobs")


async def test_aio_pika_uses_priorities_and_policies(gateway):
    async with await aio_pika.connect(url(gateway)) as connection:
        channel = await connection.channel()
        queue = await channel.declare_queue("jobs", durable=True, arguments={"x-max-priority": 9})
        for i in range(10):
            await channel.default_exchange.publish(aio_pika.Message(b"%04d" % i, priority=i % 3), "jobs")
        assert await take(queue, 10) == [b"%04d" % i for k in (2, 1, 0) for i in range(k, 10, 3)]
        short = await channel.declare_queue("short", durable=True)
        gateway.doors["amqp"].vhosts.put_policy(Policy("/", "p", "^short$", {"max-length": 2}))
        for i in range(5):
            await channel.default_exchange.publish(aio_pika.Message(b"%d" % i), "short")
        assert await take(short, 2) == [b"3", b"4"]


async def test_aio_pika_commits_and_rolls_back(gateway):
    async with await aio_pika.connect(url(gateway)) as connection:
        watching = await (await connection.channel()).declare_queue("orders", durable=True)
        channel = await connection.channel(publisher_confirms=False)
        async with channel.transaction():
            for i in range(5):
                await channel.default_exchange.publish(aio_pika.Message(b"%d" % i), "orders")
        with pytest.raises(RuntimeError):
            async with channel.transaction():
                await channel.default_exchange.publish(aio_pika.Message(b"lost"), "orders")
                raise RuntimeError
        assert await take(watching, 5) == [b"%d" % i for i in range(5)]
        assert await watching.get(fail=False) is None


async def test_aio_pika_shares_a_queue_and_gives_back(gateway):
    async with await aio_pika.connect(url(gateway)) as one, await aio_pika.connect(url(gateway)) as two:
        seen: dict[bytes, list[bool]] = {}
        done = asyncio.Event()

        async def work(message):
            seen.setdefault(message.body, []).append(message.redelivered)
            if len(seen[message.body]) == 1:
                await message.nack(requeue=True)
            else:
                await message.ack()
            if len(seen) == 20 and all(len(times) == 2 for times in seen.values()):
                done.set()

        channels = [await connection.channel() for connection in (one, two)]
        queue = await channels[0].declare_queue("shared", durable=True)
        for channel in channels:
            await channel.set_qos(prefetch_count=2)
            await (await channel.declare_queue("shared", durable=True)).consume(work)
        for i in range(20):
            await channels[0].default_exchange.publish(aio_pika.Message(b"%d" % i), "shared")
        await asyncio.wait_for(done.wait(), WAIT_S)
        assert all(times == [False, True] for times in seen.values())
        assert await queue.purge() is not None


async def test_aio_pika_sees_errors_as_from_rabbitmq(gateway):
    async with await aio_pika.connect(url(gateway)) as connection:
        channel = await connection.channel()
        with pytest.raises(aio_pika.exceptions.ChannelNotFoundEntity, match="no queue 'none' in vhost '/'"):
            await channel.declare_queue("none", passive=True)
        channel = await connection.channel()
        await channel.declare_queue("q", durable=True)
        with pytest.raises(aio_pika.exceptions.ChannelPreconditionFailed, match="inequivalent arg 'durable'"):
            await channel.declare_queue("q", durable=False)


async def test_aio_pika_sends_large_messages(gateway):
    body = bytes(range(256)) * 4_096 * 3
    async with await aio_pika.connect(url(gateway)) as connection:
        channel = await connection.channel()
        queue = await channel.declare_queue("large", durable=True)
        await channel.default_exchange.publish(aio_pika.Message(body), "large")
        assert await take(queue, 1) == [body]


async def test_aio_pika_sends_and_gets_the_largest_message_that_rabbitmq_takes(gateway_of_large_segments):
    async with await aio_pika.connect(url(gateway_of_large_segments)) as connection:
        channel = await connection.channel()
        queue = await channel.declare_queue("large")
        body = bytes(16 << 20)
        await channel.default_exchange.publish(aio_pika.Message(body), "large")
        assert (await take(queue, 1)) == [body]
        with pytest.raises(
            aio_pika.exceptions.ChannelPreconditionFailed, match="16777217 is larger than configured max"
        ):
            await channel.default_exchange.publish(aio_pika.Message(body + b"x"), "large")
