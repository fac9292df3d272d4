"""A process that publishes until it is killed: `python -m tests.support.writer DATA_DIR SEED`.

Each message that the store has taken is acknowledged by a line on standard output: its number and its queue offset. A
thread flushes and prepares meanwhile, as the gateway's do.
"""

from __future__ import annotations

import os
import queue
import random
import sys
import threading
from pathlib import Path

from core.settings import RetentionSettings, StoreSettings
from tests.support.store import NOW_MS, make_batch, open_store

ALL = b"%LMQ%all"
OTHERS = [b"%%LMQ%%other|%03d" % k for k in range(100)]
SETTINGS = StoreSettings(segment_bytes=256 * 1024, inline_dispatch_bytes=500, retention=RetentionSettings(age_hours=1))


def body_of(number: int) -> bytes:
    """Return the body of message `number`: it begins with the number, and its size follows from it."""
    return (b"%d:" % number) + b"x" * (number * 7919 % 3000)


def flush_forever(store, flushes: queue.SimpleQueue, done: queue.SimpleQueue) -> None:
    """Carry flushes out, and prepare, one after the other, as long as the process lives."""
    while True:
        store.prepare()
        flushes.get().run()
        done.put(True)


def main() -> None:
    """Publish until killed."""
    store = open_store(Path(sys.argv[1]), SETTINGS)
    rng = random.Random(int(sys.argv[2]))
    queue_ref = store.intern_queue(ALL)
    flushes = queue.SimpleQueue()
    done = queue.SimpleQueue()
    threading.Thread(target=flush_forever, args=(store, flushes, done), daemon=True).start()
    flushes.put(store.begin_flush())
    while True:
        if not done.empty():
            done.get()
            store.end_flush()
            flushes.put(store.begin_flush())
        first = store.max_offset(queue_ref)
        numbers = range(first, first + rng.randint(1, 20))
        batch = make_batch(
            [
                (store.make_route(b"T", 0, b"", [ALL, *rng.sample(OTHERS, rng.choice((0, 2, 60)))]), body_of(number))
                for number in numbers
            ]
        )
        store.append_batch(batch, NOW_MS)
        os.write(1, b"".join(b"%d\n" % number for number in numbers))


if __name__ == "__main__":
    main()
