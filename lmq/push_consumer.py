"""Has a listener given the messages of topics and light queues, which a group's members share out among themselves."""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Literal

from lmq.allocation import Allocate, allocate_averagely
from lmq.arguments import check_count, check_is, check_start, check_takes
from lmq.assignment import Assignment
from lmq.client import Client, find_own_address
from lmq.consumer_questions import ConsumerQuestions
from lmq.consumption import ConcurrentConsumption, Consumption, Listener, OrderlyConsumption, Supervision
from lmq.errors import NotFoundError, SdkError
from lmq.member import Member
from lmq.offset_reset import read_offsets
from lmq.offset_store import BrokerOffsets, FileOffsets
from lmq.process_queue import FlowLimits, ProcessQueue
from lmq.queue_access import RETRIED, QueueAccess, pause_after
from lmq.queue_locks import QueueLocks
from lmq.queues import MessageQueue
from lmq.remoting.commands import Command, answer
from lmq.remoting.request_codes import RequestCode
from lmq.remoting.response_codes import ResponseCode
from lmq.send_back import RETRY_PREFIX, SendBack, as_sent
from lmq.subscription import ALL, Subscription, make_subscription
from lmq.subscription_check import Subscribed, SubscriptionCheck
from lmq.trouble import Troubles

LOGGER = logging.getLogger(__name__)

REBALANCE_S = 20.0  # as in Java's client
UNBALANCED_S = 1.0  # until it is tried again to take queues that could not be had, as in Java's client
COMMIT_S = 5.0  # as in Java's client
LOCK_S = 20.0  # locks are renewed, as in Java's client: a broker keeps one for 60 s
WAIT_S = 15.0  # of a pull at the broker, as in Java's client
OFFSETS_DIR = Path("~/.rocketmq_offsets")
WHERE: Mapping[object, str] = {"first": "CONSUME_FROM_FIRST_OFFSET", "last": "CONSUME_FROM_LAST_OFFSET"}


class PushConsumer(Member):
    """Consumes topics and light queues by a listener. Use it as an async context manager, or call `start` and `stop`.

        async def handle(messages: list[Message], context: ConsumeContext) -> None: ...

        async with PushConsumer("127.0.0.1:9876", "workers", handle) as consumer:
            consumer.subscribe("Orders", "new || changed")

    Members of a group share out the queues, and each message comes to one of them; again if that one fails. A listener
    that raises, or returns anything but None or `ConsumeStatus.SUCCESS`, gets the messages again later, after more and
    more time, and after 16 times they are on the topic `%DLQ%` + group.

    Args:
        namesrv: The name server's `HOST:PORT`, several with `;` between.
        group: The consumer group.
        listener: Is given messages, and says what becomes of them.
        orderly: Each queue's messages are given one batch after the other, in their order, and again at once until they
            are done; else as they come, and many batches at the same time.
        broadcasting: Each member gets all messages, and keeps how far it is in a file; what fails does not come again.
        consume_from: Where a group begins that never was there: `first`, `last`, or a moment. A queue that a topic gets
            while the member is there is read from its first message.
        allocate: How members share out queues; all of a group in the same way.
        consume_batch_size: How many messages the listener is given at a time at most.
        concurrency: How many batches it is given at the same time at most.
        pull_batch_size: How many messages are asked for at a time.
        limits: How much of each queue is pulled ahead.
        max_reconsume_times: How often a message comes again before it goes to the dead letters; None: as the group's
            settings at the broker say, and with `orderly` for ever.
        offsets_dir: The folder of files of `broadcasting`: CLIENT_ID/GROUP/offsets.json in it, so give a `client_id`
            that is the same the next time, but for one member on each machine.
        stop_s: How long the listener has, when the consumer stops, to end what it was given.
        timeout_s: How long to wait for each answer.
        client_id: How brokers and other members see this one; made up if not given: its address, `@`, and more.
        tls: What connections are secured by: `ssl.create_default_context(cafile=...)`, say; without it, not.
        access_key: The user that requests are sent as; empty: as nobody.
        secret_key: The secret that this user shares with the broker; requests are signed with it, and it is never sent.
    """

    def __init__(
        self,
        namesrv: str,
        group: str,
        listener: Listener,
        *,
        orderly: bool = False,
        broadcasting: bool = False,
        consume_from: Literal["first", "last"] | datetime = "last",
        allocate: Allocate = allocate_averagely,
        consume_batch_size: int = 1,
        concurrency: int = 20,
        pull_batch_size: int = 32,
        limits: FlowLimits | None = None,
        max_reconsume_times: int | None = None,
        offsets_dir: str | Path = OFFSETS_DIR,
        stop_s: float = 10.0,
        timeout_s: float = 3.0,
        client_id: str | None = None,
        tls: ssl.SSLContext | None = None,
        access_key: str = "",
        secret_key: str = "",
    ) -> None:
        check_count("concurrency", concurrency, 1)
        check_count("pull_batch_size", pull_batch_size, 1)
        check_takes("allocate", allocate, "client_id", "queues", "members")
        check_is("limits", limits or FlowLimits(), FlowLimits)
        super().__init__(
            namesrv,
            group,
            greeting={},
            farewell={"consumerGroup": group},
            timeout_s=timeout_s,
            client_id=client_id or (f"{find_own_address()}@DEFAULT" if broadcasting else None),
            tls=tls,
            access_key=access_key,
            secret_key=secret_key,
        )
        self._broadcasting = broadcasting
        self._consume_from = check_start("consume_from", consume_from, ("first", "last"), (datetime,))
        self._pull_batch_size = pull_batch_size
        self._limits = limits or (FlowLimits(span=None) if orderly else FlowLimits())
        self._stop_s = stop_s
        self._access = QueueAccess(self._routes, group, timeout_s)
        self._supervision = Supervision(concurrency)
        self._consumption = self._consume_by(listener, consume_batch_size, max_reconsume_times, orderly=orderly)
        self._locks = QueueLocks(self._routes, group, self.client_id) if orderly and not broadcasting else None
        own = Path(offsets_dir).expanduser() / self.client_id / group / "offsets.json"
        self._offsets = FileOffsets(own) if broadcasting else BrokerOffsets(self._access)
        self._assignment = Assignment(self._routes, group, self.client_id, None if broadcasting else allocate)
        self._subscriptions: dict[str, Subscription] = {}
        self._queues: dict[MessageQueue, ProcessQueue] = {}
        self._readers: dict[MessageQueue, asyncio.Task[None]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._is_changed = asyncio.Event()  # the group, or what it wants
        self._greeted: dict[Client, Mapping[str, object]] = {}  # what each broker was told
        self._troubles = Troubles()
        self._resets: dict[MessageQueue, int] = {}  # offsets that queues are to go on at
        self._check = SubscriptionCheck(self._routes, group, self.client_id)
        self._expect_questions(PROP_CONSUMEORDERLY=str(orderly).lower(), PROP_THREADPOOL_CORE_SIZE=concurrency)

    def _consume_by(
        self, listener: Listener, batch_size: int, retries_max: int | None, *, orderly: bool
    ) -> Consumption:
        check_count("consume_batch_size", batch_size, 1)
        check_count("max_reconsume_times", retries_max or 0, 0)
        send_back = None if self._broadcasting else SendBack(self._routes, self.group, retries_max)
        shape = (listener, send_back, batch_size, self._supervision)
        if orderly:
            return OrderlyConsumption(*shape, retries_max, needs_lock=not self._broadcasting)
        return ConcurrentConsumption(*shape)

    def _expect_questions(self, **settings: object) -> None:
        """Answer what brokers ask; operators are told the settings by these names, which are RocketMQ's."""
        questions = ConsumerQuestions(
            self.group,
            self._consumption,
            wanted=self._subscriptions,
            queues=self._queues,
            stats=self._supervision.stats,
            settings={name: str(value) for name, value in settings.items()},
        )
        self._answerers |= questions.answerers()
        self._answerers[RequestCode.NOTIFY_CONSUMER_IDS_CHANGED] = self._on_group_changed
        self._answerers[RequestCode.RESET_CONSUMER_CLIENT_OFFSET] = self._on_reset

    # What it wants

    def subscribe(self, topic: str, tags: str = ALL, *, sql: str = "") -> Subscribed:
        """Consume a topic, or a light queue (`mqtt_queue`, `amqp_queue`); all members of a group say the same.

        An expression that a broker refuses fails `start`; after it, that is logged, the subscription is given up, and
        `await consumer.subscribe(...)` raises what the broker said.

        Args:
            topic: The topic, or the light queue's name.
            tags: Only messages with one of these tags: `a || b`; `*` for all.
            sql: Only messages that this expression fits, in place of `tags`.
        """
        wanted = self._subscriptions[topic] = make_subscription(topic, tags, sql)
        self._describe()
        return self._check.begin(wanted, self._on_refused) if self._tasks else Subscribed()

    def _on_refused(self, subscription: Subscription) -> None:
        if self._subscriptions.get(subscription.topic) is subscription:
            self.unsubscribe(subscription.topic)

    def unsubscribe(self, topic: str) -> None:
        """Consume a topic no more."""
        self._subscriptions.pop(topic, None)
        self._describe()

    def _describe(self) -> None:
        self._greeting = {
            "consumerDataSet": [
                {
                    "groupName": self.group,
                    "consumeType": "CONSUME_PASSIVELY",
                    "messageModel": "BROADCASTING" if self._broadcasting else "CLUSTERING",
                    "consumeFromWhere": WHERE.get(self._consume_from, "CONSUME_FROM_TIMESTAMP"),
                    "unitMode": False,
                    "subscriptionDataSet": [one.describe() for one in self._subscriptions.values()],
                }
            ]
        }
        self._is_changed.set()

    # Its life

    async def start(self) -> None:
        """Begin to consume.

        Raises:
            ResponseError: A broker does not filter by SQL, or does not understand an expression.
        """
        if not self._broadcasting:
            self.subscribe(f"{RETRY_PREFIX}{self.group}")
        for subscription in list(self._subscriptions.values()):
            await self._check.check(subscription)
        self._tasks = [asyncio.create_task(self._keep_balanced()), asyncio.create_task(self._keep_offsets())]
        if self._locks is not None:
            self._tasks.append(asyncio.create_task(self._keep_locks(self._locks)))

    async def stop(self) -> None:
        """Let the listener end what it has, commit how far it is, say goodbye and close all connections."""
        try:
            await self._check.stop()
            await _cancel(self._tasks)
            await _cancel(list(self._readers.values()))
            await self._consumption.stop(self._stop_s)
            await self._save_offsets()
            if self._locks is not None:
                await self._locks.unlock(self._queues)
            for process_queue in self._queues.values():
                process_queue.drop()
        finally:  # also where it is cancelled
            for task in (*self._tasks, *self._readers.values()):
                task.cancel()
            self._consumption.cut()
            await super().stop()

    def pause(self) -> None:
        """Give the listener nothing more, and pull nothing more; the member keeps its queues, and commits go on."""
        self._supervision.gate.pause()

    def resume(self) -> None:
        """Go on where `pause` held up."""
        self._supervision.gate.resume()

    @property
    def is_paused(self) -> bool:
        """Whether `pause` holds up."""
        return self._supervision.gate.is_paused

    # Rebalance: queues come and go

    @property
    def assigned(self) -> list[MessageQueue]:
        """The queues that this member has now."""
        return sorted(self._queues)

    def _on_group_changed(self, _server: str, _request: Command) -> None:
        self._is_changed.set()

    def _on_reset(self, _server: str, request: Command) -> Command:
        if request.ext.get("group") == self.group:
            self._resets |= read_offsets(bytes(request.body))
            self._is_changed.set()
        return answer(request, ResponseCode.SUCCESS)

    async def _keep_balanced(self) -> None:
        while True:
            self._is_changed.clear()
            resets, self._resets = self._resets, {}
            for queue in resets.keys() & self._queues.keys():
                await self._give_up(queue, resets[queue])
            await self._greet_brokers()
            topics = {*self._subscriptions, *(queue.topic for queue in self._queues)}
            failures = self._troubles.sharing.failures
            is_balanced = all([await self._balance(topic) for topic in topics])
            if self._troubles.sharing.failures == failures:
                self._troubles.sharing.note_success()
            with suppress(TimeoutError):
                async with asyncio.timeout(REBALANCE_S if is_balanced else UNBALANCED_S):
                    await self._is_changed.wait()

    async def _greet_brokers(self) -> None:
        """Tell all brokers of all topics what the group wants, where they do not know it yet."""
        greeting = self._greeting
        clients: set[Client] = set()
        for topic in self._subscriptions:
            try:
                clients.update(self._routes.client_of(route) for route in await self._routes.find(topic))
            except SdkError as error:
                LOGGER.debug("no broker is known topic=%s cause=%s", topic, error)
        news = [client for client in clients if not client.is_open or self._greeted.get(client) is not greeting]
        answers = await asyncio.gather(*(one.request(self._greet()) for one in news), return_exceptions=True)
        for client, answered in zip(news, answers, strict=True):
            if isinstance(answered, Command):
                self._greeted[client] = greeting

    async def _balance(self, topic: str) -> bool:
        """Take and give up queues of a topic; return whether the member has its share now."""
        share: list[MessageQueue] | None = []
        if topic in self._subscriptions:
            try:
                share = await self._assignment.share_of(topic)
            except NotFoundError:
                self._assignment.note_missing(topic)
                return False
            except SdkError as error:
                self._troubles.sharing.note_failure(error, topic)
                return False
            except Exception:
                LOGGER.exception("queues cannot be shared out topic=%s", topic)
                return False
        if share is None:
            return False
        for queue in [queue for queue in self._queues if queue.topic == topic and queue not in share]:
            await self._give_up(queue)
        return all([await self._take(queue) for queue in share if queue not in self._queues])

    async def _take(self, queue: MessageQueue) -> bool:
        """Begin to consume a queue; return False where that cannot be yet."""
        try:
            if self._locks is not None and not (await self._locks.lock([queue])).get(queue):
                return False
            offset = await self._offsets.load(queue)
            if offset is None:
                is_new = queue.topic.startswith(RETRY_PREFIX) or self._assignment.is_new(queue)
                offset = await self._access.start_of(queue, "first" if is_new else self._consume_from)
        except SdkError as error:
            self._troubles.sharing.note_failure(error, queue)
            return False
        process_queue = self._queues[queue] = ProcessQueue(queue, offset, self._limits)
        process_queue.note_lock(is_held=True)
        self._offsets.note(queue, offset)
        self._readers[queue] = asyncio.create_task(self._read(process_queue))
        return True

    async def _give_up(self, queue: MessageQueue, offset: int | None = None) -> None:
        """Leave a queue to another member, or to ourselves at another offset."""
        process_queue = self._queues.pop(queue)
        process_queue.drop()
        await _cancel([self._readers.pop(queue)])
        is_over = await self._consumption.finish(process_queue, self._stop_s)
        self._offsets.note(queue, process_queue.offset if offset is None else offset)
        await self._save_offsets()
        if offset is None:  # else it stays ours, and that offset is tried again
            self._offsets.forget(queue)
        if self._locks is not None and is_over:
            await self._locks.unlock([queue])

    # The queues that it has

    async def _read(self, process_queue: ProcessQueue) -> None:
        """Pull a queue's messages ahead of the listener, until the queue is given up."""
        queue, failures = process_queue.queue, 0
        pulling = self._troubles.pulling_from(queue.broker_name)
        while True:
            await process_queue.wait_for_room()
            await self._supervision.gate.wait_open()
            wanted = self._subscriptions.get(queue.topic)
            if wanted is None:
                return  # given up in a moment
            began_s = time.monotonic()
            try:
                result = await self._access.pull(queue, process_queue.upcoming, self._pull_batch_size, WAIT_S, wanted)
            except SdkError as error:
                failures += 1
                if isinstance(error, RETRIED):
                    pulling.note_failure(error, queue)
                else:
                    LOGGER.warning("pull failed queue=%s cause=%s", queue, error)
                await asyncio.sleep(pause_after(failures))
                continue
            failures = 0
            pulling.note_success()
            if result.is_moved:
                LOGGER.warning("offset moved queue=%s from=%d to=%d", queue, process_queue.upcoming, result.next_offset)
            if result.messages:
                self._supervision.stats.of(queue.topic).pulled.add(len(result.messages), time.monotonic() - began_s)
            messages = [as_sent(message) for message in result.messages if wanted.wants(message)]
            process_queue.put(messages, result.next_offset)
            self._consumption.submit(process_queue, messages)

    async def _keep_offsets(self) -> None:
        while True:
            await asyncio.sleep(COMMIT_S)
            await self._save_offsets()

    async def _save_offsets(self) -> None:
        for queue, process_queue in self._queues.items():
            self._offsets.note(queue, process_queue.offset)
        try:
            await self._offsets.save()
        except (SdkError, OSError) as error:
            self._troubles.saving.note_failure(error, self.group)
        else:
            self._troubles.saving.note_success()

    async def _keep_locks(self, locks: QueueLocks) -> None:
        while True:
            await asyncio.sleep(LOCK_S)
            for queue, is_held in (await locks.lock(self._queues)).items():
                process_queue = self._queues.get(queue)
                if process_queue is not None:
                    process_queue.note_lock(is_held=is_held)
                    self._consumption.submit(process_queue, ())


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
