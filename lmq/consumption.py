"""Gives pulled messages to the listener: many at the same time, or each queue's one after the other."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, Protocol

from lmq.arguments import check_async, check_awaitable, check_takes
from lmq.consume_stats import ConsumeStats
from lmq.gate import Gate
from lmq.message import Message
from lmq.process_queue import ProcessQueue
from lmq.queues import MessageQueue
from lmq.send_back import SendBack

LOGGER = logging.getLogger(__name__)

AGAIN_S = 5.0  # until a message that failed, and cannot be sent back either, is given to the listener again: Java's


class ConsumeStatus(Enum):
    """What became of the messages that a listener was given."""

    SUCCESS = "success"
    LATER = "later"  # they are to come again


@dataclass(slots=True)
class ConsumeContext:
    """What a listener is told beside the messages, and may say beside its status."""

    queue: MessageQueue
    ack_index: int | None = None
    """Of several messages, the index of the last that is done; those after it come again. -1: none is done."""
    delay_level: int = 0
    """After which delay level those come again that are not done; 0: the later the more often; -1: dead letters.
    (In order they come again after `suspend_s`, whatever the level.)"""
    suspend_s: float = 1.0
    """How long a queue that is consumed in order rests before those that failed are given again."""

    def count_done(self, status: ConsumeStatus, count: int) -> int:
        """Return how many of the first of `count` messages are done."""
        if status is not ConsumeStatus.SUCCESS:
            return 0
        return count if self.ack_index is None else min(max(self.ack_index + 1, 0), count)


Listener = Callable[[list[Message], ConsumeContext], Awaitable[ConsumeStatus | None]]
"""Handles messages of one queue. Returning nothing is success; an error, or anything else that is returned and is no
status, is logged, and the messages come again."""


class Consumption(Protocol):
    """What a consumer hands pulled messages to."""

    def submit(self, process_queue: ProcessQueue, messages: Sequence[Message], /) -> None:
        """Have the listener given messages, which the process queue has already."""

    async def finish(self, process_queue: ProcessQueue, grace_s: float, /) -> bool:
        """Wait until the listener has nothing of a dropped queue that must be over; return whether it is in time."""

    async def stop(self, grace_s: float) -> None:
        """Give the listener nothing more, and wait for what it has; after so long, cancel it."""

    def cut(self) -> None:
        """Give the listener nothing more, and cancel what it has."""

    async def consume_once(self, message: Message) -> Once:
        """Give the listener one message for an operator, and return what it says; nothing else comes of it."""


class Once(NamedTuple):
    """What became of one message that the listener was given by hand."""

    status: ConsumeStatus
    error: Exception | None
    took_ms: int
    is_orderly: bool


@dataclass(slots=True, frozen=True)
class Supervision:
    """What stands above the listener: it has so much at the same time, may be held up, and is measured."""

    concurrency: int
    gate: Gate = field(default_factory=Gate)
    stats: ConsumeStats = field(default_factory=ConsumeStats)


class _Listening:
    """Calls the listener, so often at the same time at most, and knows what runs."""

    def __init__(self, listener: Listener, supervision: Supervision) -> None:
        check_async("listener", listener)
        check_takes("listener", listener, "messages", "context")
        self.gate = supervision.gate
        self.stats = supervision.stats
        self._listener = listener
        self._room = asyncio.Semaphore(supervision.concurrency)
        self._is_stopped = False
        self._tasks: dict[asyncio.Task[None], ProcessQueue] = {}
        self._running: set[asyncio.Task[None]] = set()  # those that the listener has, or had, messages of

    def start(self, work: Callable[[], Awaitable[None]], process_queue: ProcessQueue) -> None:
        """Work on a queue's messages as soon as there is room."""

        async def run() -> None:
            async with self._room:
                await self.gate.wait_open()
                await work()

        if not self._is_stopped:
            task = asyncio.create_task(run())
            self._tasks[task] = process_queue
            task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        self._running.discard(task)
        if not task.cancelled() and task.exception() is not None:
            LOGGER.error("consuming failed", exc_info=task.exception())

    def may_begin(self, process_queue: ProcessQueue) -> bool:
        """Whether the listener may be given more of a queue."""
        return not self._is_stopped and not process_queue.is_dropped

    async def call(self, messages: list[Message], context: ConsumeContext) -> ConsumeStatus:
        """Return what the listener says of messages."""
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        try:
            return await self._ask(messages, context)
        except Exception:
            LOGGER.exception("listener failed queue=%s first=%d", context.queue, messages[0].queue_offset)
            return ConsumeStatus.LATER

    async def _ask(self, messages: list[Message], context: ConsumeContext) -> ConsumeStatus:
        answered = self._listener(messages, context)
        check_awaitable("the listener", answered)
        return _status_of(await answered)

    async def call_once(self, message: Message, *, is_orderly: bool) -> Once:
        """Give the listener one message besides its usual ones, and return what it says."""
        began_s = time.monotonic()
        status, error = ConsumeStatus.LATER, None
        try:
            status = await self._ask([message], ConsumeContext(message.message_queue))
        except Exception as caught:  # noqa: BLE001 - it is the operator's to see
            error = caught
        return Once(status, error, round(1000 * (time.monotonic() - began_s)), is_orderly)

    async def wait_open(self) -> None:
        """Wait while the listener is held up, without holding up an end."""
        task = asyncio.current_task()
        assert task is not None
        self._running.discard(task)
        if not self._is_stopped:
            await self.gate.wait_open()

    async def rest(self, pause_s: float) -> None:
        """Wait, without holding up an end."""
        task = asyncio.current_task()
        assert task is not None
        self._running.discard(task)
        if not self._is_stopped:
            await asyncio.sleep(pause_s)

    async def finish(self, process_queue: ProcessQueue, grace_s: float) -> bool:
        """Wait until nothing of a queue is worked on; return whether that is so in time."""
        tasks = [task for task, one in self._tasks.items() if one is process_queue]
        for task in tasks:
            if task not in self._running:  # it waits, and the listener has nothing of it
                task.cancel()
        if not tasks:
            return True
        _, pending = await asyncio.wait(tasks, timeout=grace_s)
        return not pending

    async def stop(self, grace_s: float) -> None:
        """Begin nothing more; wait for what runs, and cancel what does not end."""
        self._is_stopped = True
        for task in self._tasks.keys() - self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(list(self._running), timeout=grace_s)
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """Begin nothing more, and cancel what is under way."""
        self._is_stopped = True
        for task in list(self._tasks):
            task.cancel()


def _status_of(returned: object) -> ConsumeStatus:
    if returned is None:
        return ConsumeStatus.SUCCESS
    if isinstance(returned, ConsumeStatus):
        return returned
    raise TypeError(
        f"the listener returned {returned!r}; it may return None or ConsumeStatus.SUCCESS for what is done,"
        " and ConsumeStatus.LATER if they are to come again"
    )


class ConcurrentConsumption:
    """Gives batches to the listener as they come, many at the same time.

    Args:
        listener: The listener.
        send_back: Where messages go that failed; None: they are let go, as each member of a broadcast has them.
        batch_size: How many messages the listener is given at a time at most.
        supervision: Bounds how many batches the listener has at the same time, pauses it, and measures it.
    """

    def __init__(
        self,
        listener: Listener,
        send_back: SendBack | None,
        batch_size: int,
        supervision: Supervision,
    ) -> None:
        self._listening = _Listening(listener, supervision)
        self._send_back = send_back
        self._batch_size = batch_size

    def submit(self, process_queue: ProcessQueue, messages: Sequence[Message]) -> None:
        """Have the listener given messages, which the process queue has already."""
        for start in range(0, len(messages), self._batch_size):
            self._begin(process_queue, list(messages[start : start + self._batch_size]))

    def _begin(self, process_queue: ProcessQueue, batch: list[Message]) -> None:
        self._listening.start(lambda: self._consume(process_queue, batch), process_queue)

    async def _consume(self, process_queue: ProcessQueue, batch: list[Message]) -> None:
        if not self._listening.may_begin(process_queue):
            return
        context = ConsumeContext(process_queue.queue)
        began_s = time.monotonic()
        status = await self._listening.call(batch, context)
        took_s = time.monotonic() - began_s
        done = context.count_done(status, len(batch))
        self._listening.stats.of(process_queue.queue.topic).note_consumed(done, len(batch) - done, took_s)
        if process_queue.is_dropped:
            return  # what is not committed comes to the queue's next owner
        again = [message for message in batch[done:] if not await self._give_back(message, context)]
        kept = {message.queue_offset for message in again}
        process_queue.remove(message for message in batch if message.queue_offset not in kept)
        if again:
            again = [dataclasses.replace(message, reconsume_times=message.reconsume_times + 1) for message in again]
            asyncio.get_running_loop().call_later(AGAIN_S, self._begin, process_queue, again)

    async def _give_back(self, message: Message, context: ConsumeContext) -> bool:
        if self._send_back is not None:
            return await self._send_back.give_back(message, context.delay_level)
        LOGGER.warning("message of a broadcast failed queue=%s offset=%d", message.queue, message.queue_offset)
        return True

    async def consume_once(self, message: Message) -> Once:
        """Give the listener one message for an operator, and return what it says; nothing else comes of it."""
        return await self._listening.call_once(message, is_orderly=False)

    async def finish(self, _process_queue: ProcessQueue, _grace_s: float, /) -> bool:
        """Return True: what is not done yet of a queue comes to its next owner again."""
        return True

    async def stop(self, grace_s: float) -> None:
        """Give the listener nothing more, and wait for what it has; after so long, cancel it."""
        await self._listening.stop(grace_s)

    def cut(self) -> None:
        """Give the listener nothing more, and cancel what it has."""
        self._listening.cut()


class OrderlyConsumption:
    """Gives each queue's messages to the listener one batch after the other, and again until they are done.

    Args:
        listener: The listener.
        send_back: Where messages go that failed for good; None: they are let go.
        batch_size: How many messages the listener is given at a time at most.
        supervision: Bounds how many queues the listener has at the same time, pauses it, and measures it.
        retries_max: How often messages are given again before they go to the dead letters; None: for ever.
        needs_lock: Whether a queue is only consumed while it is locked.
    """

    def __init__(
        self,
        listener: Listener,
        send_back: SendBack | None,
        batch_size: int,
        supervision: Supervision,
        retries_max: int | None,
        *,
        needs_lock: bool,
    ) -> None:
        self._listening = _Listening(listener, supervision)
        self._send_back = send_back
        self._batch_size = batch_size
        self._retries_max = retries_max
        self._needs_lock = needs_lock
        self._busy: set[ProcessQueue] = set()

    def submit(self, process_queue: ProcessQueue, _messages: Sequence[Message] = (), /) -> None:
        """Have the queue's messages given to the listener, unless they are already."""
        if process_queue not in self._busy and len(process_queue):
            self._busy.add(process_queue)
            self._listening.start(lambda: self._consume(process_queue), process_queue)

    def _may_go_on(self, process_queue: ProcessQueue) -> bool:
        is_ours = process_queue.is_locked or not self._needs_lock
        return is_ours and self._listening.may_begin(process_queue)

    async def _consume(self, process_queue: ProcessQueue) -> None:
        try:
            while self._may_go_on(process_queue) and (batch := process_queue.first(self._batch_size)):
                context = ConsumeContext(process_queue.queue)
                began_s = time.monotonic()
                done = context.count_done(await self._listening.call(batch, context), len(batch))
                counts = (done, len(batch) - done)
                self._listening.stats.of(process_queue.queue.topic).note_consumed(*counts, time.monotonic() - began_s)
                process_queue.remove(batch[:done])
                left = batch[done:]
                if left and not await self._give_up(process_queue, left, is_enough=context.delay_level < 0):
                    await self._listening.rest(context.suspend_s)
                if self._listening.gate.is_paused:
                    await self._listening.wait_open()
        finally:
            self._busy.discard(process_queue)

    async def _give_up(self, process_queue: ProcessQueue, batch: list[Message], *, is_enough: bool) -> bool:
        """Count the attempt; return whether the messages were let go, since there were enough."""
        failed = [dataclasses.replace(message, reconsume_times=message.reconsume_times + 1) for message in batch]
        if self._retries_max is not None:
            is_enough |= any(message.reconsume_times > self._retries_max for message in failed)
        if is_enough and all([await self._send_away(message) for message in batch]):
            process_queue.remove(batch)
            return True
        for message in failed:
            process_queue.replace(message)
        return False

    async def consume_once(self, message: Message) -> Once:
        """Give the listener one message for an operator, and return what it says; nothing else comes of it."""
        return await self._listening.call_once(message, is_orderly=True)

    async def _send_away(self, message: Message) -> bool:
        return self._send_back is None or await self._send_back.send_copy(message, -1)

    async def finish(self, process_queue: ProcessQueue, grace_s: float, /) -> bool:
        """Wait until the listener has nothing of a dropped queue: only then another member may have it."""
        return await self._listening.finish(process_queue, grace_s)

    async def stop(self, grace_s: float) -> None:
        """Give the listener nothing more, and wait for what it has; after so long, cancel it."""
        await self._listening.stop(grace_s)

    def cut(self) -> None:
        """Give the listener nothing more, and cancel what it has."""
        self._listening.cut()
