"""What goes in by one door comes out by every other, with what it carries: each ordered pair of the three doors."""

from __future__ import annotations

import asyncio
import time
import urllib.request

import aio_pika
import aiomqtt
import pytest
from prometheus_client.parser import text_string_to_metric_families

from lmq import NotFoundError, Producer, PullConsumer, mqtt_queue
from tests.support import mqtt
from tests.support.gateway import DOORS, SEGMENT_BYTES, GatewayProcess

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
    with GatewayProcess(tmp_path / "data", "--config", str(settings), env={"ANN": "x"}, doors=DOORS) as gateway:
        yield gateway.listening
        assert not any("Traceback" in line for line in gateway.errors), "".join(gateway.errors)


async def with_readers(doors, work):
    host, port = doors["mqtt"]
    namesrv = "{}:{}".format(*doors["namesrv"])
    url = "amqp://guest:guest@{}:{}/".format(*doors["amqp"])
    async with (
        aiomqtt.Client(host, port, identifier="reader") as mqtt,
        await aio_pika.connect(url, client_properties={"connection_name": "billing"}) as amqp,
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
    async with Producer(namesrv, "makers", client_id="maker-3") as producer:
        properties = {"LMQ_TOPIC": TOPIC, "CONTENT_TYPE": "application/json", "unit": "celsius"}
        await producer.send("LMQ_PARENT", BODY, properties=properties, tags="hot")


def is_recent(at_ms):
    return abs(time.time() * 1000 - at_ms) < 60_000


async def test_what_a_device_publishes_is_read_by_all(doors):
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
        assert is_recent(headers["timestamp_in_ms"])
        assert (by_rocketmq.mqtt_topic, by_rocketmq.body) == (TOPIC, BODY)
        assert (by_rocketmq.client, by_rocketmq.user, by_rocketmq.protocol) == ("sensor-7", "ann", "mqtt")
        assert by_rocketmq.born_ms == headers["timestamp_in_ms"]

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
        assert (by_rocketmq.client, by_rocketmq.user, by_rocketmq.protocol) == ("billing", "guest", "amqp")
        assert by_rocketmq.content_type == "application/json"
        assert by_rocketmq.user_properties == {
            "unit": "celsius",
            "attempts": "3",
            "nested": '{"a":[1,true]}',
            "x-amqp-types": "battempts=Fnested=",
            "x-amqp-message-id": "m-1",
            "x-amqp-priority": "4",
        }
        assert is_recent(by_rocketmq.born_ms)

    await with_readers(doors, work)


async def test_what_a_rocketmq_producer_sends_is_read_by_all(doors):
    async def work(readers, amqp, namesrv):
        await send_by_rocketmq(namesrv)
        by_mqtt, by_amqp, by_rocketmq = await asyncio.gather(
            readers.from_mqtt(), readers.from_amqp(), readers.from_rocketmq()
        )
        assert (str(by_mqtt.topic), by_mqtt.payload, by_mqtt.qos) == (TOPIC, BODY, 1)
        assert (by_amqp.routing_key, by_amqp.body, by_amqp.content_type) == (KEY, BODY, "application/json")
        headers = by_amqp.headers
        assert (headers["unit"], headers["TAGS"]) == ("celsius", "hot")
        assert (headers["x-protocol"], headers["x-client-id"]) == ("rocketmq", "maker-3")
        assert is_recent(headers["timestamp_in_ms"])
        assert (by_rocketmq.mqtt_topic, by_rocketmq.body, by_rocketmq.tags) == (TOPIC, BODY, "hot")
        assert (by_rocketmq.client, by_rocketmq.protocol) == ("maker-3", "rocketmq")
        assert (by_rocketmq.content_type, by_rocketmq.user_properties) == ("application/json", {"unit": "celsius"})
        assert by_rocketmq.born_ms == headers["timestamp_in_ms"]

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


def metrics_of(doors):
    host, port = doors["admin"]
    with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=WAIT_S) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    return {(one.name, one.labels.get("door", "")): one.value for family in families for one in family.samples}


async def test_what_goes_through_each_door_is_counted(doors):
    async def work(readers, amqp, namesrv):
        before = await asyncio.to_thread(metrics_of, doors)
        await send_by_mqtt(doors)
        await send_by_amqp(amqp)
        await send_by_rocketmq(namesrv)
        for _ in range(3):
            await readers.from_mqtt()
            await readers.from_amqp()
        assert len((await readers.consumer.pull(mqtt_queue(FILTER), 0, max_count=32, wait_s=WAIT_S)).messages) == 3
        channel = await amqp.channel()
        await channel.default_exchange.publish(aio_pika.Message(b"nobody's"), "nowhere", mandatory=False)
        with pytest.raises(aio_pika.exceptions.ChannelNotFoundEntity):
            await channel.get_queue("nowhere")
        with pytest.raises(NotFoundError):
            await readers.consumer.pull("NoSuchTopic", 0)
        reader, writer = await asyncio.open_connection(*doors["mqtt"])
        writer.write(mqtt.connect(b"wild") + mqtt.publish(b"a/#", b"x"))
        assert await reader.read() == mqtt.connack()  # closed then
        writer.close()
        after = await asyncio.to_thread(metrics_of, doors)
        grown = {key: value - before.get(key, 0) for key, value in after.items()}
        for door, taken, given in (("mqtt", 1, 3), ("amqp", 2, 3), ("rocketmq", 1, 3)):
            assert grown["lmq_messages_in_total", door] == taken
            assert grown["lmq_messages_out_total", door] == given
            assert grown["lmq_bytes_out_total", door] == 3 * len(BODY)
            assert grown["lmq_bytes_in_total", door] >= len(BODY)
            assert grown["lmq_refused_total", door] >= 1
            assert after["lmq_connections", door] >= 1
            assert grown["lmq_connections_opened_total", door] >= (door != "amqp")
        assert after["lmq_sessions", "mqtt"] >= 1
        assert grown["lmq_dropped_total", "amqp"] == 1
        assert grown["lmq_messages_stored_total", ""] == 3
        assert grown["lmq_dispatches_total", ""] == 6
        assert after["lmq_light_queues", ""] >= 3
        assert after["lmq_log_bytes", ""] >= SEGMENT_BYTES
        assert grown["lmq_sync_seconds_count", ""] >= 1

    await with_readers(doors, work)
