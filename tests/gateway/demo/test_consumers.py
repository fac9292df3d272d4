from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("aio_pika")
pytest.importorskip("aiomqtt")

import aiomqtt

from gateway.demo.consumers import AmqpConsumer, MqttSubscriber, SdkConsumer, make_consumer
from gateway.demo.ledger import Ledger, make_body
from gateway.demo.plan import Consumer
from tests.support.waiting import until

pytestmark = pytest.mark.slow


async def publish(gateway, ledger, sequences):
    host, port = gateway.addresses["mqtt"]
    async with aiomqtt.Client(host, port, identifier="device-0001") as client:
        for sequence in sequences:
            body = make_body((1, sequence), "k", sequence)
            ledger.add_sent((1, sequence), "a/x", body)
            await client.publish("a/x", body, qos=1)


async def started(gateway, *consumers):
    ledger = Ledger(consumers)
    running = [make_consumer(own, gateway.addresses) for own in ledger.arrivals.values()]
    for one in running:
        await one.start()
    return ledger, running


async def stop(running):
    for one in running:
        await one.stop()


@pytest.mark.asyncio
async def test_each_door_has_its_client_and_each_gets_every_message(gateway):
    ledger, running = await started(
        gateway,
        Consumer("mqtt", "mqtt", ("a/+",), qos=1),
        Consumer("amqp", "amqp", ("a.*",), queue="q"),
        Consumer("sdk", "sdk", ("a/+",), queue="a/+"),
    )
    assert [type(one) for one in running] == [MqttSubscriber, AmqpConsumer, SdkConsumer]
    await publish(gateway, ledger, range(50))
    await until(ledger.is_complete)
    await stop(running)
    assert all(verdict.is_good for verdict in ledger.verdicts())


@pytest.mark.asyncio
async def test_what_an_amqp_consumer_gives_back_comes_again_and_says_so(gateway):
    ledger, running = await started(gateway, Consumer("amqp", "amqp", ("#",), queue="q", requeue_every=5))
    await publish(gateway, ledger, range(20))
    await until(ledger.is_complete)
    await stop(running)
    (verdict,) = ledger.verdicts()
    assert (verdict.repeats, verdict.is_good) == (4, True)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "consumer",
    [
        Consumer("away", "mqtt", ("a/+",), qos=1, is_away_for_a_while=True),
        Consumer("away", "amqp", ("a.*",), queue="q"),
    ],
    ids=lambda consumer: consumer.door,
)
async def test_who_was_away_gets_what_was_sent_meanwhile(gateway, consumer):
    ledger, (running,) = await started(gateway, consumer)
    await publish(gateway, ledger, range(5))
    away = asyncio.create_task(running.be_away(0.2))
    await publish(gateway, ledger, range(5, 30))
    await away
    await until(ledger.is_complete)
    await running.stop()
    (verdict,) = ledger.verdicts()
    assert (verdict.received, verdict.is_good) == (30, True)


@pytest.mark.asyncio
async def test_an_sdk_consumer_that_comes_back_reads_all_again(gateway):
    ledger, (subscriber, reader) = await started(
        gateway, Consumer("mqtt", "mqtt", ("a/+",)), Consumer("sdk", "sdk", ("a/+",), queue="a/+")
    )
    await publish(gateway, ledger, range(3))
    await until(ledger.is_complete)
    await reader.be_away(0)
    await until(lambda: len(ledger.arrivals["sdk"].unsaid_repeats) == 3)
    await stop([subscriber, reader])
