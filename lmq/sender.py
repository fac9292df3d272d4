"""How a message is sent: to which queue, and again where that is called for."""

from __future__ import annotations

import asyncio
import random
import ssl
import time
import zlib
from dataclasses import dataclass

from lmq.arguments import check_count, check_takes
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
from lmq.remoting.message_codec import SYS_COMPRESSED
from lmq.remoting.request_codes import RequestCode
from lmq.remoting.response_codes import SEND_STORED_CODES, ResponseCode
from lmq.replies import Replies
from lmq.routes import NEW_TOPIC_QUEUES, TEMPLATE_TOPIC

RETRIED = (ConnectFailedError, ConnectionLostError, RequestTimeoutError)
RETRY_FIRST_S = 0.05  # as in `lmq.client`
COMPRESS_LEVEL = 5  # as Java's client has it
BUSY_MAX_S = 1.0  # between two tries; chosen: how late a producer notes that a broker has room
FAULT_CODES = frozenset((ResponseCode.SYSTEM_ERROR, ResponseCode.SYSTEM_BUSY, ResponseCode.SERVICE_NOT_AVAILABLE))
ELSEWHERE_CODES = frozenset((1, 16, 17, 204, 205))  # refusals that another broker may not share


@dataclass(slots=True)
class Sending:
    """A message that is being sent."""

    message: OutMessage
    properties: str  # made once, so that a repeated send carries the same key
    body: bytes
    sys_flag: int = 0
    is_batch: bool = False
    broker_name: str = ""  # of the last try
    client: Client | None = None
    answer: asyncio.Future[Command] | None = None  # of a try that is on its way
    error: SdkError | None = None  # what a try could not even be started for
    started_s: float = 0.0
    has_other: bool = False  # broker that it may go to

    @property
    def is_started(self) -> bool:
        """Whether a try is on its way, or failed at once."""
        return self.answer is not None or self.error is not None


class Sender(Member):
    """A member of a producer group, with all that a send needs; see `Producer`."""

    def __init__(
        self,
        namesrv: str,
        group: str = "SDK_PRODUCER",
        *,
        timeout_s: float = 3.0,
        retries: int = 2,
        selector: QueueSelector | None = None,
        compress_over: int | None = None,
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
        check_count("retries", retries, 0)
        if compress_over is not None:
            check_count("compress_over", compress_over, 0)
        if selector is not None:
            check_takes("selector", selector, "queues", "message")
        self._retries = retries
        self._compress_over = compress_over
        self._choice = QueueChoice(selector)
        self._keys = KeyMaker()
        self._soon: set[asyncio.Task[SendResult]] = set()
        self._replies = Replies(self.client_id)
        self._answerers[RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT] = self._replies.take

    def _sending(self, message: OutMessage) -> Sending:
        properties = encode_properties(message, self._keys.make())
        packed = self._pack(message.body)
        return Sending(message, properties, packed or message.body, SYS_COMPRESSED if packed else 0)

    def _pack(self, body: bytes) -> bytes:
        """Return the body compressed, nothing where that is not wanted or makes it no smaller."""
        if self._compress_over is None or len(body) < self._compress_over:
            return b""
        packed = zlib.compress(body, COMPRESS_LEVEL)
        return packed if len(packed) < len(body) else b""

    async def _send(self, sending: Sending) -> SendResult:
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

    async def _try(self, sending: Sending) -> SendResult:
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

    async def _start(self, sending: Sending) -> None:
        """Send the message, and note where its answer comes, or what was in the way."""
        try:
            sending.client, command = await self._prepare(sending)
            sending.started_s = asyncio.get_running_loop().time()
            sending.answer = await sending.client.start_request(command)
        except SdkError as error:
            if isinstance(error, RETRIED):
                self._choice.note(sending.broker_name, FAULT_S)
            sending.error = error

    async def _prepare(self, sending: Sending) -> tuple[Client, Command]:
        """Choose where the message goes, not to the broker it was sent to before if there is another."""
        message = sending.message
        routes = await self._routes.find_for_send(message.topic)
        route, queue_id = self._choice.choose(routes, message, sending.broker_name)
        sending.broker_name = route.broker_name
        sending.has_other = len(routes) > 1 and not message.sharding_key
        code = RequestCode.SEND_BATCH_MESSAGE if sending.is_batch else RequestCode.SEND_MESSAGE_V2
        return self._routes.client_of(route), self._command(code, sending, queue_id)

    def _command(self, code: int, sending: Sending, queue_id: int) -> Command:
        """Return the request that sends a message to a queue of `sending.broker_name`."""
        message = sending.message
        ext = {
            "a": self.group,
            "b": message.topic,
            "c": TEMPLATE_TOPIC,
            "d": str(NEW_TOPIC_QUEUES),
            "e": str(queue_id),
            "f": str(sending.sys_flag),
            "g": str(time.time_ns() // 1_000_000),
            "h": str(message.flag),
            "i": sending.properties,
            "j": "0",
            "k": "false",
            "l": "0",
            "m": "true" if sending.is_batch else "false",
            "n": sending.broker_name,
        }
        return Command(code, ext=ext, body=sending.body)


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
