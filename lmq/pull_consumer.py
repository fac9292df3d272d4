"""Read topics' queues and light queues from any offset, and keep how far a group is."""

from __future__ import annotations

import asyncio
import itertools
import logging
import ssl
from collections.abc import AsyncIterator
from typing import Literal

from lmq.errors import (
    BusyError,
    ConnectFailedError,
    ConnectionLostError,
    RequestTimeoutError,
    SdkError,
    response_error,
)
from lmq.member import Member
from lmq.message import Message, PullResult, message_of
from lmq.queues import LIGHT_PREFIX
from lmq.remoting.commands import Command
from lmq.remoting.errors import RecordError
from lmq.remoting.message_codec import decode_records
from lmq.remoting.request_codes import RequestCode
from lmq.remoting.response_codes import ResponseCode

LOGGER = logging.getLogger(__name__)

FLAG_SUSPEND = 0x2
FLAG_SUBSCRIPTION = 0x4
WAIT_MARGIN_S = 5.0  # a held pull is answered this much later than asked, at most
RETRIED = (ConnectFailedError, ConnectionLostError, RequestTimeoutError, BusyError)
RETRY_FIRST_S = 0.05
RETRY_MAX_S = 5.0
PULL_CODES = frozenset(
    (
        ResponseCode.SUCCESS,
        ResponseCode.PULL_NOT_FOUND,
        ResponseCode.PULL_RETRY_IMMEDIATELY,
        ResponseCode.PULL_OFFSET_MOVED,
    )
)

Start = Literal["first", "last", "committed"] | int


class PullConsumer(Member):
    """Reads queues. Use it as an async context manager, or call `start` and `stop`.

    A queue is a topic and the number of one of its queues, or a light queue's name (`%LMQ%…`, see `mqtt_queue` and
    `amqp_queue`), whose number is 0.

    Args:
        namesrv: The name server's `HOST:PORT`, several with `;` between.
        group: The consumer group that offsets are committed for.
        timeout_s: How long to wait for each answer.
        client_id: How the broker sees this consumer; made up if not given.
        tls: What connections are secured by: `ssl.create_default_context(cafile=...)`, say; without it, not.
        access_key: The user that requests are sent as; empty: as nobody.
        secret_key: The secret that this user shares with the broker; requests are signed with it, and it is never sent.
    """

    def __init__(
        self,
        namesrv: str,
        group: str = "SDK_CONSUMER",
        *,
        timeout_s: float = 3.0,
        client_id: str | None = None,
        tls: ssl.SSLContext | None = None,
        access_key: str = "",
        secret_key: str = "",
    ) -> None:
        described = {
            "groupName": group,
            "consumeType": "CONSUME_ACTIVELY",
            "messageModel": "CLUSTERING",
            "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
            "unitMode": False,
            "subscriptionDataSet": [],
        }
        super().__init__(
            namesrv,
            group,
            greeting={"consumerDataSet": [described]},
            farewell={"consumerGroup": group},
            timeout_s=timeout_s,
            client_id=client_id,
            tls=tls,
            access_key=access_key,
            secret_key=secret_key,
        )

    async def pull(
        self,
        queue: str,
        offset: int,
        max_count: int = 32,
        wait_s: float = 0.0,
        *,
        queue_id: int = 0,
        tags: str = "*",
    ) -> PullResult:
        """Return up to `max_count` messages from `offset` on.

        Args:
            queue: A topic, or a light queue.
            offset: The first message's number in the queue.
            max_count: No more than so many.
            wait_s: How long the broker may wait for a message when there is none.
            queue_id: The topic's queue.
            tags: Only messages with one of these tags: `a || b`; `*` for all.

        Raises:
            SdkError: The broker refused, or could not be asked.
        """
        sys_flag = FLAG_SUBSCRIPTION | (FLAG_SUSPEND if wait_s > 0 else 0)
        ext = {
            "consumerGroup": self.group,
            "topic": queue,
            "queueId": str(queue_id),
            "queueOffset": str(offset),
            "maxMsgNums": str(max_count),
            "sysFlag": str(sys_flag),
            "commitOffset": "0",
            "suspendTimeoutMillis": str(int(wait_s * 1000)),
            "subscription": tags,
            "subVersion": "0",
            "expressionType": "TAG",
        }
        limit_s = self._timeout_s + (wait_s + WAIT_MARGIN_S if wait_s > 0 else 0)
        response = await self._ask(RequestCode.PULL_MESSAGE, queue, ext, limit_s)
        if response.code not in PULL_CODES:
            raise response_error(response.code, response.remark)
        return self._result_of(response, queue, queue_id, offset)

    def _result_of(self, response: Command, queue: str, queue_id: int, offset: int) -> PullResult:
        is_light = queue.startswith(LIGHT_PREFIX)
        messages: list[Message] = []
        if response.code == ResponseCode.SUCCESS:
            try:
                for index, record in enumerate(decode_records(bytes(response.body))):
                    own = record.light_offset(queue.encode()) if is_light else record.queue_offset
                    messages.append(message_of(record, queue, queue_id, offset + index if own is None else own))
            except RecordError as error:
                raise SdkError(f"the broker's answer cannot be read: {error}") from error
        ext = response.ext
        return PullResult(
            messages=messages,
            next_offset=int(ext.get("nextBeginOffset", offset)),
            min_offset=int(ext.get("minOffset", "0")),
            max_offset=int(ext.get("maxOffset", "0")),
            is_moved=response.code == ResponseCode.PULL_OFFSET_MOVED,
        )

    async def messages(
        self,
        queue: str,
        *,
        from_: Start = "committed",
        queue_id: int = 0,
        tags: str = "*",
        max_count: int = 32,
        wait_s: float = 15.0,
        commit: bool = False,
    ) -> AsyncIterator[Message]:
        """Yield a queue's messages, for ever, also across lost connections.

        Args:
            queue: A topic, or a light queue.
            from_: An offset, `first`, `last` (what comes from now on), or `committed` (the group's offset, `first` if
                there is none).
            queue_id: The topic's queue.
            tags: As with `pull`.
            max_count: How many are asked for at a time.
            wait_s: How long each request may wait at the broker.
            commit: Commit the group's offset each time that the caller is done with what one request gave.
        """
        offset = committed = await self._start_of(queue, queue_id, from_)
        failures = 0
        while True:
            try:
                if commit and committed != offset:
                    await self.commit(queue, offset, queue_id=queue_id)
                    committed = offset
                result = await self.pull(queue, offset, max_count, wait_s, queue_id=queue_id, tags=tags)
                failures = 0
            except RETRIED as error:
                failures += 1
                LOGGER.debug("pull failed queue=%s cause=%s", queue, error)
                self._routes.forget(queue)
                await asyncio.sleep(min(RETRY_FIRST_S * 2 ** min(failures, 10), RETRY_MAX_S))
                continue
            if result.is_moved:
                LOGGER.warning("offset moved queue=%s from=%d to=%d", queue, offset, result.next_offset)
            for message in result.messages:
                yield message
            offset = result.next_offset

    async def _start_of(self, queue: str, queue_id: int, from_: Start) -> int:
        if isinstance(from_, int):
            return from_
        if from_ == "committed":
            committed = await self.committed(queue, queue_id=queue_id)
            if committed is not None:
                return committed
        if from_ == "last":
            return await self.max_offset(queue, queue_id=queue_id)
        return await self.min_offset(queue, queue_id=queue_id)

    # Offsets

    async def committed(self, queue: str, *, queue_id: int = 0) -> int | None:
        """Return the offset that the group goes on at, or None where it never committed one."""
        ext = self._queue_ext(queue, queue_id) | {"consumerGroup": self.group, "setZeroIfNotFound": "false"}
        response = await self._ask(RequestCode.QUERY_CONSUMER_OFFSET, queue, ext)
        if response.code == ResponseCode.QUERY_NOT_FOUND:
            return None
        return _offset_of(response)

    async def commit(self, queue: str, offset: int, *, queue_id: int = 0) -> None:
        """Set the offset that the group goes on at: the number of the next message it has not seen."""
        ext = self._queue_ext(queue, queue_id) | {"consumerGroup": self.group, "commitOffset": str(offset)}
        response = await self._ask(RequestCode.UPDATE_CONSUMER_OFFSET, queue, ext)
        if response.code != ResponseCode.SUCCESS:
            raise response_error(response.code, response.remark)

    async def min_offset(self, queue: str, *, queue_id: int = 0) -> int:
        """Return the number of the first message that is kept."""
        return _offset_of(await self._ask(RequestCode.GET_MIN_OFFSET, queue, self._queue_ext(queue, queue_id)))

    async def max_offset(self, queue: str, *, queue_id: int = 0) -> int:
        """Return the number that the next message will have."""
        return _offset_of(await self._ask(RequestCode.GET_MAX_OFFSET, queue, self._queue_ext(queue, queue_id)))

    async def search_offset(self, queue: str, at_ms: int, *, queue_id: int = 0) -> int:
        """Return the number of the first message that was stored at `at_ms` (since 1970) or later."""
        ext = self._queue_ext(queue, queue_id) | {"timestamp": str(at_ms)}
        return _offset_of(await self._ask(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, queue, ext))

    def _queue_ext(self, queue: str, queue_id: int) -> dict[str, str]:
        return {"topic": queue, "queueId": str(queue_id)}

    async def _ask(self, code: int, queue: str, ext: dict[str, str], timeout_s: float | None = None) -> Command:
        """Ask the queue's broker; once more where the connection was lost, since asking changes nothing."""
        for attempt in itertools.count():
            routes = await self._routes.find(queue)
            client = self._routes.client_of(routes[0])
            try:
                return await client.request(Command(code, ext=dict(ext)), timeout_s)
            except ConnectionLostError:
                self._routes.forget(queue)
                if attempt:
                    raise
        raise AssertionError


def _offset_of(response: Command) -> int:
    if response.code != ResponseCode.SUCCESS:
        raise response_error(response.code, response.remark)
    return int(response.ext.get("offset", "0"))
