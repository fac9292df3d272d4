"""Very many light queues, made by sends at the RocketMQ door, each of which names one of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence

from tests.benchmarks.scenarios.load import Count, Probe, Result, no_probe
from tests.benchmarks.scenarios.rocketmq_load import (
    Asker,
    RemotingPeer,
    max_offset,
    open_peer,
    send_frame,
    settled_offset,
)

WINDOW = 1_024
IN_ONE_WRITE = 256
NAME = b"%%LMQ%%device%07d"
PLACE = NAME % 0
WRITES = 2
LOOKED_AT = 100  # queues whose next offset is asked for in the end


class QueueWriter(RemotingPeer):
    """Sends one message to each queue that it is given, `WINDOW` unanswered at most."""

    def configure(self, body: bytes) -> None:
        """Encode a message around the name of its queue."""
        frame = send_frame(1_000, body, f"INNER_MULTI_DISPATCH\x01{PLACE.decode()}\x02")
        self.before, _, self.after = frame.partition(PLACE)
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def write(self, queues: Sequence[int]) -> None:
        """Return when all are answered."""
        self.frames = self._encode(queues)
        self.left = len(queues)
        self.done = asyncio.get_running_loop().create_future()
        for _ in range(WINDOW // IN_ONE_WRITE):
            self.transport.write(next(self.frames, b""))
        await self.done

    def _encode(self, queues: Sequence[int]) -> Iterator[bytes]:
        for start in range(0, len(queues), IN_ONE_WRITE):
            names = [NAME % queue for queue in queues[start : start + IN_ONE_WRITE]]
            yield self.before + (self.after + self.before).join(names) + self.after

    def took(self, answers: int) -> None:
        before = self.left // IN_ONE_WRITE
        self.left -= answers
        for _ in range(before - self.left // IN_ONE_WRITE):
            self.transport.write(next(self.frames, b""))
        if self.done.done():
            return
        if self.failure:
            self.done.set_exception(RuntimeError(repr(self.failure)))
        elif not self.left:
            self.done.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if not self.done.done():
            self.done.set_exception(exc or ConnectionError("closed before all was answered"))


async def open_writer(host: str, port: int, body: bytes) -> QueueWriter:
    """Connect a writer; the topic is there, and what any load makes a server touch was touched."""
    writer = await open_peer(host, port, QueueWriter(Count()))
    writer.configure(body)
    await writer.write([0] * IN_ONE_WRITE)
    return writer


async def run(
    host: str,
    port: int,
    *,
    queues: int,
    memory: Callable[[], int],
    payload_bytes: int = 256,
    probe: Probe = no_probe,
) -> Result:
    """Write to each of `queues` queues twice; what some of them hold then tells what was lost."""
    writer = await open_writer(host, port, b"x" * payload_bytes)
    before, cpu, load_cpu, started = memory(), probe(), time.process_time(), time.perf_counter()
    for _ in range(WRITES):
        await writer.write(range(1, queues + 1))
    took, sent = time.perf_counter() - started, WRITES * queues
    result = Result(took, sent, sent, sent, time.process_time() - load_cpu, probe() - cpu, Count(sent, sent, sent))
    asker = await open_peer(host, port, Asker(Count()))
    result.lost = await _missing(asker, range(queues, 0, -max(1, queues // LOOKED_AT)))
    result.more = {"bytes_each": (memory() - before) / queues}
    for peer in (writer, asker):
        peer.transport.abort()
    return result


async def _missing(asker: Asker, queues: Sequence[int]) -> int:
    """Return how many messages these queues lack; the first is waited for: a broker may dispatch after it answered."""
    names = [(NAME % queue).decode() for queue in queues]
    await settled_offset(asker, names[0], WRITES)
    return sum([WRITES - await max_offset(asker, name) for name in names])
