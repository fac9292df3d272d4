"""Celery's Flower, which asks the admin API for the queues of its broker page: `make clients-amqp` runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager

import pytest

from tests.benchmarks.scenarios.server import spare_ports
from tests.support.elsewhere import BUILT, FETCH_S, beside_ci, fetch
from tests.support.gateway import DOORS, GatewayProcess
from tests.support.sources import ROOT

NEEDS = ("celery==5.6.3", "flower==2.2.0")
TASKS = "tests.support.celery_tasks"
WAIT_S = 90
ASK = f"from {TASKS} import add; print(add.delay(2, 3).get(timeout={WAIT_S}))"

pytestmark = [pytest.mark.slow, pytest.mark.clients, pytest.mark.timeout(2 * FETCH_S + 4 * WAIT_S), beside_ci]


@pytest.fixture
def python():
    folder = BUILT / "flower-venv"
    made = folder / "bin" / "python"
    if not made.exists():
        fetch(sys.executable, folder.parent, sys.executable, "-m", "venv", str(folder))
    fetch(str(made), folder, str(made), "-m", "pip", "install", "-q", "--prefer-binary", *NEEDS)
    return str(made)


@contextmanager
def running(command, env, log):
    with log.open("w") as said:
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=said, stderr=said)
        try:
            yield
        finally:
            process.terminate()
            process.wait(WAIT_S)


def ask_until(url, is_it, log):
    """Return what Flower answers once it is what is waited for."""
    deadline, found = time.monotonic() + WAIT_S, None
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=WAIT_S) as answer:
                found = json.loads(answer.read())
            if is_it(found):
                return found
        except (urllib.error.URLError, ConnectionError) as error:
            found = error
        time.sleep(0.2)  # noqa: TID251 - Flower is asked again: it says nothing by itself
    raise AssertionError(f"{url}: {found}\n{log.read_text()[-3_000:]}")


def test_flower_shows_workers_tasks_and_by_the_admin_api_the_queues(tmp_path, python):
    with ExitStack() as open_ones:
        gateway = open_ones.enter_context(GatewayProcess(tmp_path / "data", doors=DOORS))
        broker = "amqp://guest:guest@{}:{}//".format(*gateway.address("amqp"))
        env = {**os.environ, "BROKER": broker, "FLOWER_UNAUTHENTICATED_API": "true", "PYTHONWARNINGS": "ignore"}
        celery = [python, "-m", "celery", "-A", TASKS]
        open_ones.enter_context(running([*celery, "worker", "-c", "1", "-E"], env, tmp_path / "worker"))
        (port,) = spare_ports(1)
        api = "http://guest:guest@{}:{}/api/".format(*gateway.address("admin"))
        flower = ["flower", "--address=127.0.0.1", f"--port={port}", f"--broker-api={api}"]
        log = tmp_path / "flower"
        open_ones.enter_context(running([*celery, *flower], env, log))
        url = f"http://127.0.0.1:{port}/api"
        (worker,) = ask_until(f"{url}/workers?refresh=1", bool, log)
        asked = subprocess.run([python, "-c", ASK], cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True, check=True)
        assert asked.stdout.split() == ["5"]
        (task,) = ask_until(
            f"{url}/tasks", lambda found: [one["state"] for one in found.values()] == ["SUCCESS"], log
        ).values()
        assert (task["name"], task["worker"]) == (f"{TASKS}.add", worker)
        queues = ask_until(f"{url}/queues/length", lambda found: found.get("active_queues"), log)["active_queues"]
        assert [(one["name"], one["messages"]) for one in queues] == [("celery", 0)]
        assert not any("Traceback" in line for line in gateway.errors), "".join(gateway.errors)
