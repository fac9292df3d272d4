"""Send messages that readers get only if a transaction of the sender's own is committed."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from lmq.arguments import check_async, check_takes
from lmq.client import Client
from lmq.errors import NotFoundError, SdkError, response_error
from lmq.message import Message, SendResult, message_of
from lmq.out_message import OutMessage
from lmq.producer import Producer
from lmq.queue_choice import QueueSelector
from lmq.queues import MessageQueue
from lmq.remoting.commands import Command
from lmq.remoting.errors import RecordError
from lmq.remoting.message_codec import decode_records
from lmq.remoting.request_codes import RequestCode
from lmq.remoting.response_codes import ResponseCode
from lmq.routes import TEMPLATE_TOPIC

LOGGER = logging.getLogger(__name__)

PREPARED_FLAG = 0x4  # sysFlag: a half message
CHECKS_MAX = 1_024  # under way at once; the broker asks again about those that are more
STAY_S = 5.0  # how often a connection that was lost is made again; chosen: a broker that asks waits longer
_PLACE_DIGITS = 16  # at the end of a message id


class TransactionState(IntEnum):
    """How a transaction ended, as END_TRANSACTION says it."""

    COMMIT = 8  # readers get the message
    ROLLBACK = 12  # nobody ever gets it
    UNKNOWN = 0  # the broker asks again later


LocalTransaction = Callable[[SendResult], Awaitable[TransactionState | None]]
"""Does what the message tells of, once it is stored and before anybody gets it; returns how it ended. None: unknown."""
TransactionCheck = Callable[[Message], Awaitable[TransactionState | None]]
"""Looks up how the transaction of a message ended, which may have been another process's. None: it is unknown."""


@dataclass(slots=True, frozen=True)
class TransactionResult:
    """How a transaction went."""

    sent: SendResult  # of the half message; its number is that among half messages
    state: TransactionState
    error: SdkError | TypeError | None = None  # the broker was not told how it ended for this; it will ask


class TransactionProducer(Producer):
    """Sends messages in transactions, and answers the broker's questions about those that it heard no end of.

    A producer that is gone before it ended a transaction leaves the question to the others of its group: so what
    `check` looks at is to be where all of them see it. The producer connects to its brokers at the start, and again
    after a loss.

    Args:
        namesrv: The name server's `HOST:PORT`, several with `;` between.
        group: The producer group, which ends its transactions; no other group has the same name.
        check: Says how a transaction ended. One that raises, or returns no state, is asked again later.
        topics: Whose brokers to connect to at the start; without any, those that make topics.
        timeout_s: As of `Producer`, like the others.
        retries: How often a send is repeated. A half message may so be stored twice: then `check` is asked about the
            one that nobody ended, whose key is the same.
        selector: Chooses queues.
        compress_over: Which bodies are compressed.
        client_id: How the broker sees this producer.
        tls: What connections are secured by.
        access_key: The user that requests are sent as.
        secret_key: The secret that this user shares with the broker.
    """

    def __init__(
        self,
        namesrv: str,
        group: str,
        *,
        check: TransactionCheck,
        topics: Sequence[str] = (),
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
            timeout_s=timeout_s,
            retries=retries,
            selector=selector,
            compress_over=compress_over,
            client_id=client_id,
            tls=tls,
            access_key=access_key,
            secret_key=secret_key,
        )
        check_async("check", check)
        check_takes("check", check, "message")
        self._check = check
        self._topics = list(topics)
        self._checks: set[asyncio.Task[None]] = set()
        self._staying: asyncio.Task[None] | None = None
        self._answerers[RequestCode.CHECK_TRANSACTION_STATE] = self._on_check

    async def start(self) -> None:
        """Connect to the brokers, so that they can ask.

        Raises:
            SdkError: The name server or a broker cannot be reached.
        """
        await super().start()
        for topic in self._topics or [TEMPLATE_TOPIC]:
            with contextlib.suppress(NotFoundError):
                for route in await self._routes.find_for_send(topic):
                    await self._routes.client_of(route).request(self._greet())
        self._staying = asyncio.create_task(self._stay())

    async def stop(self) -> None:
        """Say goodbye, and let checks that are under way go; others of the group are asked then."""
        tasks = [*self._checks, *([self._staying] if self._staying is not None else [])]
        for task in tasks:
            task.cancel()
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            await super().stop()

    async def send_in_transaction(
        self,
        topic: str,
        body: bytes,
        execute: LocalTransaction,
        *,
        tags: str = "",
        keys: Sequence[str] | str = (),
        properties: Mapping[str, str] | None = None,
        queue_id: int | None = None,
        dispatch: Sequence[str] | str = (),
        flag: int = 0,
        sharding_key: str = "",
        ask_after_s: int | None = None,
    ) -> TransactionResult:
        """Store a message that nobody gets, run `execute`, and tell the broker how that ended.

        Args:
            topic: The topic; see `Producer.send` for it and for what follows.
            body: The message.
            execute: The transaction. What it raises is raised here, and the broker asks how it ended; so it does when
                that is unknown. What is returned and is no state counts as unknown, and is the result's error.
            tags: What tag filters look at.
            keys: Words to find the message by.
            properties: Further properties.
            queue_id: The topic's queue.
            dispatch: Light queues that the message is put into as well.
            flag: A number of the sender's own.
            sharding_key: Messages with the same one go to the same queue.
            ask_after_s: For so long the broker does not ask; it has a time of its own, six seconds mostly.

        Raises:
            TypeError, ValueError, SdkError: As of `Producer.send`; `execute` was not run.
        """
        check_async("execute", execute)
        check_takes("execute", execute, "sent")
        own = dict(properties or {}) | {"TRAN_MSG": "true", "PGROUP": self.group}
        if ask_after_s is not None:
            own["CHECK_IMMUNITY_TIME_IN_SECONDS"] = str(ask_after_s)
        message = OutMessage(topic, body, tags, keys, own, queue_id, dispatch, flag, sharding_key=sharding_key)
        sending = self._sending(message)
        sending.sys_flag |= PREPARED_FLAG
        sent = await self._send(sending)
        state, fault = await _read_state("execute", execute(sent))
        if fault is not None:
            LOGGER.error("how a transaction ended is unknown key=%s cause=%s", sent.key, fault)
        if state == TransactionState.UNKNOWN:
            return TransactionResult(sent, state, fault)
        assert sending.client is not None
        ext = self._end_of(sent.key, sent.queue_offset, int(sent.msg_id[-_PLACE_DIGITS:], 16), topic)
        ext |= {"bname": sent.broker_name, "fromTransactionCheck": "false"}
        try:
            await self._end(sending.client, ext, state)
        except SdkError as error:
            LOGGER.info("the broker was not told how a transaction ended key=%s cause=%s", sent.key, error)
            return TransactionResult(sent, state, error)
        return TransactionResult(sent, state)

    def _end_of(self, key: str, queue_offset: int, place: int, topic: str) -> dict[str, str]:
        return {
            "topic": topic,
            "producerGroup": self.group,
            "tranStateTableOffset": str(queue_offset),
            "commitLogOffset": str(place),
            "msgId": key,
            "transactionId": key,
        }

    async def _end(self, client: Client, ext: dict[str, str], state: TransactionState) -> None:
        said = ext | {"commitOrRollback": str(int(state))}
        response = await client.request(Command(RequestCode.END_TRANSACTION, ext=said))
        if response.code != ResponseCode.SUCCESS:
            raise response_error(response.code, response.remark)

    # Questions of the broker

    def _on_check(self, server: str, request: Command) -> Command | None:
        """Have a transaction looked up that a broker asks about; the answer is a request of ours."""
        if len(self._checks) < CHECKS_MAX:
            task = asyncio.get_running_loop().create_task(self._look_up(server, request))
            self._checks.add(task)
            task.add_done_callback(self._checks.discard)
        return None

    async def _look_up(self, server: str, request: Command) -> None:
        client = next((client for client in self._routes.clients() if client.server == server), None)
        try:
            message = _message_of(request)
        except (RecordError, ValueError, StopIteration) as error:
            LOGGER.warning("a broker asks about a transaction that cannot be read server=%s cause=%s", server, error)
            return
        try:
            state, fault = await _read_state("check", self._check(message))
        except Exception:
            LOGGER.exception("the check of a transaction failed, it is asked about again key=%s", message.key)
            return
        if fault is not None:
            LOGGER.error("a transaction is asked about again key=%s cause=%s", message.key, fault)
        if state == TransactionState.UNKNOWN or client is None:
            return
        ext = self._end_of(message.key, message.queue_offset, message.physical_offset, message.topic)
        ext |= {"bname": message.broker_name, "fromTransactionCheck": "true"}
        try:
            await self._end(client, ext, state)
        except SdkError as error:
            LOGGER.info("the broker was not told how a transaction ended key=%s cause=%s", message.key, error)

    async def _stay(self) -> None:
        """Make connections again that were lost: a broker asks those that are connected."""
        while True:
            await asyncio.sleep(STAY_S)
            for client in self._routes.clients():
                if not client.is_open:
                    with contextlib.suppress(SdkError):
                        await client.request(self._greet())


async def _read_state(name: str, ended: object) -> tuple[TransactionState, TypeError | None]:
    """Return the state that the caller's function gives; where it gives none, UNKNOWN and the error."""
    if not inspect.isawaitable(ended):
        return TransactionState.UNKNOWN, TypeError(f"{name} returned {ended!r}; it is awaited: make it an async def")
    said = await ended
    if said is None:
        return TransactionState.UNKNOWN, None
    if isinstance(said, TransactionState):
        return said, None
    known = ", ".join(f"TransactionState.{state.name}" for state in TransactionState)
    return TransactionState.UNKNOWN, TypeError(f"{name} returned {said!r}; it is to return one of {known}")


def _message_of(request: Command) -> Message:
    """Return the message that a broker asks about, by its numbers as a half one.

    Raises:
        RecordError, ValueError, StopIteration: It is none.
    """
    record = next(decode_records(bytes(request.body)))
    topic = record.topic.decode(errors="replace")
    offset = int(request.ext.get("tranStateTableOffset", record.queue_offset))
    record.physical_offset = int(request.ext.get("commitLogOffset", record.physical_offset))
    return message_of(record, MessageQueue(topic, request.ext.get("bname", ""), record.queue_id), offset)
