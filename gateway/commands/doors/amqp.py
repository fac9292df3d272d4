"""A link to an AMQP door, through aio-pika."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from typing import Any, Self

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractIncomingMessage, AbstractQueue
from aio_pika.exceptions import AMQPError, PublishError
from aiormq.exceptions import (
    AuthenticationError,
    ChannelAccessRefused,
    ChannelNotFoundEntity,
    ConnectionNotAllowed,
    InvalidFrameError,
    ProbableAuthenticationError,
)

from gateway.commands.doors.place import Place
from gateway.commands.doors.security import make_context, tls_hint
from gateway.commands.doors.traffic import AckMode, Incoming, LinkError, Outgoing, Start, StartKind, Wanted
from gateway.commands.refusing import EXIT_DENIED, EXIT_MISSING, EXIT_NOT_NOW, EXIT_UNREACHABLE, EXIT_WRONG_USE

GUEST = "guest"
DENIED = (AuthenticationError, ProbableAuthenticationError, ConnectionNotAllowed)
TIMEOUT_S = 10.0  # chosen: somebody waits at a terminal
PREFETCH = 200  # chosen: enough on the way that a queue on this machine is read without pauses
HELD_MAX = 65_535  # of a prefetch, which has two bytes
_PROPERTIES = (
    "content_type", "content_encoding", "delivery_mode", "priority", "correlation_id", "reply_to", "expiration",
    "message_id", "timestamp", "type", "user_id", "app_id",
)  # fmt: skip


class AmqpLink:
    """A connection with one channel."""

    def __init__(self, place: Place) -> None:
        for library in ("aio_pika", "aiormq"):
            logging.getLogger(library).setLevel(logging.CRITICAL)
        self._place = place
        self._connection: AbstractConnection | None = None
        self._channels: dict[bool, AbstractChannel] = {}  # by whether publishes are confirmed
        self._opening = asyncio.Lock()
        self._only_reads = False

    async def __aenter__(self) -> Self:
        """Connect.

        Raises:
            LinkError: That does not work.
        """
        place = self._place
        try:
            self._connection = await aio_pika.connect(
                host=place.host,
                port=place.port,
                login=GUEST if place.user is None else place.user,
                password=(GUEST if place.user is None else "") if place.password is None else place.password,
                virtualhost=place.vhost,
                ssl=place.tls is not None,
                ssl_context=make_context(place.tls),
                timeout=TIMEOUT_S,
            )
        except InvalidFrameError as error:  # a close in place of what opens the virtual host
            told = f"amqp {place.address} refuses the virtual host {place.vhost!r}, or takes no more connections now"
            raise LinkError(told, EXIT_DENIED) from error
        except (AMQPError, OSError, TimeoutError) as error:
            what = "not let in by" if isinstance(error, DENIED) else "cannot connect to"
            code = _code_of(error, EXIT_UNREACHABLE)
            is_mute = isinstance(error.__cause__, asyncio.IncompleteReadError | ConnectionResetError)
            told = f"it hangs up and says nothing of AMQP{tls_hint(place)}" if is_mute else _told(error)
            raise LinkError(f"{what} amqp {place.address}: {told}", code) from error
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Close the connection."""
        if self._connection is not None:
            await self._connection.close()

    async def publish(self, message: Outgoing) -> bool | None:
        """Publish a message; with a QoS it is confirmed, and comes back where no queue gets it."""
        if message.retain:
            raise LinkError("--retain: AMQP retains nothing; publish it by MQTT", EXIT_WRONG_USE)
        is_confirmed = message.qos > 0
        channel = await self._channel(is_confirmed=is_confirmed)
        headers: dict[str, Any] = dict(message.headers)
        if message.delay_s is not None:
            headers["x-delay"] = round(message.delay_s * 1_000)
        out = aio_pika.Message(
            message.body,
            headers=headers,
            content_type=message.content_type or None,
            delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
            expiration=None if message.expires_s is None else timedelta(seconds=message.expires_s),
        )
        try:
            exchange = channel.default_exchange
            if message.exchange:
                exchange = await channel.get_exchange(message.exchange, ensure=False)
            await exchange.publish(out, message.target, mandatory=is_confirmed, timeout=TIMEOUT_S)
        except PublishError:
            return False
        except (AMQPError, OSError, TimeoutError) as error:
            raise _refused(error) from error
        return True if is_confirmed else None

    async def listen(self, wanted: Wanted) -> AsyncGenerator[Incoming]:
        """Yield what queues give; without `shares` a queue of its own is bound to an exchange by the names."""
        came: asyncio.Queue[AbstractIncomingMessage | None] = asyncio.Queue()
        most = wanted.count or PREFETCH
        held = min(most, HELD_MAX) if wanted.ackmode is AckMode.REQUEUE else min(most, PREFETCH)
        try:
            self._only_reads = not wanted.shares or wanted.start is not None
            channel = await self._channel(is_confirmed=False)
            await channel.set_qos(held)
            channel.close_callbacks.add(lambda *_: came.put_nowait(None))
            for queue in await _queues_of(channel, wanted):
                arguments = None if wanted.start is None else {"x-stream-offset": _start_of(wanted.start)}
                await queue.consume(came.put, arguments=arguments)
        except (AMQPError, OSError, TimeoutError) as error:
            raise _refused(error) from error
        while (message := await came.get()) is not None:
            if wanted.ackmode is AckMode.NONE and not self._only_reads:
                await message.ack()
            found = _incoming(message)
            yield found
            if self._only_reads:
                await message.ack()
        raise LinkError(f"the connection to amqp {self._place.address} is lost", EXIT_UNREACHABLE)

    async def settle(self, message: Incoming, ackmode: AckMode) -> None:
        """Acknowledge a message, give it back, or reject it: to the dead letters, where the queue has some."""
        handle: AbstractIncomingMessage = message.handle
        if self._only_reads:
            return
        if ackmode is AckMode.ACK:
            await handle.ack()
        elif ackmode is not AckMode.NONE:
            await handle.reject(requeue=ackmode is AckMode.REQUEUE)

    async def _channel(self, *, is_confirmed: bool) -> AbstractChannel:
        assert self._connection is not None
        async with self._opening:
            if is_confirmed not in self._channels:
                self._channels[is_confirmed] = await self._connection.channel(
                    publisher_confirms=is_confirmed, on_return_raises=is_confirmed
                )
            return self._channels[is_confirmed]


async def _queues_of(channel: AbstractChannel, wanted: Wanted) -> list[AbstractQueue]:
    if wanted.shares:
        return [await channel.get_queue(name, ensure=True) for name in wanted.names]
    if wanted.start is not None:
        raise LinkError("--from: an AMQP subscription begins now; `lmq consume QUEUE --from` reads a queue again", 2)
    queue = await channel.declare_queue(exclusive=True, auto_delete=True)
    for name in wanted.names:
        await queue.bind(wanted.exchange, name)
    return [queue]


def _start_of(start: Start) -> Any:  # noqa: ANN401 - a value of a table
    if start.kind is StartKind.OFFSET:
        return start.number
    return start.word if start.kind is StartKind.WORD else datetime.fromtimestamp(start.number / 1_000, UTC)


def _incoming(message: AbstractIncomingMessage) -> Incoming:
    properties: dict[str, Any] = {"exchange": message.exchange or "", "redelivered": bool(message.redelivered)}
    for name in _PROPERTIES:
        value = getattr(message, name, None)
        if value is not None:
            properties[name] = value.isoformat() if isinstance(value, datetime) else value
    return Incoming(message.routing_key or "", message.body, message, dict(message.headers), properties)


def _refused(error: BaseException) -> LinkError:
    return LinkError(f"amqp: {_told(error)}", _code_of(error, EXIT_NOT_NOW))


def _code_of(error: BaseException, other: int) -> int:
    for kind, code in ((ChannelNotFoundEntity, EXIT_MISSING), (ChannelAccessRefused, EXIT_DENIED)):
        if isinstance(error, kind):
            return code
    return EXIT_DENIED if isinstance(error, DENIED) else other


def _told(error: BaseException) -> str:
    """Return the server's words, or the system's, in what aiormq raises; its own are forms without their values."""
    texts = [text for text in error.args if isinstance(text, str)]
    return texts[-1] if texts else str(error) or type(error).__name__
