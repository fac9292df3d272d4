"""What a message carries, from door to door: docs/protocols/crossing.md."""

from __future__ import annotations

import asyncio

import aio_pika
import aiomqtt
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tests.support.gateway import GatewayProcess

pytestmark = pytest.mark.slow

WAIT_S = 15


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    with GatewayProcess(tmp_path_factory.mktemp("crossing")) as running:
        yield running
        assert not any("Traceback" in line for line in running.errors), "".join(running.errors)


@pytest.mark.asyncio
async def test_mqtt_5_and_amqp_tell_each_other_what_both_have(gateway):
    host, port = gateway.address("mqtt")
    amqp_host, amqp_port = gateway.address("amqp")
    connection = await aio_pika.connect(host=amqp_host, port=amqp_port)
    async with connection, aiomqtt.Client(host, port, protocol=aiomqtt.ProtocolVersion.V5) as client:
        channel = await connection.channel()
        exchange = await channel.get_exchange("amq.topic")
        queue = await channel.declare_queue(exclusive=True)
        await queue.bind(exchange, "crossing.#")
        await client.subscribe("crossing/#", qos=1)
        said = Properties(PacketTypes.PUBLISH)
        said.ContentType = "text/plain"
        said.CorrelationData = b"7"
        said.ResponseTopic = "answers/1"
        said.MessageExpiryInterval = 60
        said.PayloadFormatIndicator = 1
        said.UserProperty = [("unit", "kW"), ("LMQ_TOPIC", "mine")]
        await client.publish("crossing/a", b"x", qos=1, properties=said)
        message = await queue.get(timeout=WAIT_S)
        assert (message.body, message.content_type, message.correlation_id) == (b"x", "text/plain", "7")
        assert message.expiration == 60
        headers = message.headers
        assert (headers["unit"], headers["LMQ_TOPIC"]) == ("kW", "mine")
        assert (headers["x-opt-reply-to-topic"], headers["x-mqtt-payload-format"]) == ("answers/1", 1)
        answer = aio_pika.Message(
            b"y", content_type="a/b", correlation_id="8", expiration=30, headers={"n": 5, "t": "v"}, message_id="m1"
        )
        await exchange.publish(answer, "crossing.b")
        got = await asyncio.wait_for(_second(client.messages), WAIT_S)
        found = got.properties
        assert (got.payload, found.ContentType, found.CorrelationData) == (b"y", "a/b", b"8")
        assert 28 <= found.MessageExpiryInterval <= 30
        assert [one for one in found.UserProperty if not one[0].startswith("x-amqp-")] == [("n", "5"), ("t", "v")]
        assert ("x-amqp-message-id", "m1") in found.UserProperty


async def _second(messages):
    count = 0
    async for message in messages:
        count += 1
        if count == 2:
            return message
    raise AssertionError("no message")
