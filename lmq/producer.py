"""Send messages to topics, to light queues, and into the topic space that MQTT and AMQP share."""

from __future__ import annotations

import asyncio
import base64
import random
import ssl
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lmq.client import Client
from lmq.errors import (
    BusyError,
    ConnectFailedError,
    ConnectionLostError,
    RequestTimeoutError,
    ResponseError,
    SdkError,
    response_error,
)
from lmq.member import Member
from lmq.message import SendResult
from lmq.out_message import KeyMaker, OutMessage, encode_properties
from lmq.queue_choice import FAULT_S, QueueChoice, QueueSelector
from lmq.remoting.commands import Command
from lmq.remoting.request_codes import RequestCode
from lmq.remoting.response_codes import SEND_STORED_CODES, ResponseCode
from lmq.routes import TEMPLATE_TOPIC, Route

PARENT_TOPIC = "LMQ_PARENT"
RETRIED = (ConnectFailedError, ConnectionLostError, RequestTimeoutError)
RETRY_FIRST_S = 0.05
BUSY_MAX_S = 1.0  # between two tries
FAULT_CODES = frozenset((ResponseCode.SYSTEM_ERROR, ResponseCode.SYSTEM_BUSY, ResponseCode.SERVICE_NOT_AVAILABLE))
ELSEWHERE_CODES = frozenset((1, 16, 17, 204, 205))  # refusals that another broker may not share


@dataclass(slots=True)
class _Sending:
    """A message that is being sent."""

    message: OutMessage
    properties: str  # made once, so that a repeated send carries the same key
    sys_flag: str = "0"
    broker_name: str = ""  # of the last try
    client: Client | None = None
    answer: asyncio.Future[Command] | None = None  # of a try that is on its way
    error: SdkError | None = None  # what a try could not even be started for
    started_s: float = 0.0
    has_other: bool = False  # broker that it may go to

    @property
    def is_started(self) -> bool:
        return self.answer is not None or self.error is not None


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
        retries: How often a send is repeated after a lost connection or a timeout, or a refusal that holds for one
            broker, on another if there is one. A repeated message may be stored twice; both carry the same key.
        selector: Chooses the queue of a message that names neither its queue nor a sharding key, in place of going
            round them all.
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
        selector: QueueSelector | None = None,
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
        self._choice = QueueChoice(selector)
        self._keys = KeyMaker()

    async def send(
        self,
        topic: str,
        body: bytes,
        *,
        tags: str = "",
        keys: Sequence[str] | str = (),
        properties: Mapping[str, str] | None = None,
        queue_id: int | None = None,
        dispatch: Sequence[str] | str = (),
        flag: int = 0,
        deliver_at: datetime | None = None,
        delay: timedelta | float | None = None,
        delay_level: int = 0,
        sharding_key: str = "",
    ) -> SendResult:
        """Send one message and return where it was stored.

        Args:
            topic: The topic; a name `%LMQ%…` is a light queue.
            body: The message.
            tags: What tag filters look at.
            keys: Words to find the message by; a str is one.
            properties: Further properties; names and values without the characters U+0001 and U+0002.
            queue_id: The topic's queue; the producer goes round all of them, on all brokers, if it is not given.
            dispatch: Light queues that the message is put into as well; a str is one.
            flag: A number of the sender's own.
            deliver_at: When readers are to get it, by the broker's clock; one without a time zone is local time.
            delay: How long after it was stored, or so many seconds, in place of `deliver_at`.
            delay_level: The same by one of RocketMQ's levels, which brokers of all versions know: 1 to 18 for 1 s, 5 s,
                10 s, 30 s, 1 to 10 min by the minute, 20 min, 30 min, 1 h, 2 h.
            sharding_key: Messages with the same one go to the same queue, and are read in the order they were sent in.

        Raises:
            TypeError: The body is a str.
            ValueError: A property cannot be carried, or the moment is said in two ways.
            MessageRefusedError, NoPermissionError, NotFoundError, BusyError: The broker refused.
            SdkError: It could not be asked, or did not answer.
        """
        message = OutMessage(
            topic,
            body,
            tags,
            keys,
            properties or {},
            queue_id,
            dispatch,
            flag,
            deliver_at,
            delay,
            delay_level,
            sharding_key,
        )
        return await self._send(self._sending(message))

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
            sending = self._sending(message)
            if window.is_reached:
                await self._start(sending)
                window.is_reached = sending.error is None
            waiting.append(asyncio.create_task(self._finish(sending, window)))
        return list(await asyncio.gather(*waiting))

    async def _finish(self, sending: _Sending, window: _Window) -> SendResult | SdkError:
        """Wait for the answer of a send that is on its way; send it again where that is called for."""
        try:
            result = await self._send(sending)
        except SdkError as error:
            return error
        else:
            window.is_reached = True
            return result
        finally:
            window.room.release()

    async def send_one_way(self, message: OutMessage) -> None:
        """Send a message without asking whether it was stored."""
        client, command = await self._prepare(self._sending(message))
        await client.send_one_way(command)

    def _sending(self, message: OutMessage) -> _Sending:
        return _Sending(message, encode_properties(message, self._keys.make()))

    async def _send(self, sending: _Sending) -> SendResult:
        """Send a message, and again where that is called for; the first try may be one that was started before.

        That one counts, but the pauses, and the time that a busy broker is given, begin with the next.
        """
        clock = asyncio.get_running_loop().time
        topic = sending.message.topic
        give_up_at_s, pause_s = clock() + self._timeout_s, RETRY_FIRST_S
        attempt = 0
        while True:
            was_started = sending.is_started
            try:
                return await self._try(sending)
            except BusyError:
                if not was_started and clock() + pause_s >= give_up_at_s:
                    raise
                await asyncio.sleep(_spread(pause_s))
                pause_s = min(2 * pause_s, BUSY_MAX_S)
            except RETRIED:
                if attempt >= self._retries:
                    raise
                self._routes.forget(topic)
                if not was_started:
                    await asyncio.sleep(RETRY_FIRST_S * 2**attempt)
                attempt += 1
            except ResponseError as error:
                if error.code == ResponseCode.TOPIC_NOT_EXIST:
                    self._routes.forget(topic)
                if error.code not in ELSEWHERE_CODES or attempt >= self._retries or not sending.has_other:
                    raise
                attempt += 1
            if was_started:
                give_up_at_s, pause_s = clock() + self._timeout_s, RETRY_FIRST_S

    async def _try(self, sending: _Sending) -> SendResult:
        """Return the result of what was started, or else of a send that is started now."""
        if not sending.is_started:
            await self._start(sending)
        client, answer, error = sending.client, sending.answer, sending.error
        sending.answer = sending.error = None
        if client is None or answer is None:
            assert error is not None
            raise error
        try:
            response = await client.wait_for(answer)
        except RETRIED:
            self._choice.note(sending.broker_name, FAULT_S)
            raise
        took_s = asyncio.get_running_loop().time() - sending.started_s
        self._choice.note(sending.broker_name, FAULT_S if response.code in FAULT_CODES else took_s)
        return _result_of(response, sending.broker_name)

    async def _start(self, sending: _Sending) -> None:
        """Send the message, and note where its answer comes, or what was in the way."""
        try:
            sending.client, command = await self._prepare(sending)
            sending.started_s = asyncio.get_running_loop().time()
            sending.answer = await sending.client.start_request(command)
        except SdkError as error:
            if isinstance(error, RETRIED):
                self._choice.note(sending.broker_name, FAULT_S)
            sending.error = error

    async def _prepare(self, sending: _Sending) -> tuple[Client, Command]:
        """Choose where the message goes, not to the broker it was sent to before if there is another."""
        message = sending.message
        routes = await self._routes.find_for_send(message.topic)
        route, queue_id = self._choice.choose(routes, message, sending.broker_name)
        sending.broker_name = route.broker_name
        sending.has_other = len(routes) > 1 and not message.sharding_key
        ext = {
            "a": self.group,
            "b": message.topic,
            "c": TEMPLATE_TOPIC,
            "d": "4",
            "e": str(queue_id),
            "f": sending.sys_flag,
            "g": str(time.time_ns() // 1_000_000),
            "h": str(message.flag),
            "i": sending.properties,
            "j": "0",
            "k": "false",
            "l": "0",
            "m": "false",
            "n": route.broker_name,
        }
        return self._routes.client_of(route), Command(RequestCode.SEND_MESSAGE_V2, ext=ext, body=message.body)


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


def _result_of(response: Command, broker_name: str) -> SendResult:
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
        broker_name=broker_name,
    )
