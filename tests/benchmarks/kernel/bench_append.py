"""ns a message to append and index: `python -m tests.benchmarks.kernel.bench_append [seconds]`.

A first round is thrown away: a virtual machine that never touched its memory writes a fresh page far dearer.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from core.message import PublishBatch, Route
from core.properties import encode_origin, encode_properties
from core.settings import StoreSettings
from core.store import commit_log
from core.store.message_store import MessageStore

NOW_MS = 1_790_000_000_000
BATCH = 64
RUN = 16  # batches
CASES = ((16, 1), (256, 0), (256, 1), (256, 3), (256, 10), (256, 100), (1024, 3), (1024, 1000), (4096, 3))


def make_batch(route: Route, body_bytes: int) -> PublishBatch:
    """Return a full batch of messages to one route, as the MQTT front makes it."""
    batch = PublishBatch(BATCH)
    batch.buf = bytes(range(256)) * (BATCH * body_bytes // 256 + 1)
    batch.origin = encode_origin(b"mqtt", b"device-000001", b"")
    batch.topics.append(b"site/12/dev/000001/state")
    batch.routes.append(route)
    for i in range(BATCH):
        batch.body_start[i] = i * body_bytes
        batch.body_end[i] = (i + 1) * body_bytes
    batch.count = BATCH
    return batch


def measure(store: MessageStore, batch: PublishBatch, seconds: float) -> tuple[float, float, float]:
    """Return ns of CPU a message, median and least of the runs, and bytes of log a message."""
    runs: list[int] = []
    while sum(runs) < seconds * 1e9:
        for _ in range(8):
            store.prepare()
        started = time.thread_time_ns()
        for _ in range(RUN):
            store.append_batch(batch, NOW_MS)
        runs.append(time.thread_time_ns() - started)
    messages = RUN * BATCH
    log_bytes = (batch.physical_offset[BATCH - 1] - batch.physical_offset[0]) / (BATCH - 1)
    return statistics.median(runs) / messages, min(runs) / messages, log_bytes


def main() -> None:
    """Print one line a case."""
    kind = "uncompiled" if str(commit_log.__file__).endswith(".py") else "compiled"
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 0.3
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        for body_bytes, queues in CASES:
            store = MessageStore.open(Path(folder) / f"{body_bytes}-{queues}", StoreSettings(), now_ms=NOW_MS)
            prefix = encode_properties([(b"LMQ_TOPIC", b"site/12/dev/000001/state")])
            names = [b"%%LMQ%%mqtt%%site|12|dev|%06d" % k for k in range(queues)]
            batch = make_batch(store.make_route(b"LMQ_PARENT", 0, prefix, names), body_bytes)
            measure(store, batch, seconds)
            ns, best, log_bytes = measure(store, batch, seconds)
            what = f"append {kind} {body_bytes:5} B into {queues:4} light queues"
            print(f"{what}: {ns:8.0f} ns (best {best:6.0f}), {log_bytes:6.0f} B of log")
            store.close()


if __name__ == "__main__":
    main()
