"""Send messages to topics, to light queues, and into the topic space that MQTT and AMQP share."""

from __future__ import annotations

import asyncio
import base64
import itertools
import math
import os
import random
import secrets
import ssl
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lmq.client import Client
from lmq.errors import (
    BusyError,
    ConnectFailedError,
    ConnectionLostError,
    NotFoundError,
    RequestTimeoutError,
    SdkError,
    response_error,
)
from lmq.member import Member
from lmq.message import SendResult
from lmq.remoting.commands import Command
from lmq.remoting.message_codec import encode_properties_text
from lmq.remoting.request_codes import RequestCode
from lmq.remoting.response_codes import SEND_STORED_CODES, ResponseCode
from lmq.routes import TEMPLATE_TOPIC, Route

PARENT_TOPIC = "LMQ_PARENT"
RETRIED = (ConnectFailedError, ConnectionLostError, RequestTimeoutError)
RETRY_FIRST_S = 0.05
BUSY_MAX_S = 1.0  # between two tries


@dataclass(slots=True)
class OutMessage:
    """A message to be sent; see `Producer.send`."""

    topic: str
    body: bytes
    tags: str = ""
    keys: Sequence[str] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    queue_id: int | None = None
    dispatch: Sequence[str] = ()
    flag: int = 0
    deliver_at: datetime | None = None
    delay: timedelta | float | None = None


_Started = tuple[Client, asyncio.Future[Command]] | SdkError | None
"""Where the answer of a send comes, what it failed with, or None: not sent yet."""


@dataclass(slots=True)
class _Window:
    """What the messages of one `send_many` share."""

    room: asyncio.Semaphore  # for those on their way
    is_reached: bool = True  # the broker, when it was last tried


class Producer(Member):
    """Sends messages. Use it as an async context manager, or call `start` and `stop`.

    Args:
        namesrv: The name server's `HOST:PORT`, several with `;` between.
        group: The producer group.
        timeout_s: How long to wait for each answer, and how long a send is repeated, more and more seldom, to a broker
            that is busy: its disk is low on room, say. Nothing is stored by a send that a busy broker refuses.
        retries: How often a send is repeated after a lost connection or a timeout. A repeated message may be stored
            twice; both carry the same key.
        client_id: How the broker and readers of other protocols see this producer; made up if not given.
        tls: What connections are secured by: `ssl.create_default_context(cafile=...)`, say; without it, not.
        access_key: The user that requests are sent as; empty: as nobody.
        secret_key: The secret that this user shares with the broker; requests are signed with it, and it is never sent.
    """

    def __init__(
        self,
        namesrv: str,
        group: str = "SDK_PRODUCER",
        *,
        timeout_s: float = 3.0,
        retries: int = 2,
        client_id: str | None = None,
        tls: ssl.SSLContext | None = None,
        access_key: str = "",
        secret_key: str = "",
    ) -> None:
        super().__init__(
            namesrv,
            group,
            greeting={"producerDataSet": [{"groupName": group}]},
            farewell={"producerGroup": group},
            timeout_s=timeout_s,
            client_id=client_id,
            tls=tls,
            access_key=access_key,
            secret_key=secret_key,
        )
        self._retries = retries
        self._next_queue = itertools.count()
        self._keys = KeyMaker()

    async def send(
        self,
        topic: str,
        body: bytes,
        *,
        tags: str = "",
        keys: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        queue_id: int | None = None,
        dispatch: Sequence[str] = (),
        flag: int = 0,
        deliver_at: datetime | None = None,
        delay: timedelta | float | None = None,
    ) -> SendResult:
        """Send one message and return where it was stored.

        Args:
            topic: The topic; a name `%LMQ%…` is a light queue.
            body: The message.
            tags: What tag filters look at.
            keys: Words to find the message by.
            properties: Further properties; names and values without the characters U+0001 and U+0002.
            queue_id: The topic's queue; the producer goes round all of them if it is not given.
            dispatch: Light queues that the message is put into as well.
            flag: A number of the sender's own.
            deliver_at: When readers are to get it, by the broker's clock; one without a time zone is local time.
            delay: How long after it was stored, or so many seconds, in place of `deliver_at`.

        Raises:
            ValueError: A property cannot be carried, or both `deliver_at` and `delay` are given.
            MessageRefusedError, NoPermissionError, NotFoundError, BusyError: The broker refused.
            SdkError: It could not be asked, or did not answer.
        """
        message = OutMessage(topic, body, tags, keys, properties or {}, queue_id, dispatch, flag, deliver_at, delay)
        return await self._send(message, self._properties_of(message))

    async def recall(self, topic: str, handle: str) -> str:
        """Take back a message that waits for its moment; return its key. Its readers never get it.

        Args:
            topic: The topic that it was sent to.
            handle: `SendResult.recall_handle` of its send.

        Raises:
            ResponseError: The broker refused: the moment has passed, say.
            SdkError: It could not be asked, or did not answer.
        """
        route = _broker_of(handle, await self._routes.find(topic))
        ext = {"producerGroup": self.group, "topic": topic, "recallHandle": handle, "bname": route.broker_name}
        response = await self._routes.client_of(route).request(Command(RequestCode.RECALL_MESSAGE, ext=ext))
        if response.code != ResponseCode.SUCCESS:
            raise response_error(response.code, response.remark)
        return response.ext.get("msgId", "")

    async def publish(
        self, topic: str, body: bytes, *, properties: Mapping[str, str] | None = None, parent_topic: str = PARENT_TOPIC
    ) -> SendResult:
        """Publish to a topic of the topic space, in MQTT's form: MQTT and AMQP subscribers get it."""
        return await self.send(parent_topic, body, properties={**(properties or {}), "LMQ_TOPIC": topic}, queue_id=0)

    async def send_many(
        self, messages: Iterable[OutMessage], *, in_flight_max: int = 256
    ) -> list[SendResult | SdkError]:
        """Send many messages at once, in their order; return, in the same order, each one's result or error.

        A message that has to be repeated may come after those behind it. Where a broker is not reached, those behind
        the first wait for it together.
        """
        window = _Window(asyncio.Semaphore(in_flight_max))
        waiting: list[asyncio.Task[SendResult | SdkError]] = []
        for message in messages:
            await window.room.acquire()
            properties = self._properties_of(message)
            started: _Started = None
            if window.is_reached:
                try:
                    started = await self._start(message, properties)
                except SdkError as error:
                    window.is_reached = False
                    started = error
            waiting.append(asyncio.create_task(self._finish(message, properties, started, window)))
        return list(await asyncio.gather(*waiting))

    async def _finish(
        self, message: OutMessage, properties: str, started: _Started, window: _Window
    ) -> SendResult | SdkError:
        """Wait for the answer of a send that is on its way; send it again where that is called for."""
        try:
            result = await self._send(message, properties, started)
        except SdkError as error:
            return error
        else:
            window.is_reached = True
            return result
        finally:
            window.room.release()

    async def send_one_way(self, message: OutMessage) -> None:
        """Send a message without asking whether it was stored."""
        client, command = await self._prepare(message, self._properties_of(message))
        await client.send_one_way(command)

    async def _send(self, message: OutMessage, properties: str, started: _Started = None) -> SendResult:
        """Send a message, and again where that is called for; the first try may be one that was started before.

        That one counts, but the pauses, and the time that a busy broker is given, begin with the next.
        """
        clock = asyncio.get_running_loop().time
        give_up_at_s, pause_s = clock() + self._timeout_s, RETRY_FIRST_S
        attempt = 0
        while True:
            try:
                return await self._try(message, properties, started)
            except BusyError:
                if started is None and clock() + pause_s >= give_up_at_s:
                    raise
                await asyncio.sleep(_spread(pause_s))
                pause_s = min(2 * pause_s, BUSY_MAX_S)
            except RETRIED:
                if attempt >= self._retries:
                    raise
                self._routes.forget(message.topic)
                if started is None:
                    await asyncio.sleep(RETRY_FIRST_S * 2**attempt)
                attempt += 1
            except NotFoundError:
                self._routes.forget(message.topic)
                raise
            if started is not None:
                started = None
                give_up_at_s, pause_s = clock() + self._timeout_s, RETRY_FIRST_S

    async def _try(self, message: OutMessage, properties: str, started: _Started) -> SendResult:
        """Return the result of what was started, or else of a send that is started now."""
        if isinstance(started, SdkError):
            raise started
        client, answer = started or await self._start(message, properties)
        return _result_of(await client.wait_for(answer))

    async def _start(self, message: OutMessage, properties: str) -> tuple[Client, asyncio.Future[Command]]:
        client, command = await self._prepare(message, properties)
        return client, await client.start_request(command)

    async def _prepare(self, message: OutMessage, properties: str) -> tuple[Client, Command]:
        routes = await self._routes.find_for_send(message.topic)
        route, queue_id = _choose(routes, message.queue_id, next(self._next_queue))
        ext = {
            "a": self.group,
            "b": message.topic,
            "c": TEMPLATE_TOPIC,
            "d": "4",
            "e": str(queue_id),
            "f": "0",
            "g": str(time.time_ns() // 1_000_000),
            "h": str(message.flag),
            "i": properties,
            "j": "0",
            "k": "false",
            "l": "0",
            "m": "false",
            "n": route.broker_name,
        }
        return self._routes.client_of(route), Command(RequestCode.SEND_MESSAGE_V2, ext=ext, body=message.body)

    def _properties_of(self, message: OutMessage) -> str:
        """Return the message's properties as text; made once, so that a repeated send carries the same key."""
        items = {"UNIQ_KEY": self._keys.make(), "WAIT": "true"} | dict(message.properties)
        if message.tags:
            items["TAGS"] = message.tags
        if message.keys:
            items["KEYS"] = " ".join(message.keys)
        if message.dispatch:
            items["INNER_MULTI_DISPATCH"] = ",".join(message.dispatch)
        items |= _moment_of(message)
        encoded = {name.encode(): value.encode() for name, value in items.items()}
        for name, value in encoded.items():
            if not name or any(separator in name + value for separator in (b"\x01", b"\x02")):
                raise ValueError(f"property {name!r} holds a separator, or has no name")
        return encode_properties_text(encoded)


class KeyMaker:
    """Makes UNIQ_KEYs: 32 hexadecimal digits that no other producer makes."""

    def __init__(self) -> None:
        self._start = f"7F000001{os.getpid() & 0xFFFF:04X}{secrets.token_hex(4).upper()}"
        self._counter = itertools.count()

    def make(self) -> str:
        """Return another key."""
        number = next(self._counter)
        return f"{self._start}{(time.time_ns() // 1_000_000) & 0xFFFFFFFF:08X}{number & 0xFFFF:04X}"


def _moment_of(message: OutMessage) -> dict[str, str]:
    """Return the property that says when a message is to come, where it is not at once."""
    if message.deliver_at is not None and message.delay is not None:
        raise ValueError("deliver_at and delay exclude each other")
    if message.deliver_at is not None:
        return {"TIMER_DELIVER_MS": str(math.ceil(message.deliver_at.timestamp() * 1000))}
    if message.delay is None:
        return {}
    delay_s = message.delay.total_seconds() if isinstance(message.delay, timedelta) else message.delay
    return {"TIMER_DELAY_MS": str(math.ceil(delay_s * 1000))}


def _broker_of(handle: str, routes: list[Route]) -> Route:
    """Return the broker that a handle names, the first where it names none of them: it says what is wrong."""
    try:
        parts = base64.urlsafe_b64decode(handle.encode()).decode().split(" ")
    except ValueError:
        parts = []
    return next((route for route in routes if route.broker_name in parts[2:3]), routes[0])


def _spread(pause_s: float) -> float:
    """Return half the pause or more: many producers do not come back all at once."""
    return pause_s * (0.5 + random.random() / 2)  # noqa: S311 - guards nothing


def _choose(routes: list[Route], queue_id: int | None, turn: int) -> tuple[Route, int]:
    """Return the broker and queue of a message: the wanted queue, or the next of all."""
    if queue_id is not None:
        return routes[turn % len(routes)], queue_id
    queues = [(route, number) for route in routes for number in range(route.write_queues)]
    return queues[turn % len(queues)]


def _result_of(response: Command) -> SendResult:
    if response.code not in SEND_STORED_CODES:
        raise response_error(response.code, response.remark)
    ext = response.ext
    return SendResult(
        msg_id=ext.get("msgId", ""),
        key=ext.get("transactionId", ""),
        queue_id=int(ext.get("queueId", "0")),
        queue_offset=int(ext.get("queueOffset", "0")),
        is_flushed=response.code == ResponseCode.SUCCESS,
        recall_handle=ext.get("recallHandle", ""),
    )
