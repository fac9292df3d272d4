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
BATCH = 64
APPEND_ROUNDS = 800


def measure(run: Run, size: int) -> Samples:
    """Write `size` queues twice, then to random ones of them; then start again on them."""
    found: dict[str, list[float]] = {"send_us": [], "ready_s": [], "append_ns": []}
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
        found["append_ns"] = in_own_process(append, folder, size, 4 * run.rounds)  # a full segment falls into some
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


def append(folder: Path, size: int, rounds: int) -> list[float]:
    """Return what one append to a random one of `size` queues costs, in ns of CPU, each written twice before."""
    now_ms = int(time.time() * 1000)
    store = MessageStore.open(folder / "data", StoreSettings(), now_ms=now_ms)
    batch = PublishBatch(BATCH)
    batch.buf = BODY * BATCH
    batch.origin = encode_origin(b"mqtt", b"gateway-01", b"")
    batch.count = BATCH
    for i in range(BATCH):
        batch.route_index[i] = i
        batch.body_start[i], batch.body_end[i] = i * len(BODY), (i + 1) * len(BODY)
    prefix = encode_properties([(b"LMQ_TOPIC", b"site/01/dev/0000001/state")])

    def route(queues: Sequence[int]) -> None:
        batch.routes[:] = [store.make_route(b"LMQ_PARENT", 0, prefix, [NAME % queue]) for queue in queues]

    batch.topics = [b"site/01/dev/0000001/state"] * BATCH
    for _ in range(WRITES):
        for first in range(0, size, BATCH):
            route([(first + i) % size for i in range(BATCH)])
            store.append_batch(batch, now_ms)
            store.prepare()
    chosen, found = random.Random(2), []
    for _ in range(rounds + 1):
        spent = 0
        for _ in range(APPEND_ROUNDS):
            route([chosen.randrange(size) for _ in range(BATCH)])
            store.prepare()
            began = time.thread_time_ns()
            store.append_batch(batch, now_ms)
            spent += time.thread_time_ns() - began
        found.append(spent / APPEND_ROUNDS / BATCH)
    return found[1:]
