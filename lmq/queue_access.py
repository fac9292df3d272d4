"""What a consumer group asks of single queues: messages from an offset on, and offsets."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from lmq.errors import (
    BusyError,
    ConnectFailedError,
    ConnectionLostError,
    RequestTimeoutError,
    SdkError,
    response_error,
)
from lmq.message import Message, PullResult, message_of
from lmq.queues import LIGHT_PREFIX, MessageQueue
from lmq.remoting.commands import Command
from lmq.remoting.errors import RecordError
from lmq.remoting.message_codec import decode_records
from lmq.remoting.request_codes import RequestCode
from lmq.remoting.response_codes import ResponseCode
from lmq.routes import Routes
from lmq.subscription import Subscription

FLAG_SUSPEND = 0x2
FLAG_SUBSCRIPTION = 0x4
WAIT_MARGIN_S = 5.0  # a held pull is answered this much later than asked, at most
PULL_CODES = frozenset(
    (
        ResponseCode.SUCCESS,
        ResponseCode.PULL_NOT_FOUND,
        ResponseCode.PULL_RETRY_IMMEDIATELY,
        ResponseCode.PULL_OFFSET_MOVED,
    )
)
RETRIED = (ConnectFailedError, ConnectionLostError, RequestTimeoutError, BusyError)
"""What a consumer that goes on for ever waits out."""
RETRY_FIRST_S = 0.05  # as in `lmq.client`
RETRY_MAX_S = 5.0  # as in `lmq.client`: how late a consumer notes that a broker is back

Start = Literal["first", "last", "committed"] | int | datetime


def pause_after(failures: int) -> float:
    """Return how long to wait after so many failures in a row."""
    longer_s: float = RETRY_FIRST_S * 2 ** min(failures, 10)
    return min(longer_s, RETRY_MAX_S)


class QueueAccess:
    """Asks the brokers of queues on behalf of a group.

    Args:
        routes: Where queues are.
        group: The group.
        timeout_s: How long to wait for each answer.
    """

    def __init__(self, routes: Routes, group: str, timeout_s: float) -> None:
        self._routes = routes
        self._group = group
        self._timeout_s = timeout_s

    async def pull(
        self, queue: MessageQueue, offset: int, max_count: int, wait_s: float, wanted: Subscription
    ) -> PullResult:
        """Return up to `max_count` messages from `offset` on; the broker waits up to `wait_s` where there is none."""
        sys_flag = FLAG_SUBSCRIPTION | (FLAG_SUSPEND if wait_s > 0 else 0)
        ext = {
            "consumerGroup": self._group,
            "queueOffset": str(offset),
            "maxMsgNums": str(max_count),
            "sysFlag": str(sys_flag),
            "commitOffset": "0",
            "suspendTimeoutMillis": str(int(wait_s * 1000)),
            "subscription": wanted.expression,
            "subVersion": str(wanted.version),
            "expressionType": wanted.kind,
        }
        limit_s = self._timeout_s + (wait_s + WAIT_MARGIN_S if wait_s > 0 else 0)
        response = await self._ask(RequestCode.PULL_MESSAGE, queue, ext, limit_s)
        if response.code not in PULL_CODES:
            raise response_error(response.code, response.remark)
        said = response.ext
        return PullResult(
            messages=read_messages(response, queue, offset) if response.code == ResponseCode.SUCCESS else [],
            next_offset=int(said.get("nextBeginOffset", offset)),
            min_offset=int(said.get("minOffset", "0")),
            max_offset=int(said.get("maxOffset", "0")),
            is_moved=response.code == ResponseCode.PULL_OFFSET_MOVED,
        )

    async def start_of(self, queue: MessageQueue, from_: Start, otherwise: Start = "first") -> int:
        """Return the offset that `from_` means; `committed` is `otherwise` where the group never committed one."""
        if from_ == "committed":
            committed = await self.committed(queue)
            return committed if committed is not None else await self.start_of(queue, otherwise)
        if isinstance(from_, datetime):
            return await self.search_offset(queue, int(from_.timestamp() * 1000))
        if isinstance(from_, int):
            return from_
        return await (self.max_offset(queue) if from_ == "last" else self.min_offset(queue))

    async def committed(self, queue: MessageQueue) -> int | None:
        """Return the offset that the group goes on at, or None where it never committed one."""
        ext = {"consumerGroup": self._group, "setZeroIfNotFound": "false"}
        response = await self._ask(RequestCode.QUERY_CONSUMER_OFFSET, queue, ext)
        return None if response.code == ResponseCode.QUERY_NOT_FOUND else _offset_of(response)

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        """Set the offset that the group goes on at."""
        ext = {"consumerGroup": self._group, "commitOffset": str(offset)}
        response = await self._ask(RequestCode.UPDATE_CONSUMER_OFFSET, queue, ext)
        if response.code != ResponseCode.SUCCESS:
            raise response_error(response.code, response.remark)

    async def min_offset(self, queue: MessageQueue) -> int:
        """Return the number of the first message that is kept."""
        return _offset_of(await self._ask(RequestCode.GET_MIN_OFFSET, queue, {}))

    async def max_offset(self, queue: MessageQueue) -> int:
        """Return the number that the next message will have."""
        return _offset_of(await self._ask(RequestCode.GET_MAX_OFFSET, queue, {}))

    async def search_offset(self, queue: MessageQueue, at_ms: int) -> int:
        """Return the number of the first message that was stored at `at_ms` (since 1970) or later."""
        return _offset_of(await self._ask(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, queue, {"timestamp": str(at_ms)}))

    async def _ask(
        self, code: int, queue: MessageQueue, ext: dict[str, str], timeout_s: float | None = None
    ) -> Command:
        """Ask the queue's broker; once more where the connection was lost, since asking changes nothing."""
        where = {"topic": queue.topic, "queueId": str(queue.queue_id), "bname": queue.broker_name}
        for is_last in (False, True):
            client = await self._routes.broker_of(queue)
            try:
                return await client.request(Command(code, ext=where | ext), timeout_s)
            except (ConnectionLostError, ConnectFailedError) as error:
                self._routes.forget(queue.topic)
                if is_last or isinstance(error, ConnectFailedError):
                    raise
        raise AssertionError


def read_messages(response: Command, queue: MessageQueue, offset: int = 0) -> list[Message]:
    """Return the messages in an answer; one that does not tell its number has it from its place, after `offset`.

    Args:
        response: The answer, whose body is records.
        queue: The queue that was asked, or the topic with a queue less than 0: all of them.
        offset: The first number that was asked for.

    Raises:
        SdkError: It cannot be read.
    """
    light = queue.topic.encode() if queue.topic.startswith(LIGHT_PREFIX) else None
    messages: list[Message] = []
    try:
        for index, record in enumerate(decode_records(bytes(response.body))):
            own = record.queue_offset if light is None else record.light_offset(light)
            number = max(queue.queue_id, 0) if light is not None or queue.queue_id >= 0 else record.queue_id
            from_queue = queue._replace(queue_id=number)
            messages.append(message_of(record, from_queue, offset + index if own is None else own))
    except RecordError as error:
        raise SdkError(f"the broker's answer cannot be read: {error}") from error
    return messages


def _offset_of(response: Command) -> int:
    if response.code != ResponseCode.SUCCESS:
        raise response_error(response.code, response.remark)
    return int(response.ext.get("offset", "0"))
