"""What goes in by one door comes out by every other, with what it carries: each ordered pair of the three doors."""

from __future__ import annotations

import asyncio
import time

import aio_pika
import aiomqtt
import pytest

from gateway.sdk import Producer, PullConsumer, mqtt_queue
from tests.support.gateway import GatewayProcess

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]

TOPIC, KEY, FILTER, BINDING = "site/7/temp", "site.7.temp", "site/+/temp", "site.*.temp"
BODY = b'{"celsius": 21.5, "raw": "\x01\x02\xff"}'.replace(b"\xff", b"\xc3\xbf")
WAIT_S = 10


class Readers:
    """One subscriber by each door, all on the same light queue or filter."""

    def __init__(self, mqtt, amqp_queue, consumer):
        self.mqtt = mqtt
        self.amqp_queue = amqp_queue
        self.consumer = consumer

    async def from_mqtt(self):
        return await asyncio.wait_for(anext(self.mqtt.messages), WAIT_S)

    async def from_amqp(self):
        message = await self.amqp_queue.get(timeout=WAIT_S, fail=False)
        for _ in range(100):
            if message is not None:
                break
            await asyncio.sleep(0.02)
            message = await self.amqp_queue.get(timeout=WAIT_S, fail=False)
        await message.ack()
        return message

    async def from_rocketmq(self):
        (message, *more) = (await self.consumer.pull(mqtt_queue(FILTER), 0, max_count=32, wait_s=WAIT_S)).messages
        assert more == []
        return message


@pytest.fixture
def doors(tmp_path):
    settings = tmp_path / "lmq.toml"
    settings.write_text('[auth.users.ann]\npassword_env = "ANN"\n')
    with GatewayProcess(tmp_path / "data", "--config", str(settings), env={"ANN": "x"}) as gateway:
        yield gateway.listening
        assert not any("Traceback" in line for line in gateway.errors), "".join(gateway.errors)


async def with_readers(doors, work):
    host, port = doors["mqtt"]
    namesrv = "{}:{}".format(*doors["namesrv"])
    url = "amqp://guest:guest@{}:{}/".format(*doors["amqp"])
    async with (
        aiomqtt.Client(host, port, identifier="reader") as mqtt,
        await aio_pika.connect(url) as amqp,
        PullConsumer(namesrv, "readers") as consumer,
    ):
        channel = await amqp.channel()
        queue = await channel.declare_queue("temperatures", durable=True)
        await queue.bind("amq.topic", BINDING)
        await mqtt.subscribe(FILTER, qos=1)
        await work(Readers(mqtt, queue, consumer), amqp, namesrv)


async def send_by_mqtt(doors):
    host, port = doors["mqtt"]
    async with aiomqtt.Client(host, port, identifier="sensor-7", username="ann", password="x") as device:
        await device.publish(TOPIC, BODY, qos=1)


async def send_by_amqp(amqp):
    channel = await amqp.channel()
    exchange = await channel.get_exchange("amq.topic")
    await exchange.publish(
        aio_pika.Message(
            BODY,
            content_type="application/json",
            headers={"unit": "celsius", "attempts": 3, "nested": {"a": [1, True]}},
            delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
            message_id="m-1",
            priority=4,
        ),
        routing_key=KEY,
    )


async def send_by_rocketmq(namesrv):
    async with Producer(namesrv, "makers") as producer:
        await producer.send("LMQ_PARENT", BODY, properties={"LMQ_TOPIC": TOPIC, "unit": "celsius"}, tags="hot")


async def test_what_a_device_publishes_is_read_by_all(doors):
    began_ms = time.time() * 1000

    async def work(readers, amqp, namesrv):
        await send_by_mqtt(doors)
        by_mqtt, by_amqp, by_rocketmq = await asyncio.gather(
            readers.from_mqtt(), readers.from_amqp(), readers.from_rocketmq()
        )
        assert (str(by_mqtt.topic), by_mqtt.payload, by_mqtt.qos, by_mqtt.retain) == (TOPIC, BODY, 1, False)
        assert (by_amqp.routing_key, by_amqp.body, by_amqp.exchange) == (KEY, BODY, "amq.topic")
        assert by_amqp.delivery_mode == aio_pika.DeliveryMode.PERSISTENT
        headers = by_amqp.headers
        assert (headers["x-client-id"], headers["x-user"], headers["x-protocol"]) == ("sensor-7", "ann", "mqtt")
        assert began_ms - 1000 <= headers["timestamp_in_ms"] <= time.time() * 1000 + 1000
        assert (by_rocketmq.mqtt_topic, by_rocketmq.body) == (TOPIC, BODY)
        assert (by_rocketmq.client, by_rocketmq.user, by_rocketmq.protocol) == ("sensor-7", "ann", "mqtt")
        assert began_ms - 1000 <= by_rocketmq.born_ms <= time.time() * 1000 + 1000

    await with_readers(doors, work)


async def test_what_a_service_publishes_is_read_by_all(doors):
    async def work(readers, amqp, namesrv):
        await send_by_amqp(amqp)
        by_mqtt, by_amqp, by_rocketmq = await asyncio.gather(
            readers.from_mqtt(), readers.from_amqp(), readers.from_rocketmq()
        )
        assert (str(by_mqtt.topic), by_mqtt.payload, by_mqtt.qos) == (TOPIC, BODY, 1)
        assert (by_amqp.routing_key, by_amqp.body, by_amqp.content_type) == (KEY, BODY, "application/json")
        assert (by_amqp.message_id, by_amqp.priority) == ("m-1", 4)
        assert by_amqp.headers["nested"] == {"a": [1, True]}
        assert (by_amqp.headers["unit"], by_amqp.headers["attempts"]) == ("celsius", 3)
        assert (by_rocketmq.mqtt_topic, by_rocketmq.body) == (TOPIC, BODY)
        assert (by_rocketmq.user, by_rocketmq.protocol) == ("guest", "amqp")
        properties = by_rocketmq.properties
        assert (properties["unit"], properties["CONTENT_TYPE"]) == ("celsius", "application/json")

    await with_readers(doors, work)


async def test_what_a_rocketmq_producer_sends_is_read_by_all(doors):
    async def work(readers, amqp, namesrv):
        await send_by_rocketmq(namesrv)
        by_mqtt, by_amqp, by_rocketmq = await asyncio.gather(
            readers.from_mqtt(), readers.from_amqp(), readers.from_rocketmq()
        )
        assert (str(by_mqtt.topic), by_mqtt.payload, by_mqtt.qos) == (TOPIC, BODY, 1)
        assert (by_amqp.routing_key, by_amqp.body) == (KEY, BODY)
        assert (by_amqp.headers["unit"], by_amqp.headers["TAGS"]) == ("celsius", "hot")
        assert by_amqp.headers["x-protocol"] == "rocketmq"
        assert (by_rocketmq.mqtt_topic, by_rocketmq.body, by_rocketmq.tags) == (TOPIC, BODY, "hot")
        assert by_rocketmq.properties["unit"] == "celsius"

    await with_readers(doors, work)


async def test_a_message_is_written_once_however_many_read_it(doors):
    async def work(readers, amqp, namesrv):
        channel = await amqp.channel()
        for i in range(20):
            queue = await channel.declare_queue(f"copy-{i}", durable=True)
            await queue.bind("amq.topic", BINDING)
        await send_by_mqtt(doors)
        await asyncio.gather(readers.from_mqtt(), readers.from_amqp())
        (parent,) = (await readers.consumer.pull("LMQ_PARENT", 0, max_count=32, queue_id=0)).messages
        names = parent.properties["INNER_MULTI_DISPATCH"].split(",")
        assert len(names) == len(set(names)) == 22

    await with_readers(doors, work)
