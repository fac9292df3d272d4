"""The demo's consumers: ordinary clients of each door, which count what they get."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Protocol

import aio_pika
import aiomqtt
import paho.mqtt.client as paho
from aio_pika.abc import AbstractIncomingMessage
from aio_pika.exceptions import AMQPError
from paho.mqtt.enums import CallbackAPIVersion

from gateway.demo.ledger import Arrivals
from lmq import PullConsumer, SdkError, mqtt_queue

_READY_S_MAX = 20  # chosen: what a connection may take on a busy machine
_PREFETCH = 200  # chosen: enough on the way that the devices' rate is kept up with
_AMQP_LOGIN = "guest"
_PULL_WAIT_S = 1.0  # of a pull at the broker: the demonstration's end waits for it no longer


CLIENT_ERRORS = (aiomqtt.MqttError, AMQPError, SdkError, OSError)
"""What a client raises when the gateway does not do as it should."""


class RunningConsumer(Protocol):
    """What the demo does with a consumer."""

    async def start(self) -> None:
        """Connect and subscribe; when this returns, nothing more may be missed."""

    async def be_away(self, seconds: float) -> None:
        """Lose the connection, and come back after `seconds`."""

    async def stop(self) -> None:
        """Leave."""


class MqttSubscriber:
    """One subscriber on paho's own thread: paho is the client that tells whether a message may be a repeat."""

    def __init__(self, arrivals: Arrivals, address: tuple[str, int]) -> None:
        self._arrivals = arrivals
        self._address = address
        self._loop = asyncio.get_running_loop()
        self._subscribed = asyncio.Event()
        self._client = self._make_client()

    def _make_client(self) -> paho.Client:
        consumer = self._arrivals.consumer
        client = paho.Client(
            CallbackAPIVersion.VERSION2,
            client_id=consumer.name.replace(" ", "-"),
            clean_session=not consumer.is_away_for_a_while,
        )
        client.on_connect = self._on_connect
        client.on_subscribe = self._on_subscribe
        client.on_message = self._on_message
        return client

    def _on_connect(self, client: paho.Client, *_: object) -> None:
        consumer = self._arrivals.consumer
        client.subscribe([(wanted, consumer.qos) for wanted in consumer.filters])

    def _on_subscribe(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._subscribed.set)

    def _on_message(self, _client: paho.Client, _data: object, message: paho.MQTTMessage) -> None:
        self._arrivals.add(message.topic, bytes(message.payload), may_be_repeat=message.dup)

    async def start(self) -> None:
        """Connect, and wait for the subscriptions to be granted."""
        self._subscribed.clear()
        await self._loop.run_in_executor(None, self._client.connect, *self._address)
        self._client.loop_start()
        await asyncio.wait_for(self._subscribed.wait(), _READY_S_MAX)

    async def be_away(self, seconds: float) -> None:
        """Break the connection without a goodbye, and come back to the session."""
        connection = self._client.socket()
        await self._loop.run_in_executor(None, self._client.loop_stop)
        if connection is not None:
            connection.close()
        await asyncio.sleep(seconds)
        self._client = self._make_client()
        await self.start()

    async def stop(self) -> None:
        """Disconnect."""
        self._client.disconnect()
        await self._loop.run_in_executor(None, self._client.loop_stop)


class AmqpConsumer:
    """One consumer of a durable queue that is bound to amq.topic."""

    def __init__(self, arrivals: Arrivals, address: tuple[str, int]) -> None:
        self._arrivals = arrivals
        self._address = address
        self._stack = AsyncExitStack()
        self._first_deliveries = 0

    async def start(self) -> None:
        """Declare the queue, bind it, and consume."""
        host, port = self._address
        consumer = self._arrivals.consumer
        connection = await aio_pika.connect(
            host=host, port=port, login=_AMQP_LOGIN, password=_AMQP_LOGIN, timeout=_READY_S_MAX
        )
        await self._stack.enter_async_context(connection)
        channel = await connection.channel()
        await channel.set_qos(prefetch_count=_PREFETCH)
        queue = await channel.declare_queue(consumer.queue, durable=True)
        for key in consumer.filters:
            await queue.bind("amq.topic", key)
        await queue.consume(self._on_message)

    async def _on_message(self, message: AbstractIncomingMessage) -> None:
        topic = (message.routing_key or "").replace(".", "/")
        key = self._arrivals.add(topic, message.body, may_be_repeat=bool(message.redelivered))
        every = self._arrivals.consumer.requeue_every
        if every and key is not None and not message.redelivered:
            self._first_deliveries += 1
            if self._first_deliveries % every == 0:
                self._arrivals.given_back.add(key)
                await message.nack(requeue=True)
                return
        await message.ack()

    async def be_away(self, seconds: float) -> None:
        """Close the connection, and come back to the queue."""
        await self.stop()
        await asyncio.sleep(seconds)
        await self.start()

    async def stop(self) -> None:
        """Close the connection."""
        await self._stack.aclose()


class SdkConsumer:
    """One reader of a light queue, by the native SDK; what it reads stays in the queue."""

    def __init__(self, arrivals: Arrivals, address: tuple[str, int]) -> None:
        self._arrivals = arrivals
        self._client = PullConsumer(f"{address[0]}:{address[1]}", group="demo")
        self._queue = mqtt_queue(arrivals.consumer.queue)
        self._reading: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Read from the queue's first message on."""
        await self._client.start()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            async for message in self._client.messages(self._queue, from_="first", wait_s=_PULL_WAIT_S):
                self._arrivals.add(message.mqtt_topic, message.body, may_be_repeat=False)
        except SdkError as error:
            self._arrivals.error = str(error)

    async def be_away(self, seconds: float) -> None:
        """Stop reading, and read all again after `seconds`."""
        await self._cancel()
        await asyncio.sleep(seconds)
        await self.start()

    async def _cancel(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])

    async def stop(self) -> None:
        """Stop reading and disconnect."""
        await self._cancel()
        await self._client.stop()


def make_consumer(arrivals: Arrivals, addresses: Mapping[str, tuple[str, int]]) -> RunningConsumer:
    """Return the client that `arrivals` belongs to; `addresses` are those of the gateway's doors."""
    door = arrivals.consumer.door
    if door == "mqtt":
        return MqttSubscriber(arrivals, addresses["mqtt"])
    if door == "amqp":
        return AmqpConsumer(arrivals, addresses["amqp"])
    return SdkConsumer(arrivals, addresses["namesrv"])
