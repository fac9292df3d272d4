"""What clients of each door notice while the disk is low on room: publishers wait, nothing is lost, consumers go on."""

from __future__ import annotations

import asyncio
import itertools

import aio_pika
import aiomqtt
import pika
import pytest
import pytest_asyncio

from lmq import BusyError, Producer, PullConsumer
from tests.support import mqtt
from tests.support.gateway import running_gateway

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]

WAIT_S = 10
DOORS = 3  # that a `Publishers` publishes at
LOW, ENOUGH = 0, 1 << 40
QUIET_S = 0.3  # in which a held publisher would have been answered many times over


class Disk:
    """Tells how much room there is."""

    def __init__(self):
        self.free_bytes = ENOUGH
        self.gateway = None

    def __call__(self):
        return self.free_bytes

    async def become(self, free_bytes):
        """Have so much room, and wait until the gateway has seen it."""
        self.free_bytes = free_bytes
        async with asyncio.timeout(WAIT_S):
            while self.gateway.broker.room.is_low != (free_bytes == LOW):
                await asyncio.sleep(0.005)


class Site:
    """A gateway, its disk, and how to reach it."""

    def __init__(self, gateway, disk):
        self.gateway = gateway
        self.disk = disk
        self.amqp_url = "amqp://guest:guest@{}:{}/".format(*gateway.listening["amqp"])
        self.namesrv = "{}:{}".format(*gateway.listening["namesrv"])

    def mqtt(self, name, **options):
        host, port = self.gateway.listening["mqtt"]
        return aiomqtt.Client(host, port, identifier=name, **options)

    def held(self, door):
        return self.gateway.broker.metrics.door(door).publishers_held

    async def until_held(self, door, count=1):
        async with asyncio.timeout(WAIT_S):
            while self.held(door) != count:
                await asyncio.sleep(0.005)


@pytest_asyncio.fixture
async def site(tmp_path):
    disk = Disk()
    async with running_gateway(tmp_path, free_bytes=disk) as gateway:
        disk.gateway = gateway
        yield Site(gateway, disk)


async def stays_open(task):
    """Check that a task is not answered."""
    done, _ = await asyncio.wait([task], timeout=QUIET_S)
    assert not done


async def test_aio_pika_publisher_waits_and_consumers_go_on(site):
    async with await aio_pika.connect(site.amqp_url) as sender, await aio_pika.connect(site.amqp_url) as reader:
        queue = await (await reader.channel()).declare_queue("q", durable=True)
        channel = await sender.channel()

        async def publish(text):
            await channel.default_exchange.publish(aio_pika.Message(text), "q")

        await publish(b"1")
        await publish(b"2")
        await site.disk.become(LOW)
        await site.until_held("amqp")
        waiting = asyncio.create_task(publish(b"3"))
        await stays_open(waiting)
        async with queue.iterator() as messages:
            for text in (b"1", b"2"):
                message = await asyncio.wait_for(anext(messages), WAIT_S)
                assert message.body == text
                await message.ack()
            await site.disk.become(ENOUGH)
            await asyncio.wait_for(waiting, WAIT_S)
            message = await asyncio.wait_for(anext(messages), WAIT_S)
            assert message.body == b"3"
            await message.ack()
    assert site.held("amqp") == 0


def _pika_hears(url, told, may_go_on):
    """Publish, be blocked and unblocked, publish again: on pika's own thread."""
    connection = pika.BlockingConnection(pika.URLParameters(url))
    connection.add_on_connection_blocked_callback(lambda _connection, method: told.append(method.method.reason))
    connection.add_on_connection_unblocked_callback(lambda _connection, _method: told.append("go on"))
    channel = connection.channel()
    channel.queue_declare("q", durable=True)
    channel.confirm_delivery()
    channel.basic_publish("", "q", b"1")
    may_go_on()
    while len(told) < 2:
        connection.process_data_events(0.05)
    channel.basic_publish("", "q", b"2")
    count = channel.queue_declare("q", durable=True, passive=True).method.message_count
    connection.close()
    return count


async def test_pika_is_told_that_it_is_blocked_and_unblocked(site):
    told = []
    loop = asyncio.get_running_loop()
    published = asyncio.Event()
    work = loop.run_in_executor(
        None, _pika_hears, site.amqp_url, told, lambda: loop.call_soon_threadsafe(published.set)
    )
    await asyncio.wait_for(published.wait(), WAIT_S)
    await site.disk.become(LOW)
    async with asyncio.timeout(WAIT_S):
        while not told:
            await asyncio.sleep(0.01)
    await site.disk.become(ENOUGH)
    assert await asyncio.wait_for(work, WAIT_S) == 2
    assert told == ["low on disk", "go on"]


async def test_mqtt_publisher_is_answered_what_was_read_and_then_waits(site):
    async with site.mqtt("reader") as reader, site.mqtt("sender") as sender:
        await reader.subscribe("plant/#", qos=1)
        await site.disk.become(LOW)
        await sender.publish("plant/1", b"1", qos=1)
        waiting = asyncio.create_task(sender.publish("plant/1", b"2", qos=1))
        await stays_open(waiting)
        first = await asyncio.wait_for(anext(reader.messages), WAIT_S)
        await site.disk.become(ENOUGH)
        await asyncio.wait_for(waiting, WAIT_S)
        second = await asyncio.wait_for(anext(reader.messages), WAIT_S)
        assert (first.payload, second.payload) == (b"1", b"2")


async def test_who_publishes_and_leaves_is_heard_to_the_end_and_takes_no_socket(site):
    async with site.mqtt("reader") as reader:
        await reader.subscribe("plant/#")
        await site.disk.become(LOW)
        _, sender = await asyncio.open_connection(*site.gateway.listening["mqtt"])
        sender.write(mqtt.connect(b"sender", clean=True) + mqtt.publish(b"plant/1", b"1"))
        await site.until_held("mqtt")
        sender.write(mqtt.publish(b"plant/1", b"2") + mqtt.DISCONNECT)
        sender.close()
        for text in (b"1", b"2"):
            assert (await asyncio.wait_for(anext(reader.messages), WAIT_S)).payload == text
        await site.until_held("mqtt", 0)
        assert site.gateway.broker.metrics.door("mqtt").connections == 1


async def test_sdk_producer_tries_again_until_its_time_is_over_and_consumers_go_on(site):
    async with (
        Producer(site.namesrv, timeout_s=QUIET_S) as hasty,
        Producer(site.namesrv, timeout_s=WAIT_S) as patient,
        PullConsumer(site.namesrv, "g") as consumer,
    ):
        await hasty.send("T", b"1", queue_id=0)
        await site.disk.become(LOW)
        with pytest.raises(BusyError, match="disk"):
            await hasty.send("T", b"lost", queue_id=0)
        waiting = asyncio.create_task(patient.send("T", b"2", queue_id=0))
        await stays_open(waiting)
        assert [message.body for message in (await consumer.pull("T", 0)).messages] == [b"1"]
        await site.disk.become(ENOUGH)
        await asyncio.wait_for(waiting, WAIT_S)
        assert [message.body for message in (await consumer.pull("T", 0)).messages] == [b"1", b"2"]


async def test_gateway_stops_while_publishers_are_held(site):
    async with await aio_pika.connect(site.amqp_url) as connection:
        channel = await connection.channel()
        await channel.declare_queue("q", durable=True)
        await channel.default_exchange.publish(aio_pika.Message(b"1"), "q")
        await site.disk.become(LOW)
        await site.until_held("amqp")
        await asyncio.wait_for(site.gateway.stop(), WAIT_S)
        assert site.held("amqp") == 0


class Publishers:
    """One at each door; each sends its next message when the last was acknowledged."""

    def __init__(self, site):
        self.site = site
        self.is_over = False
        self.acknowledged = []
        self._numbers = itertools.count()

    async def _go_on(self, name, publish):
        while not self.is_over:
            text = b"%b-%d" % (name, next(self._numbers))
            await publish(text)
            self.acknowledged.append(text)

    async def until_taken(self):
        """Wait until a message more was acknowledged at each door."""
        before = len(self.acknowledged)
        while len({text.partition(b"-")[0] for text in self.acknowledged[before:]}) < DOORS:
            await asyncio.sleep(0.005)

    async def by_amqp(self):
        async with await aio_pika.connect(self.site.amqp_url) as connection:
            exchange = await (await connection.channel()).get_exchange("amq.topic")
            await self._go_on(b"amqp", lambda text: exchange.publish(aio_pika.Message(text), "plant.1"))

    async def by_mqtt(self):
        async with self.site.mqtt("sender") as client:
            await self._go_on(b"mqtt", lambda text: client.publish("plant/1", text, qos=1))

    async def by_sdk(self):
        async with Producer(self.site.namesrv, timeout_s=WAIT_S) as producer:
            await self._go_on(b"sdk", lambda text: producer.publish("plant/1", text))


async def test_of_a_disk_that_comes_and_goes_nothing_acknowledged_is_lost_and_nobody_waits_for_ever(site):
    publishers = Publishers(site)
    received = []

    async def take(message):
        received.append(message.body)
        await message.ack()

    async with await aio_pika.connect(site.amqp_url) as connection:
        queue = await (await connection.channel()).declare_queue("all", durable=True)
        await queue.bind("amq.topic", "plant.#")
        await queue.consume(take)
        async with asyncio.timeout(6 * WAIT_S), asyncio.TaskGroup() as tasks:
            for work in (publishers.by_amqp, publishers.by_mqtt, publishers.by_sdk):
                tasks.create_task(work())
            for _ in range(8):
                await publishers.until_taken()
                await site.disk.become(LOW)
                await site.until_held("mqtt")
                await site.until_held("amqp")
                await site.disk.become(ENOUGH)
            publishers.is_over = True
        async with asyncio.timeout(WAIT_S):
            while len(received) < len(publishers.acknowledged):
                await asyncio.sleep(0.01)
    assert sorted(received) == sorted(publishers.acknowledged)
    assert {text.partition(b"-")[0] for text in received} == {b"amqp", b"mqtt", b"sdk"}
    doors = site.gateway.broker.metrics.doors
    assert doors["amqp"].holds == doors["mqtt"].holds == 8
