"""Light queues: what one of very many costs in memory, in an append, in files, and at the next start.

The queues are made by sends at the RocketMQ door, each naming one of them. What the append alone costs is measured in a
process of its own, on a store with as many.
"""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import uvloop

from core.message import PublishBatch
from core.properties import encode_origin, encode_properties
from core.settings import StoreSettings
from core.store.message_store import MessageStore
from tests.benchmarks.scale.gateway import Gateway, gateway
from tests.benchmarks.scale.points import Samples
from tests.benchmarks.scale.process import in_own_process
from tests.benchmarks.scale.progress import Run
from tests.benchmarks.scenarios.light_queue_load import NAME, WRITES, open_writer
from tests.benchmarks.scenarios.server import make_folder

SENDS = 200_000  # of which the cost of one is the mean
BODY = b"x" * 256
TOPIC = b"site/01/dev/0000001/state"
BATCH = 64
TURN = 20  # batches to one store, then to the other
TURNS = 40  # in a round
FLUSHED_BYTES = 64 << 20
FEW = 1_000  # queues that more are compared with


def measure(run: Run, size: int) -> Samples:
    """Write `size` queues twice, then to random ones of them; then start again on them."""
    found: dict[str, list[float]] = {"send_us": [], "ready_s": []}
    with gateway() as ours:
        ours.start()
        uvloop.run(_write(run, ours, size, found))
        for number in range(run.rounds):
            run.say(f"starting on {size:,} queues, round {number + 1} of {run.rounds}")
            ours.stop()
            found["ready_s"].append(ours.start())
        found["ready_mb"] = [ours.server.private_bytes() / 1e6]
    run.say(f"appending to {size:,} queues")
    folder = make_folder("scale")
    try:
        found |= in_own_process(append, folder, size, 4 * run.rounds)  # a full segment falls into some
    finally:
        shutil.rmtree(folder)
    return found


async def _write(run: Run, ours: Gateway, size: int, found: dict[str, list[float]]) -> None:
    server, chosen = ours.server, random.Random(1)
    writer = await open_writer("127.0.0.1", server.ports["rocketmq"], BODY)
    before = _holds(ours)
    queues = list(range(size))
    for number in range(WRITES):
        run.say(f"writing {size:,} queues, time {number + 1} of {WRITES}")
        chosen.shuffle(queues)
        await writer.write(queues)
    for name, now, then in zip(("bytes_each", "entries", "threads"), _holds(ours), before, strict=True):
        found[name] = [now - then]
    found["bytes_each"][0] /= size
    for _ in range(run.rounds):
        run.say(f"writing to random ones of {size:,} queues")
        sends = chosen.choices(queues, k=SENDS)
        cpu = ours.cpu_s()
        await writer.write(sends)
        found["send_us"].append(1e6 * (ours.cpu_s() - cpu) / SENDS)
    writer.transport.abort()


def _holds(ours: Gateway) -> tuple[float, ...]:
    return ours.server.private_bytes(), ours.file_count(), ours.thread_count()


def append(folder: Path, size: int, rounds: int) -> dict[str, list[float]]:
    """Return what an append to a random one of `size` queues costs, in ns of CPU, and to that of one of FEW.

    Each was written twice before. The two stores are written to in turns: the price of memory swings with the minute.
    """
    many, few = Appender(folder / "many", size), Appender(folder / "few", FEW)
    found: dict[str, list[float]] = {"append_ns": [], "append_times": []}
    for _ in range(rounds + 1):
        spent = [0, 0]
        for _ in range(TURNS):
            for number, store in enumerate((many, few)):
                spent[number] += store.append_to_random(TURN)
        found["append_ns"].append(spent[0] / (TURNS * TURN * BATCH))
        found["append_times"].append(spent[0] / spent[1])
    return {name: samples[1:] for name, samples in found.items()}


class Appender:
    """A store with `size` light queues, each written twice, and a batch to append to it."""

    def __init__(self, folder: Path, size: int) -> None:
        self._size = size
        self._now_ms = int(time.time() * 1000)
        self._store = MessageStore.open(folder, StoreSettings(), now_ms=self._now_ms)
        self._chosen = random.Random(2)
        self._prefix = encode_properties([(b"LMQ_TOPIC", TOPIC)])
        batch = self._batch = PublishBatch(BATCH)
        batch.buf = BODY * BATCH
        batch.origin = encode_origin(b"mqtt", b"gateway-01", b"")
        batch.count = BATCH
        batch.topics = [TOPIC] * BATCH
        for i in range(BATCH):
            batch.route_index[i] = i
            batch.body_start[i], batch.body_end[i] = i * len(BODY), (i + 1) * len(BODY)
        for _ in range(WRITES):
            for first in range(0, size, BATCH):
                self._append([(first + i) % size for i in range(BATCH)])

    def append_to_random(self, batches: int) -> int:
        """Append so many batches, each message to a random queue; return the ns of CPU that the appends took."""
        return sum(self._append([self._chosen.randrange(self._size) for _ in range(BATCH)]) for _ in range(batches))

    def _append(self, queues: Sequence[int]) -> int:
        make_route = self._store.make_route
        self._batch.routes[:] = [make_route(b"LMQ_PARENT", 0, self._prefix, [NAME % queue]) for queue in queues]
        if self._store.written_until - self._store.flushed_until > FLUSHED_BYTES:
            self._store.flush()
        self._store.prepare()
        began = time.thread_time_ns()
        self._store.append_batch(self._batch, self._now_ms)
        return time.thread_time_ns() - began
