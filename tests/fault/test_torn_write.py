from __future__ import annotations

import random
import shutil

import pytest

from core.store.reader import StoreReader
from tests.support.store import light, open_store, publish, read_queue
from tests.support.writer import ALL, SETTINGS, body_of

PAGE = 4096


def publish_some(store, rng, count):
    """Publish `count` messages, numbered on from the queue's end; return the batches."""
    queue_ref = store.intern_queue(ALL)
    batches = []
    for _ in range(count):
        number = store.max_offset(queue_ref)
        names = [ALL, *light(*(f"other{k:02}" for k in rng.sample(range(60), rng.choice((0, 1, 50)))))]
        batches.append(publish(store, store.make_route(b"T", 0, b"", names), body_of(number)))
    return batches


def tear(folder, from_offset, rng):
    """Lose pages of the log after `from_offset`, as a power cut does: old zeros or garbage are there instead."""
    for path in sorted((folder / "commitlog").iterdir()):
        data = bytearray(path.read_bytes())
        base = int(path.name)
        for at in range(0, len(data), PAGE):
            if base + at + PAGE <= from_offset or rng.random() < 0.5:
                continue
            start = max(at, from_offset - base)
            size = at + PAGE - start
            data[start : at + PAGE] = bytes(size) if rng.random() < 0.7 else rng.randbytes(size)
        path.write_bytes(data)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_power_cut_costs_nothing_that_was_synced_and_invents_nothing(tmp_path, seed):
    rng = random.Random(seed)
    folder = tmp_path / "0"
    store = open_store(folder, SETTINGS)
    for cut in range(4):
        publish_some(store, rng, rng.randint(1, 150))
        if rng.random() < 0.5:
            store.prepare()
        store.flush()
        synced = store.flushed_until
        kept = read_queue(store, ALL)
        publish_some(store, rng, rng.randint(0, 150))
        after = tmp_path / str(cut + 1)
        shutil.copytree(folder, after)
        store.close()
        folder = after
        tear(folder, synced, rng)
        store = open_store(folder, SETTINGS)
        found = read_queue(store, ALL)
        assert found[: len(kept)] == kept
        offsets = [offset for offset, _ in found]
        assert offsets == sorted(set(offsets))
        assert all(body == body_of(offset) for offset, body in found)
        reader = StoreReader.open(folder)
        assert reader.segments()[-1].end == store.written_until
    store.close()
