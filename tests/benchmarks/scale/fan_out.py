"""One message of 1 KB to many AMQP queues by a fanout exchange: its disk, and the time to confirm it.

By the number of the queues, and by how much they hold already.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import time
from collections.abc import AsyncIterator

import uvloop
from pamqp import commands, frame

from tests.benchmarks.scale.gateway import Gateway, gateway
from tests.benchmarks.scale.points import Samples
from tests.benchmarks.scale.progress import Run
from tests.benchmarks.scenarios.amqp_load import AmqpPublisher, open_peer, ready_count
from tests.benchmarks.scenarios.load import Count

EXCHANGE = "bench"
FEW_EXCHANGE = "few"
FEW = 1_000  # queues that more are compared with
TURN = 20  # publishes to one exchange, then to the other
BODY = b"x" * 1_024
DECLARED_AT_ONCE = 500
SINGLE = 200  # publishes in a round, one after the other
SEGMENTS = 2  # full ones: their indexes are on disk too
DISPATCHES = 200_000  # unconfirmed at most, but for the least window
WINDOW_MIN, WINDOW_MAX = 16, 2_000
STILL_S = 1.0
DEPTH_QUEUES = 1_000


class OneByOne(AmqpPublisher):
    """Publishes and waits for the confirm."""

    heard: asyncio.Event
    messages: dict[str, bytes]

    def take(self, data: bytes) -> None:
        super().take(data)
        self.heard.set()

    def begin(self, body: bytes, window: int) -> None:
        """Take confirms from now on; publish to the first exchange."""
        self.configure(FEW_EXCHANGE, "", body, window)
        few = self.message
        self.configure(EXCHANGE, "", body, window)
        self.messages = {FEW_EXCHANGE: few, EXCHANGE: self.message}
        self.is_raw = True
        self.tail = b""
        self.heard = asyncio.Event()

    async def publish(self, count: int, window: int) -> None:
        """Publish `count` messages, so many unconfirmed at most; return when all are confirmed."""
        wanted = self.count.sent + count
        while self.confirms.count < wanted:
            if free := min(window - (self.count.sent - self.confirms.count), wanted - self.count.sent):
                self.transport.write(self.message * free)
                self.count.sent += free
            self.heard.clear()
            await self.heard.wait()

    async def time_each(self, count: int) -> list[float]:
        """Return the seconds from each of `count` single publishes to its confirm."""
        took = []
        for _ in range(count):
            began = time.perf_counter()
            await self.publish(1, 1)
            took.append(time.perf_counter() - began)
        return took

    async def time_in_turns(self) -> tuple[list[float], list[float]]:
        """Return the same of `SINGLE` publishes to either exchange, in turns: a sync's time swings with the minute."""
        took: dict[str, list[float]] = {exchange: [] for exchange in self.messages}
        for _ in range(SINGLE // TURN):
            for exchange, message in self.messages.items():
                self.message = message
                took[exchange] += await self.time_each(TURN)
        self.message = self.messages[EXCHANGE]
        return took[EXCHANGE], took[FEW_EXCHANGE]


def queue_name(number: int) -> str:
    """Return the name of a queue."""
    return f"bench{number:06}"


@contextlib.asynccontextmanager
async def publisher_to(run: Run, ours: Gateway, queues: range, few: range) -> AsyncIterator[OneByOne]:
    """Declare durable queues, bind some to one exchange and some to another; give the publisher to the first."""
    peer = await open_peer("127.0.0.1", ours.server.ports["amqp"], OneByOne(Count()))
    for exchange in (EXCHANGE, FEW_EXCHANGE):
        await peer.call(commands.Exchange.Declare(0, exchange, "fanout", durable=True))
    end = max(queues.stop, few.stop)
    for start in range(0, end, DECLARED_AT_ONCE):
        numbers = range(start, min(start + DECLARED_AT_ONCE, end))
        run.say(f"declaring queues, {start:,} of {end:,}") if not start % 10_000 else None
        for number in numbers:
            declare = commands.Queue.Declare(0, queue_name(number), durable=True, nowait=True)
            peer.transport.write(frame.marshal(declare, 1))
            for exchange, bound in ((EXCHANGE, queues), (FEW_EXCHANGE, few)):
                if number in bound:
                    bind = commands.Queue.Bind(0, queue_name(number), exchange, "", nowait=True)
                    peer.transport.write(frame.marshal(bind, 1))
        await peer.call(commands.Queue.Declare(0, queue_name(numbers[-1]), durable=True))
    await peer.call(commands.Confirm.Select())
    peer.begin(BODY, WINDOW_MIN)
    yield peer
    peer.transport.abort()


def measure(run: Run, size: int) -> Samples:
    """Publish to `size` queues: the first time, one by one, and until two segments are full."""
    with gateway() as ours:
        ours.start()
        return uvloop.run(_measure(run, ours, size))


async def _measure(run: Run, ours: Gateway, queues: int) -> Samples:
    server = ours.server
    found: dict[str, list[float]] = {"confirm_us": [], "worst_us": [], "cpu_us": []}
    memory = server.private_bytes()
    async with publisher_to(run, ours, range(queues), range(min(queues, FEW))) as peer:
        found["queue_bytes"] = [(server.private_bytes() - memory) / queues]
        before = server.disk_bytes()
        found["first_ms"] = [1e3 * each for each in await peer.time_each(1)]
        found["first_kb"] = [(server.disk_bytes() - before) / 1e3]
        for number in range(run.rounds):
            run.say(f"publishing to {queues:,} queues one by one, round {number + 1} of {run.rounds}")
            cpu = ours.cpu_s()
            took = sorted(await peer.time_each(SINGLE))
            found["cpu_us"].append(1e6 * (ours.cpu_s() - cpu) / SINGLE)
            found["confirm_us"].append(1e6 * took[SINGLE // 2])
            found["worst_us"].append(1e6 * took[-1])
        run.say(f"publishing to {queues:,} queues until {SEGMENTS} segments are full")
        found["each_kb"] = [await _disk_each(ours, peer, queues, before) / 1e3]
        ready = await ready_count("127.0.0.1", server.ports["amqp"], queue_name(queues - 1))
        if ready != peer.confirms.count:
            raise RuntimeError(f"{peer.confirms.count:,} confirmed, {ready:,} in the last queue")
        if queues > FEW:
            run.say(f"publishing to {queues:,} and to {FEW:,} queues in turns")
            found["further_ns"] = [await _further_ns(peer, queues) for _ in range(run.rounds)]
    return found


async def _further_ns(peer: OneByOne, queues: int) -> float:
    """Return the ns that each queue beyond the first few adds to a confirm."""
    every, few = await peer.time_in_turns()
    return 1e9 * (statistics.median(every) - statistics.median(few)) / (queues - FEW)


def window_for(queues: int) -> int:
    """Return how many messages to so many queues may be unconfirmed."""
    return max(min(DISPATCHES // queues, WINDOW_MAX), WINDOW_MIN)


async def _disk_each(ours: Gateway, peer: OneByOne, queues: int, before: int) -> float:
    """Return the bytes on disk of one message, its share of sets and of indexes with it."""
    log, indexes = ours.folder / "data" / "commitlog", ours.folder / "data" / "index"
    while len(list(log.iterdir())) <= SEGMENTS:
        await peer.publish(window_for(queues), window_for(queues))
    while sum(path.name.isdecimal() for path in indexes.iterdir()) < SEGMENTS:
        await asyncio.sleep(STILL_S)
    await asyncio.sleep(STILL_S)
    return (ours.server.disk_bytes() - before) / peer.confirms.count


def measure_depth(run: Run, size: int) -> Samples:
    """Publish to 1,000 queues that hold `size` messages each already, and to 1,000 that held none."""
    with gateway() as ours:
        ours.start()
        return uvloop.run(_measure_depth(run, ours, size))


async def _measure_depth(run: Run, ours: Gateway, depth: int) -> Samples:
    found: dict[str, list[float]] = {"confirm_us": [], "ratio": [], "cpu_us": []}
    empty = range(DEPTH_QUEUES, 2 * DEPTH_QUEUES)
    async with publisher_to(run, ours, range(DEPTH_QUEUES), empty) as peer:
        run.say(f"publishing {depth:,} messages to {DEPTH_QUEUES:,} queues")
        await peer.publish(depth, window_for(DEPTH_QUEUES))
        await peer.time_in_turns()
        for _ in range(run.rounds):
            cpu = ours.cpu_s()
            deep, shallow = await peer.time_in_turns()
            found["cpu_us"].append(1e6 * (ours.cpu_s() - cpu) / (2 * SINGLE))
            found["confirm_us"].append(1e6 * statistics.median(deep))
            found["ratio"].append(statistics.median(deep) / statistics.median(shallow))
    return found
