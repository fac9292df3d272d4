"""A killed process forgets no acknowledgement, and gives everything else again."""

from __future__ import annotations

import random
import subprocess
import sys
import threading

import pytest

from core.message import StoredBatch
from core.pop.pop_service import PopService
from tests.support.popper import GROUP, QUEUE, SETTINGS
from tests.support.store import NOW_MS, open_store

KILLS = 8


def run_and_kill(data_dir, seed, after_lines):
    """Run a consumer until it has written so many lines, kill it; return the lines."""
    command = [sys.executable, "-m", "tests.support.popper", str(data_dir), str(seed)]
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        timer = threading.Timer(60, process.kill)
        timer.start()
        for line in process.stdout:
            if line.endswith(b"\n"):
                lines.append(line.split())
            if len(lines) == after_lines:
                process.kill()
        timer.cancel()
    assert len(lines) >= after_lines
    return [(letter, int(offset), int(attempt)) for letter, offset, attempt in lines]


@pytest.mark.slow
def test_killed_consumer_gets_again_what_it_did_not_acknowledge_and_nothing_else(tmp_path):
    chance = random.Random(5)
    done, given = set(), {}
    for seed in range(KILLS):
        for letter, offset, attempt in run_and_kill(tmp_path, seed, chance.randint(1, 3000)):
            assert offset not in done
            if letter == b"A":
                done.add(offset)
            else:
                assert attempt > given.get(offset, 0)  # higher by more than 1 if a kill came before the line
                given[offset] = attempt
        store = open_store(tmp_path, SETTINGS)
        queue = PopService(store, store.journal("pop")).open(QUEUE, GROUP)
        end = store.max_offset(queue.queue_ref)
        assert queue.unacked_count == 0
        batch, left = StoredBatch(64), set()
        while queue.take(batch, 64, 1 << 30, 0, NOW_MS):
            for i in range(batch.count):
                offset = batch.queue_offset[i]
                left.add(offset)
                assert batch.attempt[i] > given.get(offset, 0)
                given[offset] = batch.attempt[i]
        assert not left & done
        missing = set(range(end)) - left - done
        assert len(missing) <= 400  # acknowledged by the call that the kill came right after
        done |= missing
        batch.clear()
        store.close()
