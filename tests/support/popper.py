"""A process that shares out a queue until it is killed: `python -m tests.support.popper DATA_DIR SEED`.

Standard output says what happened, after it did: `T offset attempt` taken, `A offset` acknowledged.
"""

from __future__ import annotations

import os
import random
import sys
from array import array
from pathlib import Path

from core.message import StoredBatch
from core.pop import journal
from core.pop.pop_service import PopService
from core.settings import StoreSettings
from tests.support.store import NOW_MS, open_store, publish

QUEUE, GROUP = b"%LMQ%amqp%|2f%work", b"amqp"
SETTINGS = StoreSettings(segment_bytes=256 * 1024)


def report(letter: str, offsets, attempts) -> None:
    """Write one line for each offset, in one write."""
    os.write(1, "".join(f"{letter} {offset} {n}\n" for offset, n in zip(offsets, attempts, strict=True)).encode())


def main() -> None:
    """Publish, take, acknowledge and give back until killed."""
    journal.COMPACT_BYTES_MIN = 32 * 1024  # kills come while the journal is compacted, too
    store, chance = open_store(Path(sys.argv[1]), SETTINGS), random.Random(int(sys.argv[2]))
    queue = PopService(store, store.journal("pop")).open(QUEUE, GROUP)
    route = store.make_route(b"T", 0, b"", [QUEUE])
    batch, mine = StoredBatch(64), []
    while True:
        publish(store, route, *[b"x" * chance.randrange(300)] * chance.randint(1, 60))
        while queue.take(batch, chance.randint(1, 64), 1 << 30, 0, NOW_MS):
            offsets = list(batch.queue_offset[: batch.count])
            report("T", offsets, list(batch.attempt[: batch.count]))
            mine += offsets
        chance.shuffle(mine)
        done, back, mine = (
            mine[: len(mine) * 3 // 4],
            mine[len(mine) * 7 // 8 :],
            mine[len(mine) * 3 // 4 : len(mine) * 7 // 8],
        )
        queue.ack_many(array("q", done), len(done))
        report("A", done, [0] * len(done))
        queue.nack_many(array("q", back), len(back))


if __name__ == "__main__":
    main()
