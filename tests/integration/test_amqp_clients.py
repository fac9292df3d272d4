"""The AMQP door as aio-pika, aiormq and pika see it, unchanged."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time

import aio_pika
import aiormq
import pika
import pika.exceptions
import pytest
import pytest_asyncio
from pamqp.commands import Channel, Connection

from gateway.amqp.policies import Policy
from tests.support import amqp
from tests.support.gateway import running_gateway

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]

WAIT_S = 10


@pytest_asyncio.fixture
async def gateway(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        yield gateway


@pytest_asyncio.fixture
async def gateway_of_large_segments(tmp_path):
    async with running_gateway(tmp_path, store={"segment_bytes": 64 << 20}) as gateway:
        yield gateway


def url(gateway):
    return "amqp://guest:guest@{}:{}/".format(*gateway.listening["amqp"])


async def take(queue, count):
    """Return the bodies of `count` messages, each acknowledged."""
    found = []
    async with asyncio.timeout(WAIT_S), queue.iterator() as messages:
        async for message in messages:
            async with message.process():
                found.append(message.body)
            if len(found) == count:
                return found
    return found


async def in_thread(work, *args):
    return await asyncio.get_running_loop().run_in_executor(None, functools.partial(work, *args))


# aio-pika


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


async def test_aio_pika_uses_priorities_lengths_and_policies(gateway):
    async with await aio_pika.connect(url(gateway)) as connection:
        channel = await connection.channel()
        arguments = {"x-max-priority": 9, "x-max-length-bytes": 40, "x-overflow": "reject-publish"}
        queue = await channel.declare_queue("jobs", durable=True, arguments=arguments)
        for i in range(10):
            await channel.default_exchange.publish(aio_pika.Message(b"%04d" % i, priority=i % 3), "jobs")
        with pytest.raises(aio_pika.exceptions.DeliveryError):
            await channel.default_exchange.publish(aio_pika.Message(b"more"), "jobs")
        assert await take(queue, 10) == [b"%04d" % i for k in (2, 1, 0) for i in range(k, 10, 3)]
        short = await channel.declare_queue("short", durable=True)
        gateway.doors["amqp"].vhosts.put_policy(Policy("/", "p", "^short$", {"max-length": 2}))
        for i in range(5):
            await channel.default_exchange.publish(aio_pika.Message(b"%d" % i), "short")
        assert await take(short, 2) == [b"3", b"4"]


async def test_pika_reads_a_stream_with_a_filter(gateway):
    await in_thread(read_filtered_stream, gateway)


def read_filtered_stream(gateway):
    host, port = gateway.listening["amqp"]
    with pika.BlockingConnection(pika.ConnectionParameters(host, port)) as connection:
        channel = connection.channel()
        arguments = {"x-queue-type": "stream", "x-max-age": "1D"}
        channel.queue_declare("events", durable=True, arguments=arguments)
        channel.confirm_delivery()
        for i in range(10):
            said = pika.BasicProperties(headers={"x-stream-filter-value": "even" if i % 2 == 0 else "odd"})
            channel.basic_publish("", "events", b"%d" % i, said)
        channel.basic_qos(prefetch_count=3)
        wanted = {"x-stream-offset": "first", "x-stream-filter": "odd"}
        for _ in range(2):  # it takes nothing
            found = []
            for method, _, body in channel.consume("events", arguments=wanted, inactivity_timeout=WAIT_S):
                channel.basic_ack(method.delivery_tag)
                found.append(body)
                if len(found) == 5:
                    break
            channel.cancel()
            assert found == [b"1", b"3", b"5", b"7", b"9"]


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


# aiormq


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


# pika


def open_pika(gateway):
    host, port = gateway.listening["amqp"]
    return pika.BlockingConnection(pika.ConnectionParameters(host, port, heartbeat=30))


def pika_works(gateway):
    connection = open_pika(gateway)
    channel = connection.channel()
    channel.exchange_declare("logs", "fanout", durable=True)
    channel.queue_declare("pika", durable=True)
    channel.queue_bind("pika", "logs")
    channel.confirm_delivery()
    for i in range(20):
        properties = pika.BasicProperties(delivery_mode=2, headers={"i": i}, correlation_id=str(i), expiration="60000")
        channel.basic_publish("logs", "", b"%d" % i, properties, mandatory=True)
    channel.basic_qos(prefetch_count=5)
    found = []
    for method, properties, body in channel.consume("pika", inactivity_timeout=WAIT_S):
        found.append((body, properties.headers["i"], properties.correlation_id, properties.expiration))
        channel.basic_ack(method.delivery_tag)
        if len(found) == 20:
            break
    channel.cancel()
    left = channel.queue_declare("pika", durable=True, passive=True).method.message_count
    with pytest.raises(pika.exceptions.UnroutableError):
        channel.basic_publish("", "nowhere", b"x", mandatory=True)
    connection.close()
    return found, left


async def test_pika_publishes_and_consumes(gateway):
    found, left = await in_thread(pika_works, gateway)
    assert found == [(b"%d" % i, i, str(i), "60000") for i in range(20)]
    assert left == 0


def pika_commits(gateway):
    connection = open_pika(gateway)
    channel = connection.channel()
    channel.queue_declare("in", durable=True)
    channel.queue_declare("out", durable=True)
    channel.basic_publish("", "in", b"1")
    channel.tx_select()
    method, _, body = channel.basic_get("in")
    channel.basic_publish("", "out", body)
    channel.basic_ack(method.delivery_tag)
    channel.tx_rollback()
    channel.basic_publish("", "out", body + b"!")
    channel.basic_ack(method.delivery_tag)
    channel.tx_commit()
    left = [channel.basic_get(name, auto_ack=True)[2] for name in ("out", "out", "in")]
    connection.close()
    return left


async def test_pika_moves_messages_in_transactions(gateway):
    assert await in_thread(pika_commits, gateway) == [b"1!", None, None]


def pika_asks(gateway):
    connections = [open_pika(gateway) for _ in range(2)]
    server, client = [connection.channel() for connection in connections]
    server.queue_declare("service", durable=True)
    answers = []
    client.basic_consume("amq.rabbitmq.reply-to", lambda *given: answers.append(given[3]), auto_ack=True)

    def serve(channel, method, properties, body):
        channel.basic_publish("", properties.reply_to, b"re: " + body)
        channel.basic_ack(method.delivery_tag)

    server.basic_consume("service", serve)
    for i in range(10):
        client.basic_publish("", "service", b"%d" % i, pika.BasicProperties(reply_to="amq.rabbitmq.reply-to"))
    deadline = time.monotonic() + WAIT_S
    while len(answers) < 10 and time.monotonic() < deadline:
        for connection in connections:
            connection.process_data_events(0.01)
    for connection in connections:
        connection.close()
    return answers


async def test_pika_is_answered_directly(gateway):
    assert await in_thread(pika_asks, gateway) == [b"re: %d" % i for i in range(10)]


def pika_lets_expire(gateway):
    connection = open_pika(gateway)
    channel = connection.channel()
    for queue in ("late", "copy"):
        channel.queue_declare(queue, durable=True)
    channel.confirm_delivery()
    headers = {"CC": ["copy"], "BCC": ["nobody"]}
    for i in range(20):
        channel.basic_publish("", "late", b"%d" % i, pika.BasicProperties(expiration="100", headers=headers))
    channel.basic_publish("", "late", b"last", pika.BasicProperties(expiration="60000"))
    while channel.queue_declare("late", durable=True, passive=True).method.message_count > 1:
        connection.sleep(0.02)
    method, properties, body = channel.basic_get("late", auto_ack=True)
    empty = channel.basic_get("copy")[0]
    for value, text in (("soon", "invalid expiration 'soon': no_integer"), ("-1", "value_negative,-1")):
        with pytest.raises(pika.exceptions.ChannelClosedByBroker, match=text):
            channel.basic_publish("", "late", b"x", pika.BasicProperties(expiration=value))
        channel = connection.channel()
        channel.confirm_delivery()
    connection.close()
    return body, properties.expiration, method.message_count, empty


async def test_pika_messages_expire_also_in_copies(gateway):
    assert await in_thread(pika_lets_expire, gateway) == (b"last", "60000", 0, None)


def pika_meets_errors(gateway):
    connection = open_pika(gateway)
    channel = connection.channel()
    with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="no exchange 'none' in vhost '/'"):
        channel.exchange_declare("none", passive=True)
    channel = connection.channel()
    channel.basic_ack(99)
    with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="unknown delivery tag 99"):
        channel.queue_declare("q")
    channel = connection.channel()
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="prefetch_size"):
        channel.basic_qos(prefetch_size=1)


async def test_pika_meets_the_errors_it_knows(gateway):
    await in_thread(pika_meets_errors, gateway)


def pika_gets(gateway):
    connection = open_pika(gateway)
    channel = connection.channel()
    channel.queue_declare("get", exclusive=True)
    channel.basic_publish("", "get", b"1")
    channel.basic_publish("", "get", b"2")
    method, _, first = channel.basic_get("get")
    channel.basic_nack(method.delivery_tag, requeue=True)
    again, _, second = channel.basic_get("get", auto_ack=True)
    channel.basic_recover(requeue=True)
    purged = channel.queue_purge("get").method.message_count
    connection.close()
    return first, second, again.redelivered, purged


async def test_pika_gets_one_by_one(gateway):
    assert await in_thread(pika_gets, gateway) == (b"1", b"1", True, 1)


# Ends that cross


def pika_closes_what_is_being_closed(gateway):
    connection = open_pika(gateway)
    for _ in range(20):
        channel = connection.channel()
        channel.basic_ack(99)  # an unknown tag: the gateway closes the channel
        with contextlib.suppress(pika.exceptions.ChannelClosedByBroker):
            channel.close()
        number = channel.channel_number
        channel = connection.channel(number)
        channel.queue_declare("q", exclusive=True)
        channel.close()
    connection.close()


async def test_pika_closes_channels_that_the_gateway_closes_too(gateway):
    await in_thread(pika_closes_what_is_being_closed, gateway)


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
