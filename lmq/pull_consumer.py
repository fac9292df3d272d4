"""Read topics' queues and light queues from any offset, and keep how far a group is."""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import AsyncIterator
from datetime import datetime

from lmq.arguments import check_count, check_is, check_seconds, check_start
from lmq.errors import SdkError
from lmq.gate import Gate
from lmq.member import Member
from lmq.message import Message, PullResult
from lmq.queue_access import RETRIED, QueueAccess, Start, pause_after
from lmq.queues import MessageQueue
from lmq.remoting.commands import Command, answer
from lmq.remoting.request_codes import RequestCode
from lmq.remoting.response_codes import ResponseCode
from lmq.routes import ROUTE_S
from lmq.running_info import ACTIVE, encode_running_info, refuse_group, tell_stacks, wants_stacks
from lmq.subscription import Subscription, make_subscription

LOGGER = logging.getLogger(__name__)


class PullConsumer(Member):
    """Reads queues. Use it as an async context manager, or call `start` and `stop`.

    A queue is one of those that `queues` gives; or a topic and the number of one of its queues, or a light queue's name
    (`%LMQ%…`, see `mqtt_queue` and `amqp_queue`), whose number is 0, on the first broker that has it.

    It is a member of its group for the others: with the group of push consumers it would be left a share of queues.

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
        self._access = QueueAccess(self._routes, group, timeout_s)
        self._gate = Gate()
        self._begun_ms = time.time_ns() // 1_000_000
        self._answerers[RequestCode.GET_CONSUMER_RUNNING_INFO] = self._tell_all

    def _tell_all(self, _server: str, request: Command) -> Command:
        if request.ext.get("consumerGroup") != self.group:
            return refuse_group(request)
        properties = {"PROP_CONSUMER_START_TIMESTAMP": str(self._begun_ms), "PROP_CONSUME_TYPE": ACTIVE}
        properties["PROP_CONSUMEORDERLY"] = "false"
        stacks = tell_stacks() if wants_stacks(request) else None
        body = encode_running_info(properties, (), {}, {}, stacks=stacks)
        return answer(request, ResponseCode.SUCCESS, body=body)

    def pause(self, *queues: MessageQueue) -> None:
        """Let `messages` give nothing more of these queues, or of any where none is named, until `resume`."""
        self._gate.pause(*queues)

    def resume(self, *queues: MessageQueue) -> None:
        """Let `messages` go on with these queues, or with all where none is named."""
        self._gate.resume(*queues)

    async def queues(self, topic: str) -> list[MessageQueue]:
        """Return all queues of a topic, or the light queue of this name, on all brokers."""
        return await self._routes.queues(topic)

    async def pull(
        self,
        queue: str | MessageQueue,
        offset: int,
        max_count: int = 32,
        wait_s: float = 0.0,
        *,
        queue_id: int = 0,
        tags: str = "*",
        sql: str = "",
    ) -> PullResult:
        """Return up to `max_count` messages from `offset` on.

        Args:
            queue: A queue, a topic, or a light queue.
            offset: The first message's number in the queue.
            max_count: No more than so many.
            wait_s: How long the broker may wait for a message when there is none.
            queue_id: The topic's queue, where `queue` is a name.
            tags: Only messages with one of these tags: `a || b`; `*` for all.
            sql: Only messages that this expression fits, in place of `tags`.

        Raises:
            SdkError: The broker refused, or could not be asked.
        """
        _check_amount(max_count, wait_s)
        check_is("offset", offset, int)
        found = await self._find(queue, queue_id)
        return await self._access.pull(found, offset, max_count, wait_s, make_subscription(found.topic, tags, sql))

    async def messages(
        self,
        queue: str | MessageQueue,
        *,
        from_: Start = "committed",
        queue_id: int | None = None,
        tags: str = "*",
        sql: str = "",
        max_count: int = 32,
        wait_s: float = 15.0,
        commit: bool = False,
    ) -> AsyncIterator[Message]:
        """Yield messages, for ever, also across lost connections: of one queue in its order, of several as they come.

        Args:
            queue: A topic, all of whose queues are read on all brokers, also those that it gets later; a light queue;
                or one queue.
            from_: `first`, `last` (what comes from now on), `committed` (the group's offset, `first` if there is none),
                a moment, or, of one queue, an offset.
            queue_id: Only this queue of the topic.
            tags: As with `pull`.
            sql: As with `pull`.
            max_count: How many are asked for at a time, of each queue.
            wait_s: How long each request may wait at the broker.
            commit: Commit the group's offset each time that the caller is done with what one request gave.

        Raises:
            ValueError: `from_` is none of that, or is an offset for several queues.
            SdkError: A broker refused; or it could not be asked how to begin.
        """
        check_start("from_", from_, ("first", "last", "committed"), (int, datetime))
        _check_amount(max_count, wait_s)
        topic = queue.topic if isinstance(queue, MessageQueue) else queue
        merge = _Merge(self._access, make_subscription(topic, tags, sql), max_count, wait_s, self._gate, commits=commit)
        is_whole = isinstance(queue, str) and queue_id is None
        found = await self.queues(topic) if is_whole else [await self._find(queue, queue_id or 0)]
        if isinstance(from_, int) and len(found) > 1:
            raise ValueError(f"{topic} has {len(found)} queues: an offset is of one of them, which queue_id names")
        clock = asyncio.get_running_loop().time
        try:
            await merge.add(found, from_)
            look_again_s = clock() + ROUTE_S
            while True:
                for message in await merge.next(ROUTE_S):
                    yield message
                if is_whole and clock() >= look_again_s:
                    look_again_s = clock() + ROUTE_S
                    await self._look_again(topic, merge)
        finally:
            await merge.close()

    async def _look_again(self, topic: str, merge: _Merge) -> None:
        """Read on from the beginning of queues that the topic got since."""
        try:
            await merge.add(await self.queues(topic), "first")
        except SdkError as error:
            LOGGER.debug("queues cannot be looked up now topic=%s cause=%s", topic, error)

    # Offsets

    async def committed(self, queue: str | MessageQueue, *, queue_id: int = 0) -> int | None:
        """Return the offset that the group goes on at, or None where it never committed one."""
        return await self._access.committed(await self._find(queue, queue_id))

    async def commit(self, queue: str | MessageQueue, offset: int, *, queue_id: int = 0) -> None:
        """Set the offset that the group goes on at: the number of the next message it has not seen."""
        await self._access.commit(await self._find(queue, queue_id), offset)

    async def min_offset(self, queue: str | MessageQueue, *, queue_id: int = 0) -> int:
        """Return the number of the first message that is kept."""
        return await self._access.min_offset(await self._find(queue, queue_id))

    async def max_offset(self, queue: str | MessageQueue, *, queue_id: int = 0) -> int:
        """Return the number that the next message will have."""
        return await self._access.max_offset(await self._find(queue, queue_id))

    async def search_offset(self, queue: str | MessageQueue, at_ms: int, *, queue_id: int = 0) -> int:
        """Return the number of the first message that was stored at `at_ms` (since 1970) or later."""
        return await self._access.search_offset(await self._find(queue, queue_id), at_ms)

    async def _find(self, queue: str | MessageQueue, queue_id: int) -> MessageQueue:
        if isinstance(queue, MessageQueue):
            return queue
        routes = await self._routes.find(queue)
        return MessageQueue(queue, routes[0].broker_name, queue_id)


def _check_amount(max_count: int, wait_s: float) -> None:
    check_count("max_count", max_count, 1)
    check_seconds("wait_s", wait_s, may_be_none=True)


class _Merge:
    """Queues that are read at the same time; each is asked again when what it gave before is done with."""

    def __init__(
        self, access: QueueAccess, wanted: Subscription, max_count: int, wait_s: float, gate: Gate, *, commits: bool
    ) -> None:
        self._gate = gate
        self._access = access
        self._wanted = wanted
        self._max_count = max_count
        self._wait_s = wait_s
        self._commits = commits
        self._known: set[MessageQueue] = set()
        self._idle: list[_Place] = []  # places that are to be asked for more
        self._asked: dict[asyncio.Task[list[Message]], _Place] = {}

    async def add(self, queues: list[MessageQueue], from_: Start) -> None:
        """Read these queues as well, where they are not read yet."""
        for queue in queues:
            if queue not in self._known:
                self._idle.append(_Place(queue, await self._access.start_of(queue, from_)))
                self._known.add(queue)

    async def next(self, wait_s: float) -> list[Message]:
        """Return what one of the queues gives, or nothing where none does so within `wait_s`.

        Raises:
            SdkError: A broker refused.
        """
        for place in self._idle:
            if not self._gate.holds(place.queue):
                self._asked[asyncio.create_task(self._read(place))] = place
        self._idle = [place for place in self._idle if self._gate.holds(place.queue)]
        given = [task for task, place in self._asked.items() if not self._gate.holds(place.queue)]
        changed = asyncio.create_task(self._gate.wait_changed())
        try:  # where the topic has no queue that can be read now, a moment is waited
            await asyncio.wait((*given, changed), timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
        for task in given:
            if task.done() and not self._gate.holds(self._asked[task].queue):
                self._idle.append(self._asked.pop(task))
                return task.result()
        return []

    async def _read(self, place: _Place) -> list[Message]:
        """Return the next messages of a queue, and wait out what passes; those before are done with."""
        failures = 0
        place.offset = place.upcoming
        while True:
            try:
                if self._commits and place.committed != place.offset:
                    await self._access.commit(place.queue, place.offset)
                    place.committed = place.offset
                result = await self._access.pull(place.queue, place.offset, self._max_count, self._wait_s, self._wanted)
            except RETRIED as error:
                failures += 1
                LOGGER.debug("pull failed queue=%s cause=%s", place.queue, error)
                await asyncio.sleep(pause_after(failures))
                continue
            if result.is_moved:
                LOGGER.warning("offset moved queue=%s from=%d to=%d", place.queue, place.offset, result.next_offset)
            place.upcoming = result.next_offset
            return [message for message in result.messages if self._wanted.wants(message)]

    async def close(self) -> None:
        """Ask for nothing any more."""
        for task in self._asked:
            task.cancel()
        await asyncio.gather(*self._asked, return_exceptions=True)


class _Place:
    """How far a queue was read."""

    def __init__(self, queue: MessageQueue, offset: int) -> None:
        self.queue = queue
        self.offset = self.committed = self.upcoming = offset
