"""Takes messages of topics and light queues for a time, and says of each when it is done (POP)."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import ssl
import time
from typing import Literal

from lmq.arguments import check_count, check_is, check_seconds, check_start
from lmq.errors import NotFoundError, response_error
from lmq.member import Member
from lmq.message import Message
from lmq.queue_access import RETRIED, WAIT_MARGIN_S, read_messages
from lmq.queues import MessageQueue
from lmq.receipts import Receipt, add_receipts, parse_receipt
from lmq.remoting.commands import Command
from lmq.remoting.request_codes import RequestCode
from lmq.remoting.response_codes import ResponseCode
from lmq.subscription import ALL, Subscription, make_subscription

ALL_QUEUES = -1
MISSING_S = 0.5  # until a topic is looked for again; chosen: somebody has just made it
MIN_MODE, MAX_MODE = "0", "1"  # where a group begins
NOTHING = frozenset((ResponseCode.PULL_NOT_FOUND, ResponseCode.POLLING_FULL, ResponseCode.POLLING_TIMEOUT))


class SimpleConsumer(Member):
    """Takes messages one by one or many. Use it as an async context manager, or call `start` and `stop`.

        async with SimpleConsumer("127.0.0.1:9876", "workers") as consumer:
            consumer.subscribe("Orders")
            for message in await consumer.receive(16, invisible_s=30):
                ...
                await consumer.ack(message)

    All of a group take from all queues, so one that hangs holds up nothing but what it has. What is not acknowledged
    within its invisible time comes again, to anyone of the group; `Message.reconsume_times` tells how often it did.

    Args:
        namesrv: The name server's `HOST:PORT`, several with `;` between.
        group: The consumer group.
        consume_from: Where a group begins that never was there: `first` or `last`.
        orderly: A queue gives its next messages when those before are acknowledged.
        timeout_s: How long to wait for each answer.
        client_id: How the broker sees this consumer; made up if not given.
        tls: What connections are secured by: `ssl.create_default_context(cafile=...)`, say; without it, not.
        access_key: The user that requests are sent as; empty: as nobody.
        secret_key: The secret that this user shares with the broker; requests are signed with it, and it is never sent.
    """

    def __init__(
        self,
        namesrv: str,
        group: str,
        *,
        consume_from: Literal["first", "last"] = "last",
        orderly: bool = False,
        timeout_s: float = 3.0,
        client_id: str | None = None,
        tls: ssl.SSLContext | None = None,
        access_key: str = "",
        secret_key: str = "",
    ) -> None:
        super().__init__(
            namesrv,
            group,
            greeting={},
            farewell={"consumerGroup": group},
            timeout_s=timeout_s,
            client_id=client_id,
            tls=tls,
            access_key=access_key,
            secret_key=secret_key,
        )
        check_start("consume_from", consume_from, ("first", "last"))
        self._mode = MIN_MODE if consume_from == "first" else MAX_MODE
        self._orderly = orderly
        self._subscriptions: dict[str, Subscription] = {}
        self._turn = itertools.count()

    def subscribe(self, topic: str, tags: str = ALL, *, sql: str = "") -> None:
        """Take from a topic, or a light queue (`mqtt_queue`, `amqp_queue`).

        Args:
            topic: The topic, or the light queue's name.
            tags: Only messages with one of these tags: `a || b`; `*` for all. Others are done for the group.
            sql: Only messages that this expression fits, in place of `tags`.
        """
        self._subscriptions[topic] = make_subscription(topic, tags, sql)

    def unsubscribe(self, topic: str) -> None:
        """Take from a topic no more."""
        self._subscriptions.pop(topic, None)

    async def receive(self, max_count: int = 1, *, invisible_s: float = 30.0, wait_s: float = 15.0) -> list[Message]:
        """Return up to `max_count` messages, of one topic on one broker; nobody else of the group has them meanwhile.

        Args:
            max_count: No more than so many; brokers give 32 at most.
            invisible_s: How long they are this consumer's; one that is not acknowledged by then comes again.
            wait_s: How long to wait for a message when there is none.

        Raises:
            NotFoundError: None of the topics exists by then, or nothing is subscribed to.
            SdkError: A broker refused, or could not be asked.
        """
        check_count("max_count", max_count, 1)
        check_seconds("invisible_s", invisible_s)
        check_seconds("wait_s", wait_s, may_be_none=True)
        until_s = time.monotonic() + wait_s
        while True:
            try:
                queues = await self._queues()
            except NotFoundError:
                left_s = until_s - time.monotonic()
                if left_s <= 0 or not self._subscriptions:
                    raise
                await asyncio.sleep(min(left_s, MISSING_S))
                continue
            turn = next(self._turn) % len(queues)
            in_turn = queues[turn:] + queues[:turn]
            alone = in_turn[0] if len(in_turn) == 1 else None
            for queue in in_turn:
                left_s = max(until_s - time.monotonic(), 0.0) if queue is alone else 0.0
                messages = await self._pop(queue, max_count, invisible_s, left_s)
                if messages:
                    return messages
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                return []
            if alone is None:
                await self._wait_for_any(queues, left_s)

    async def ack(self, message: Message) -> None:
        """Say that a message is done: it does not come again. One whose time was over may come again all the same."""
        await self._settle(RequestCode.ACK_MESSAGE, message, {})

    async def change_invisible(self, message: Message, invisible_s: float) -> Message:
        """Have a message for so long from now on; return it with the receipt that is good from now on."""
        check_seconds("invisible_s", invisible_s)
        invisible = {"invisibleTime": str(round(invisible_s * 1000))}
        response = await self._settle(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, message, invisible)
        old = parse_receipt(message.receipt)
        pop_ms, invisible_ms, revive = (int(response.ext[name]) for name in ("popTime", "invisibleTime", "reviveQid"))
        new = Receipt(old.queue_offset, pop_ms, invisible_ms, revive, *old[4:])
        return dataclasses.replace(message, receipt=new.text)

    async def _queues(self) -> list[MessageQueue]:
        """Return each topic on each of its brokers, as one queue."""
        found: list[MessageQueue] = []
        missing: NotFoundError | None = None
        for topic in self._subscriptions:
            try:
                routes = await self._routes.find(topic)
            except NotFoundError as error:
                missing = error
                continue
            found += [MessageQueue(topic, route.broker_name, ALL_QUEUES) for route in routes]
        if not found:
            raise missing or NotFoundError(ResponseCode.SUBSCRIPTION_NOT_EXIST, "nothing is subscribed to")
        return found

    async def _pop(self, queue: MessageQueue, max_count: int, invisible_s: float, wait_s: float) -> list[Message]:
        wanted = self._subscriptions[queue.topic]
        ext = {
            "maxMsgNums": str(max_count),
            "invisibleTime": str(round(invisible_s * 1000)),
            "initMode": self._mode,
            "expType": wanted.kind,
            "exp": wanted.expression,
        }
        response = await self._ask(RequestCode.POP_MESSAGE, queue, ext, wait_s)
        if response.code in NOTHING:
            return []
        if response.code != ResponseCode.SUCCESS:
            raise response_error(response.code, response.remark)
        messages = []
        for message in add_receipts(read_messages(response, queue), response.ext):
            if wanted.wants(message):
                messages.append(message)
            else:
                await self.ack(message)
        return messages

    async def _wait_for_any(self, queues: list[MessageQueue], wait_s: float) -> None:
        """Wait until one of the queues may have a message; none is taken, so those that wait in vain lose nothing."""
        waiting = [asyncio.create_task(self._ask(RequestCode.NOTIFICATION, queue, {}, wait_s)) for queue in queues]
        try:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        if any(isinstance(task.exception(), RETRIED) for task in done):
            await asyncio.sleep(min(wait_s, 1.0))

    async def _ask(self, code: int, queue: MessageQueue, ext: dict[str, str], wait_s: float) -> Command:
        """Ask for messages of a queue, or whether there are any; the broker waits for so long."""
        asked = {
            "consumerGroup": self.group,
            "topic": queue.topic,
            "queueId": str(queue.queue_id),
            "pollTime": str(round(wait_s * 1000)),
            "bornTime": str(time.time_ns() // 1_000_000),
            "order": "true" if self._orderly else "false",
            "bname": queue.broker_name,
        }
        client = await self._routes.broker_of(queue)
        return await client.request(Command(code, ext=asked | ext), self._timeout_s + wait_s + WAIT_MARGIN_S)

    async def _settle(self, code: int, message: Message, ext: dict[str, str]) -> Command:
        """Say what becomes of a message."""
        check_is("message", message, Message)
        receipt = parse_receipt(message.receipt)
        where = MessageQueue(message.queue, receipt.broker_name, receipt.queue_id)
        named = {
            "consumerGroup": self.group,
            "topic": receipt.topic(message.queue, self.group),
            "queueId": str(receipt.queue_id),
            "extraInfo": message.receipt,
            "offset": str(receipt.queue_offset),
            "bname": receipt.broker_name,
        }
        client = await self._routes.broker_of(where)
        response = await client.request(Command(code, ext=named | ext))
        if response.code != ResponseCode.SUCCESS:
            raise response_error(response.code, response.remark)
        return response
