from __future__ import annotations

import random
import subprocess
import sys
import threading

import pytest

from tests.support.store import open_store, read_queue
from tests.support.writer import ALL, OTHERS, SETTINGS, body_of

KILLS = 50


def run_and_kill(data_dir, seed, after_lines):
    """Run a writer until it has acknowledged `after_lines` messages, kill it; return the numbers it acknowledged."""
    command = [sys.executable, "-m", "tests.support.writer", str(data_dir), str(seed)]
    acknowledged = []
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        timer = threading.Timer(60, process.kill)
        timer.start()
        for line in process.stdout:
            if not line.endswith(b"\n"):
                break  # killed within a write
            acknowledged.append(int(line))
            if len(acknowledged) == after_lines:
                process.kill()
        timer.cancel()
    assert len(acknowledged) >= after_lines
    return acknowledged


@pytest.mark.slow
@pytest.mark.timeout(300)  # fifty starts of Python, beside other tests on a few cores
def test_killed_writer_loses_nothing_that_it_acknowledged(tmp_path):
    rng = random.Random(11)
    checked = 0
    acknowledged = -1
    for seed in range(KILLS):
        numbers = run_and_kill(tmp_path, seed, rng.randint(1, 900))
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        acknowledged = max(acknowledged, numbers[-1])
        store = open_store(tmp_path, SETTINGS)
        assert not store.report.damaged_at
        assert not store.report.entries_lost
        found = read_queue(store, ALL, checked)
        assert found == [(number, body_of(number)) for number in range(checked, checked + len(found))]
        checked += len(found)
        assert checked > acknowledged
        store.close()
    store = open_store(tmp_path, SETTINGS)
    for queue in OTHERS[:10]:
        found = read_queue(store, queue)
        assert [offset for offset, _ in found] == list(range(len(found)))
        numbers = [int(body.partition(b":")[0]) for _, body in found]
        assert numbers == sorted(set(numbers))
        assert all(body == body_of(number) for number, (_, body) in zip(numbers, found, strict=True))
    store.close()
