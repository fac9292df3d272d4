"""Peers that speak RocketMQ's remoting protocol, through the SDK."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import Any

from gateway.commands.bench.figures import Tally, sent_ns, stamp
from gateway.commands.bench.peers import TICK_S, Pace
from gateway.commands.bench.plan import Plan
from gateway.commands.doors.place import Place
from gateway.commands.doors.security import check_reachable, make_context
from gateway.commands.doors.traffic import LinkError
from gateway.commands.refusing import EXIT_NOT_NOW, EXIT_UNREACHABLE
from lmq import ConnectFailedError, OutMessage, Producer, PullConsumer, SdkError

GROUP = "lmq-bench"
BATCH = 256  # messages of one pull; chosen: what 256 KiB, the most of an answer, have of 1 KiB
WAIT_S = 5.0  # of a pull at the broker: a run ends within it where nothing comes


class _RocketmqPeer:
    def __init__(self, place: Place, tally: Tally, topic: str) -> None:
        logging.getLogger("lmq").setLevel(logging.ERROR)
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.tally = tally
        self.topic = topic
        self.place = place
        self.address = place.address
        self.how: dict[str, Any] = {
            "tls": make_context(place.tls),
            "access_key": place.user or "",
            "secret_key": place.password or "",
        }
        self.work: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Begin to work, on a task."""
        self.work = asyncio.create_task(self.run())
        self.work.add_done_callback(self._note_end)

    async def run(self) -> None:
        """Work to the end."""
        raise NotImplementedError

    def _note_end(self, work: asyncio.Task[None]) -> None:
        if not self.over.done() and not work.cancelled():
            error = work.exception()
            if error is None:
                self.over.set_result(None)
            else:
                code = EXIT_UNREACHABLE if isinstance(error, ConnectFailedError) else EXIT_NOT_NOW
                self.over.set_exception(LinkError(f"rocketmq: {error}", code))
                self.over.exception()

    async def stop(self) -> None:
        """Work no more."""
        if self.work is not None:
            self.work.cancel()
            with suppress(asyncio.CancelledError, SdkError):
                await self.work


class RocketmqPublisher(_RocketmqPeer):
    """Sends to one topic, with a window of sends that are not answered; one way at QoS 0."""

    def __init__(self, place: Place, tally: Tally, pace: Pace, plan: Plan) -> None:
        super().__init__(place, tally, plan.name)
        self._pace = pace
        self._size = plan.size
        self._qos = plan.qos
        self._producer = Producer(self.address, GROUP, **self.how)

    async def open(self) -> None:
        """Connect, and have the topic made where brokers make topics by themselves."""
        await check_reachable(self.place)
        try:
            await self._producer.start()
            await self._producer.send(self.topic, b"first")
        except SdkError as error:
            code = EXIT_UNREACHABLE if isinstance(error, ConnectFailedError) else EXIT_NOT_NOW
            raise LinkError(f"rocketmq: {error}", code) from error

    async def run(self) -> None:
        """Send all."""
        self._pace.begin()
        await asyncio.gather(*(self._send() for _ in range(self._pace.window if self._qos else 1)))

    async def _send(self) -> None:
        pad = b"x" * (self._size - len(stamp(self._size)))
        while self._pace.left:
            if not self._pace.allow():
                await asyncio.sleep(TICK_S)
                continue
            self._pace.note(1)
            begun_ns = time.perf_counter_ns()
            body = stamp(self._size) + pad
            if self._qos:
                await self._producer.send(self.topic, body)
                self.tally.note_latency(time.perf_counter_ns() - begun_ns)
            else:
                await self._producer.send_one_way(OutMessage(self.topic, body))
            self.tally.add(1, self._size)

    async def stop(self) -> None:
        """Disconnect."""
        await super().stop()
        await self._producer.stop()


class RocketmqConsumer(_RocketmqPeer):
    """Pulls all of one topic from now on."""

    def __init__(self, place: Place, tally: Tally, topic: str) -> None:
        super().__init__(place, tally, topic)
        self._consumer = PullConsumer(self.address, GROUP, **self.how)
        self._starts: dict[Any, int] = {}

    async def open(self) -> None:
        """Connect, and note where the topic ends now."""
        await check_reachable(self.place)
        try:
            await self._consumer.start()
            for queue in await self._consumer.queues(self.topic):
                self._starts[queue] = await self._consumer.max_offset(queue)
        except SdkError as error:
            code = EXIT_UNREACHABLE if isinstance(error, ConnectFailedError) else EXIT_NOT_NOW
            raise LinkError(f"rocketmq: {error}", code) from error

    async def run(self) -> None:
        """Pull for ever."""
        await asyncio.gather(*(self._pull(queue, offset) for queue, offset in self._starts.items()))

    async def _pull(self, queue: Any, offset: int) -> None:  # noqa: ANN401 - the SDK's
        while True:
            found = await self._consumer.pull(queue, offset, BATCH, WAIT_S)
            offset = found.next_offset
            now_ns = time.time_ns()
            self.tally.add(len(found.messages), sum(len(message.body) for message in found.messages))
            for message in found.messages:
                begun_ns = sent_ns(message.body)
                if begun_ns >= 0:
                    self.tally.note_latency(now_ns - begun_ns)

    async def stop(self) -> None:
        """Disconnect."""
        await super().stop()
        await self._consumer.stop()
