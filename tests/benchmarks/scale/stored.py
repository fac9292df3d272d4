"""Stored records: how long the gateway takes to be ready on a log of so many, and what it holds then."""

from __future__ import annotations

import time
from pathlib import Path

from core.message import PublishBatch
from core.properties import encode_origin, encode_properties
from core.settings import StoreSettings
from core.store.message_store import MessageStore
from tests.benchmarks.scale.gateway import forget_pages, gateway
from tests.benchmarks.scale.points import Samples
from tests.benchmarks.scale.process import in_own_process
from tests.benchmarks.scale.progress import Run

BATCH = 64
DEVICES = 1_024
BODY_BYTES = 256
FLUSHED_BYTES = 64 << 20


def measure(run: Run, size: int) -> Samples:
    """Write `size` records, then start the gateway on them: killed, stopped in order, and with nothing cached."""
    found: dict[str, list[float]] = {name: [] for name in ("killed_s", "clean_s", "cold_s", "private_mb", "disk_mb")}
    with gateway() as ours:
        run.say(f"writing {size:,} records")
        in_own_process(fill, ours.folder / "data", size)
        for number in range(run.rounds):
            run.say(f"starting on {size:,} records, round {number + 1} of {run.rounds}")
            found["killed_s"].append(ours.start())
            ours.kill()
            ours.start()
            ours.stop()
            found["clean_s"].append(ours.start())
            found["private_mb"].append(ours.server.private_bytes() / 1e6)
            ours.stop()
            forget_pages(ours.folder)
            found["cold_s"].append(ours.start())
            ours.kill()
        found["disk_mb"].append(ours.server.disk_bytes() / 1e6)
    return found


def fill(folder: Path, count: int) -> None:
    """Write `count` records, each to the light queues of its device, its site and of all; leave it as a kill does."""
    now_ms = int(time.time() * 1000)
    store = MessageStore.open(folder, StoreSettings(), now_ms=now_ms)
    batches = [_make_batch(store, range(first, first + BATCH)) for first in range(0, DEVICES, BATCH)]
    written = flushed = 0
    while written < count:
        batch = batches[written // BATCH % len(batches)]
        batch.count = min(BATCH, count - written)
        store.append_batch(batch, now_ms)
        written += batch.count
        if store.written_until - flushed > FLUSHED_BYTES:
            store.flush()
            flushed = store.written_until
        store.prepare()
    store.flush()
    store.prepare()


def _make_batch(store: MessageStore, devices: range) -> PublishBatch:
    batch = PublishBatch(BATCH)
    batch.buf = bytes(range(256)) * (BATCH * BODY_BYTES // 256)
    batch.origin = encode_origin(b"mqtt", b"gateway-01", b"")
    for i, device in enumerate(devices):
        site = device % 16
        topic = b"site/%02d/dev/%06d/state" % (site, device)
        names = [
            b"%LMQ%mqtt%|23",
            b"%%LMQ%%mqtt%%site|2f%02d|2f|23" % site,
            b"%%LMQ%%mqtt%%site|2f%02d|2fdev|2f%06d|2f|23" % (site, device),
        ]
        batch.topics.append(topic)
        batch.routes.append(store.make_route(b"LMQ_PARENT", 0, encode_properties([(b"LMQ_TOPIC", topic)]), names))
        batch.route_index[i] = i
        batch.body_start[i], batch.body_end[i] = i * BODY_BYTES, (i + 1) * BODY_BYTES
    return batch
