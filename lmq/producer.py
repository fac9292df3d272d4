"""Send messages to topics, to light queues, and into the topic space that MQTT and AMQP share."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lmq.arguments import check_count, check_is, check_seconds
from lmq.errors import RequestTimeoutError, SdkError, response_error
from lmq.message import Message, SendResult
from lmq.out_message import OutMessage, join_batch
from lmq.remoting.commands import Command
from lmq.remoting.request_codes import RequestCode
from lmq.remoting.response_codes import ResponseCode
from lmq.replies import properties_of_reply, topic_of_reply
from lmq.routes import Route
from lmq.sender import Sender, Sending

LOGGER = logging.getLogger(__name__)

PARENT_TOPIC = "LMQ_PARENT"


@dataclass(slots=True)
class _Window:
    """What the messages of one `send_many` share."""

    room: asyncio.Semaphore  # for those on their way
    is_reached: bool = True  # the broker, when it was last tried


class Producer(Sender):
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
        compress_over: Bodies of so many bytes and more are compressed by zlib where that makes them smaller, on the
            loop's own thread; Java's client does so from 4,096 on. Consumers of all clients inflate them, and so does
            the gateway for MQTT and AMQP; they stay compressed in the log, and for programs that read the log itself.
        client_id: How the broker and readers of other protocols see this producer; made up if not given.
        tls: What connections are secured by: `ssl.create_default_context(cafile=...)`, say; without it, not.
        access_key: The user that requests are sent as; empty: as nobody.
        secret_key: The secret that this user shares with the broker; requests are signed with it, and it is never sent.
    """

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
            TypeError: The body is not made of bytes, or what is text is something else.
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
        check_is("handle", handle, str)
        route = _broker_of(handle, await self._routes.find(topic))
        ext = {"producerGroup": self.group, "topic": topic, "recallHandle": handle, "bname": route.broker_name}
        response = await self._routes.client_of(route).request(Command(RequestCode.RECALL_MESSAGE, ext=ext))
        if response.code != ResponseCode.SUCCESS:
            raise response_error(response.code, response.remark)
        return response.ext.get("msgId", "")

    async def publish(
        self, topic: str, body: bytes, *, properties: Mapping[str, str] | None = None, parent_topic: str = PARENT_TOPIC
    ) -> SendResult:
        """Publish to a topic of the topic space, in MQTT's form: MQTT and AMQP subscribers get it.

        Raises:
            ValueError: The topic is empty.
            TypeError, SdkError: As of `send`.
        """
        if not topic:
            raise ValueError("the topic is empty; it has at least one character, as in site/1/temp")
        return await self.send(parent_topic, body, properties={**(properties or {}), "LMQ_TOPIC": topic}, queue_id=0)

    async def send_many(
        self, messages: Iterable[OutMessage], *, in_flight_max: int = 256
    ) -> list[SendResult | SdkError]:
        """Send many messages at once, in their order; return, in the same order, each one's result or error.

        A message that has to be repeated may come after those behind it. Where a broker is not reached, those behind
        the first wait for it together.
        """
        check_count("in_flight_max", in_flight_max, 1)
        window = _Window(asyncio.Semaphore(in_flight_max))
        waiting: list[asyncio.Task[SendResult | SdkError]] = []
        try:
            for message in messages:
                await window.room.acquire()
                sending = self._sending(message)
                if window.is_reached:
                    await self._start(sending)
                    window.is_reached = sending.error is None
                waiting.append(asyncio.create_task(self._finish(sending, window)))
            return list(await asyncio.gather(*waiting))
        except BaseException:  # cancelled, or a message that cannot be sent: no try follows for those before
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            raise

    async def _finish(self, sending: Sending, window: _Window) -> SendResult | SdkError:
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

    def send_soon(self, message: OutMessage) -> asyncio.Task[SendResult]:
        """Send a message without waiting; what is returned gives its result, and `stop` waits for it.

        A failure is logged, also where nobody asks for the result.
        """
        task = asyncio.get_running_loop().create_task(self._send(self._sending(message)))
        self._soon.add(task)
        task.add_done_callback(self._on_sent)
        return task

    def _on_sent(self, task: asyncio.Task[SendResult]) -> None:
        self._soon.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            LOGGER.warning("message was not sent cause=%s", error)

    async def send_batch(self, messages: Sequence[OutMessage]) -> list[SendResult]:
        """Send messages of one topic to one queue in one request: all are stored, side by side, or none.

        Raises:
            ValueError: There is none; they are of several topics or queues; or one is to come later.
            SdkError: As of `send`.
        """
        check_is("messages", messages, Sequence)
        keys = [self._keys.make() for _ in messages]
        joined = join_batch(messages, keys)
        sent = await self._send(Sending(joined, "", joined.body, is_batch=True))
        ids = sent.msg_id.split(",")
        return [
            dataclasses.replace(
                sent, msg_id=ids[i] if i < len(ids) else "", key=keys[i], queue_offset=sent.queue_offset + i
            )
            for i in range(len(messages))
        ]

    async def stop(self) -> None:
        """Wait for what is on its way, say goodbye and close all connections."""
        try:
            await asyncio.gather(*self._soon, return_exceptions=True)
        finally:
            await super().stop()

    # Requests and replies

    async def request(
        self,
        topic: str,
        body: bytes,
        *,
        timeout_s: float = 3.0,
        tags: str = "",
        properties: Mapping[str, str] | None = None,
    ) -> Message:
        """Send a message to the consumers of the topic, and return the reply to it.

        Raises:
            RequestTimeoutError: There is no reply in time.
            SdkError: As of `send`.
        """
        check_seconds("timeout_s", timeout_s)
        said, reply = self._replies.expect(timeout_s)
        try:
            async with asyncio.timeout(timeout_s):
                await self.send(topic, body, tags=tags, properties={**(properties or {}), **said})
                return await reply
        except TimeoutError:
            raise RequestTimeoutError(topic, timeout_s) from None
        finally:
            self._replies.forget(said)

    async def reply(self, request: Message, body: bytes, *, properties: Mapping[str, str] | None = None) -> None:
        """Reply to a message that a consumer got.

        Raises:
            ValueError: Nobody waits for a reply to it.
            ResponseError: The client that asked is gone, or does not take the reply.
            SdkError: The broker could not be asked.
        """
        check_is("request", request, Message)
        said = {**(properties or {}), **properties_of_reply(request)}
        sending = self._sending(OutMessage(topic_of_reply(request), body, properties=said))
        sending.broker_name = request.broker_name
        client = await self._routes.broker_of(request.message_queue)
        response = await client.request(self._command(RequestCode.SEND_REPLY_MESSAGE_V2, sending, 0))
        if response.code != ResponseCode.SUCCESS:
            raise response_error(response.code, response.remark)


def _broker_of(handle: str, routes: list[Route]) -> Route:
    """Return the broker that a handle names, the first where it names none of them: it says what is wrong."""
    try:
        parts = base64.urlsafe_b64decode(handle.encode()).decode().split(" ")
    except ValueError:
        parts = []
    return next((route for route in routes if route.broker_name in parts[2:3]), routes[0])
