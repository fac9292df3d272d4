"""A link to a RocketMQ door, through the SDK."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Any, Self

from gateway.commands.doors.place import Place
from gateway.commands.doors.security import check_reachable, make_context, tls_hint
from gateway.commands.doors.traffic import GROUP, AckMode, Incoming, LinkError, Outgoing, Start, StartKind, Wanted
from gateway.commands.refusing import EXIT_DENIED, EXIT_MISSING, EXIT_UNREACHABLE, EXIT_WRONG_USE
from lmq import (
    ConnectFailedError,
    ConnectionLostError,
    Message,
    MessageRefusedError,
    NoPermissionError,
    NotFoundError,
    OutMessage,
    Producer,
    PullConsumer,
    RequestTimeoutError,
    SdkError,
    SimpleConsumer,
    mqtt_queue,
)

PARENT_TOPIC = "LMQ_PARENT"
TOPIC = "LMQ_TOPIC"
BATCH = 32  # what official brokers give in one answer by default
WAIT_S = 5.0  # of a pull at the broker: Ctrl-C waits for it no longer
REJECTED = "--ackmode reject: RocketMQ has no way to reject a message; it can be given back (requeue)"


class RocketmqLink:
    """A producer, and a consumer when it listens."""

    def __init__(self, place: Place) -> None:
        logging.getLogger("lmq").setLevel(logging.ERROR)
        self._place = place
        self._stack = AsyncExitStack()
        self._producer: Producer | None = None
        self._simple: SimpleConsumer | None = None
        self._is_answered = False  # it is RocketMQ that the server speaks, and as it is spoken to
        self._open: dict[str, Any] = {
            "tls": make_context(place.tls),
            "access_key": place.user or "",
            "secret_key": place.password or "",
        }

    async def __aenter__(self) -> Self:
        """Begin; connections are made when they are needed."""
        await check_reachable(self._place)
        await self._stack.__aenter__()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Leave the group, and close the connections."""
        await self._stack.aclose()

    async def publish(self, message: Outgoing) -> bool | None:
        """Send a message to a topic; one with slashes is a topic of the space that MQTT and AMQP share."""
        if message.retain:
            raise LinkError("--retain: RocketMQ retains nothing; publish it by MQTT", EXIT_WRONG_USE)
        if message.content_type or message.expires_s is not None:
            raise LinkError("--content-type, --expires: RocketMQ has no such field", EXIT_WRONG_USE)
        properties, topic = dict(message.headers), message.target
        if "/" in topic:
            properties[TOPIC], topic = topic, PARENT_TOPIC
        try:
            if self._producer is None:
                producer = Producer(self._place.address, GROUP, **self._open)
                self._producer = producer
                await self._stack.enter_async_context(producer)
            if not message.qos:
                out = OutMessage(topic, message.body, message.tags, message.keys, properties, delay=message.delay_s)
                await self._producer.send_one_way(out)
            else:
                more: dict[str, Any] = {"tags": message.tags, "keys": message.keys, "properties": properties}
                await self._producer.send(topic, message.body, delay=message.delay_s, **more)
                self._is_answered = True
        except (SdkError, ValueError) as error:
            raise self._refused(error) from error
        return None

    async def listen(self, wanted: Wanted) -> AsyncGenerator[Incoming]:
        """Yield what topics or light queues give; a name with slashes is an MQTT filter's light queue."""
        try:
            names = [mqtt_queue(name) if "/" in name else name for name in wanted.names]
            async for message in self._take(names, wanted) if wanted.shares else self._read(names, wanted):
                self._is_answered = True
                yield _incoming(message)
        except (SdkError, ValueError) as error:
            raise self._refused(error) from error

    async def _read(self, names: list[str], wanted: Wanted) -> AsyncGenerator[Message]:
        consumer = PullConsumer(self._place.address, GROUP, **self._open)
        await self._stack.enter_async_context(consumer)
        came: asyncio.Queue[Message | BaseException] = asyncio.Queue(BATCH)

        async def read(name: str) -> None:
            try:
                begin: Any = "last" if wanted.start is None else _start_of(wanted.start)
                async for message in consumer.messages(name, from_=begin, tags=wanted.tags, wait_s=WAIT_S):
                    await came.put(message)
            except (SdkError, ValueError) as error:
                await came.put(error)

        readers = [asyncio.create_task(read(name)) for name in names]
        try:
            while True:
                found = await came.get()
                if isinstance(found, BaseException):
                    raise found
                yield found
        finally:
            for reader in readers:
                reader.cancel()
            await asyncio.gather(*readers, return_exceptions=True)

    async def _take(self, names: list[str], wanted: Wanted) -> AsyncGenerator[Message]:
        start = wanted.start
        if start is not None and start.word not in {"first", "last", "next"}:
            raise LinkError("--from: a new group begins at first or last; for an existing one use `lmq group reset`", 2)
        begin: Any = "first" if start is not None and start.word == "first" else "last"
        consumer = SimpleConsumer(self._place.address, wanted.group, consume_from=begin, **self._open)
        self._simple = await self._stack.enter_async_context(consumer)
        for name in names:
            consumer.subscribe(name, wanted.tags)
        while True:
            most = BATCH if wanted.count is None else min(wanted.count, BATCH)
            for message in await consumer.receive(most, wait_s=WAIT_S):
                if wanted.ackmode is AckMode.NONE:  # it is done before it is shown, as with AMQP's no-ack
                    await consumer.ack(message)
                yield message

    async def settle(self, message: Incoming, ackmode: AckMode) -> None:
        """Acknowledge a message, or have it come again at once; else it comes again by itself."""
        assert self._simple is not None
        try:
            if ackmode is AckMode.REJECT:
                raise LinkError(REJECTED, EXIT_WRONG_USE)
            if ackmode is AckMode.ACK:
                await self._simple.ack(message.handle)
            elif ackmode is AckMode.REQUEUE:
                await self._simple.change_invisible(message.handle, 0.01)
        except SdkError as error:
            raise self._refused(error) from error

    def _refused(self, error: Exception) -> LinkError:
        if isinstance(error, ConnectionLostError) and not self._is_answered:
            return LinkError(f"rocketmq: {error}{tls_hint(self._place)}", EXIT_UNREACHABLE)
        if isinstance(error, ConnectFailedError | ConnectionLostError | RequestTimeoutError):
            return LinkError(str(error), EXIT_UNREACHABLE)
        if isinstance(error, NoPermissionError):
            return LinkError(f"rocketmq: {error}", EXIT_DENIED)
        if isinstance(error, NotFoundError):
            return LinkError(f"rocketmq: {error}", EXIT_MISSING)
        return LinkError(
            f"rocketmq: {error}", EXIT_WRONG_USE if isinstance(error, ValueError | MessageRefusedError) else 7
        )


def _start_of(start: Start) -> int | str | datetime:
    if start.kind is StartKind.OFFSET:
        return start.number
    if start.kind is StartKind.MOMENT:
        return datetime.fromtimestamp(start.number / 1_000, UTC)
    return "first" if start.word == "first" else "last"


def _incoming(message: Message) -> Incoming:
    properties: dict[str, Any] = {
        "queue": message.queue,
        "queue_id": message.queue_id,
        "offset": message.queue_offset,
        "stored_at_ms": message.store_ms,
        "tags": message.tags,
        "keys": message.keys,
        "door": message.protocol,
        "client": message.client,
        "reconsumed": message.reconsume_times,
    }
    return Incoming(message.mqtt_topic or message.topic, message.body, message, message.user_properties, properties)
