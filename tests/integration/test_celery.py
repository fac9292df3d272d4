"""A worker of Celery and a program that sends it tasks, each a process of its own, with Celery's own defaults."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import pytest

from tests.support.gateway import GatewayProcess
from tests.support.sources import ROOT

pytestmark = pytest.mark.slow
TASKS = "tests.support.celery_tasks"
WAIT_S = 60


@pytest.fixture
def broker(tmp_path):
    with GatewayProcess(tmp_path / "data") as gateway:
        yield {**os.environ, "BROKER": "amqp://guest:guest@{}:{}//".format(*gateway.address("amqp"))}
        assert gateway.stop() == 0
        assert not [line for line in gateway.errors if " error " in line or "Traceback" in line]


@pytest.fixture
def worker(broker):
    command = [sys.executable, "-W", "ignore", "-m", "celery", "-A", TASKS, "worker", "-c", "1", "-l", "INFO"]
    process = subprocess.Popen(
        command, cwd=ROOT, env=broker, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    watchdog = threading.Timer(WAIT_S, process.kill)
    watchdog.start()
    said = []
    for line in process.stderr:
        said.append(line)
        if " ready." in line:
            break
    reader = threading.Thread(target=said.extend, args=(process.stderr,))
    reader.start()
    yield said
    process.terminate()
    process.wait()
    reader.join()
    process.stderr.close()
    watchdog.cancel()


def test_tasks_are_done_tried_again_and_answered(broker, worker, tmp_path):
    program = f"from {TASKS} import main; main({str(tmp_path / 'noted')!r})"
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        cwd=ROOT,
        env=broker,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert result.returncode == 0, result.stderr + "".join(worker)
    assert json.loads(result.stdout) == {
        "sum": 5,
        "retries": 2,
        "retries later": 1,
        "sums": [2 * number for number in range(20)],
        "failure": "ValueError('on purpose')",
        "workers": 1,
    }
    assert (tmp_path / "noted").read_text() == "done"
