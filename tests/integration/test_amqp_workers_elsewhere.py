"""Workers of task frameworks as their users run them, with kills: `make clients-amqp` runs these.

Programs in `amqpworkers` send tasks to two workers that do them. A worker is killed, and the server, and started
again. Each scenario counts what was sent, done, done twice and lost, here and by the same program on RabbitMQ, where
that is installed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from typing import NamedTuple

import pytest

from tests.benchmarks.scenarios.peers import find_rabbitmq, launch_rabbitmq
from tests.benchmarks.scenarios.server import make_folder, spare_ports, wait_until_up
from tests.support.elsewhere import BUILT, FETCH_S, PROGRAMS, beside_ci, fetch
from tests.support.gateway import GatewayProcess

COUNT = int(os.environ.get("LMQ_TEST_CLIENTS_COUNT", "200"))
DONE_S = 60
RUN_S = 1_200
KILLS = ("worker-killed", "server-killed")

pytestmark = [pytest.mark.slow, pytest.mark.clients, pytest.mark.timeout(2 * FETCH_S + RUN_S), beside_ci]


class Framework(NamedTuple):
    """What a framework is installed with, how its worker is run, and which scenarios there are besides kills."""

    name: str
    needs: tuple[str, ...]
    worker: tuple[str, ...]
    kinds: tuple[str, ...]


FRAMEWORKS = (
    Framework(
        "celery",
        ("celery",),
        ("celery", "-A", "celery_work", "worker", "-c", "2", "-l", "WARNING", "--without-gossip"),
        ("plain", "retried", "delayed", "result"),
    ),
    Framework(
        "dramatiq",
        ("dramatiq[rabbitmq]",),
        ("dramatiq", "dramatiq_work", "-p", "1", "-t", "4"),
        ("plain", "retried", "delayed"),
    ),
    Framework(
        "faststream",
        ("faststream[rabbit]",),
        ("python", "send.py", "faststream_work", "worker"),
        ("plain", "retried", "delayed", "result"),
    ),
    Framework(
        "nameko", ("nameko", "setuptools<81"), ("nameko", "run", "nameko_work", "--broker", "{url}"),
        ("plain", "retried", "result"),
    ),
    Framework(
        "taskiq",
        ("taskiq", "taskiq-aio-pika"),
        ("taskiq", "worker", "taskiq_work:broker", "-w", "1", "--ack-type", "when_executed"),
        ("plain", "retried", "delayed"),
    ),
)  # fmt: skip


class Gateway:
    """The gateway on a port that it keeps over kills."""

    name = "gateway"

    def __init__(self, folder):
        (self.port,) = spare_ports(1)
        doors = ("mqtt", "namesrv", "broker", "admin")
        self._process = GatewayProcess(folder / "data", "--amqp", f"127.0.0.1:{self.port}", doors=doors)
        self._process.start()

    def restart(self):
        self._process.restart()

    def end(self):
        self._process.kill()
        said = "".join(self._process.errors)
        assert "Traceback" not in said, said[-5_000:]


class Rabbit:
    """RabbitMQ, in the same way."""

    name = "rabbitmq"

    def __init__(self, folder):
        del folder
        names = ("amqp", "mqtt", "epmd", "distribution")
        self._ports = dict(zip(names, spare_ports(len(names)), strict=True))
        self.port = self._ports["amqp"]
        self._folder = make_folder("rabbitmq")
        self._start()

    def _start(self):
        self._server = launch_rabbitmq(self._folder, self._ports)
        self._server.ports = {"amqp": self.port}
        wait_until_up(self._server)

    def restart(self):
        self._server.end(patience_s=0)
        self._start()

    def end(self):
        self._server.stop()


class Workers:
    """The workers of one framework at one server."""

    def __init__(self, framework, server, folder, tmp_path):
        self._framework = framework
        self._folder = folder
        self._bin = BUILT / "amqpworkers" / f"{framework.name}-venv" / "bin"
        self._url = f"amqp://guest:guest@127.0.0.1:{server.port}"
        self.done = tmp_path / "done"
        self.done.touch()
        self._said = (tmp_path / f"{framework.name}-{server.name}.log").open("ab")
        self._running = [self._start(), self._start()]

    def _start(self):
        program, *options = (part.format(url=self._url) for part in self._framework.worker)
        return self._spawn(program, *options)

    def _spawn(self, program, *options):
        env = {**os.environ, "BROKER": self._url, "DONE": str(self.done), "PYTHONPATH": str(self._folder)}
        env["PYTHONWARNINGS"] = "ignore"
        return subprocess.Popen(
            [str(self._bin / program), *options],
            cwd=self._folder,
            env=env,
            stdout=self._said,
            stderr=self._said,
            start_new_session=True,
        )

    def send(self, kind, first):
        """Start a sender of `COUNT` tasks."""
        return self._spawn("python", "send.py", f"{self._framework.name}_work", kind, str(first), str(COUNT))

    def replace_one(self):
        """Kill a worker, and start another."""
        kill(self._running.pop(0))
        self._running.append(self._start())

    def end(self):
        for each in self._running:
            kill(each)
        self._said.close()


def kill(process):
    """Kill a process, and what it started, with -9."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_until(is_so, seconds):
    deadline = time.monotonic() + seconds
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.05)  # noqa: TID251 - processes of others


def count_done(path, first):
    """Return how often each task of a scenario was done, and how many were too early."""
    rows = [tuple(map(int, line.split())) for line in path.read_text().splitlines()]
    mine = [row for row in rows if first <= row[0] < first + COUNT]
    return Counter(number for number, _ in mine), sum(early > 0 for _, early in mine)


def run(framework, server, workers):
    """Run all scenarios, print the counts of each and return them."""
    found = {}
    for index, scenario in enumerate((*framework.kinds, *KILLS)):
        first = index * COUNT
        sender = workers.send("plain" if scenario in KILLS else scenario, first)
        if scenario in KILLS:
            wait_until(lambda first=first: len(count_done(workers.done, first)[0]) >= COUNT // 3, DONE_S)
            workers.replace_one() if scenario == "worker-killed" else server.restart()
        with contextlib.suppress(subprocess.TimeoutExpired):
            sender.wait(DONE_S)
        wait_until(lambda first=first: len(count_done(workers.done, first)[0]) >= COUNT, DONE_S)
        done, early = count_done(workers.done, first)
        twice = sum(times > 1 for times in done.values())
        found[scenario] = {
            "sent": COUNT if sender.poll() == 0 else -1,
            "done": len(done),
            "twice": twice,
            "lost": COUNT - len(done),
            "early": early,
        }
        kill(sender)
        counts = " ".join(f"{name}={number}" for name, number in found[scenario].items())
        sys.stdout.write(f"  {framework.name:10} {server.name:8} {scenario:14} {counts}\n")
    return found


def install(framework):
    """Have a folder with the programs, and a Python that has the framework."""
    folder = BUILT / "amqpworkers"
    shutil.copytree(PROGRAMS / "amqpworkers", folder, dirs_exist_ok=True)
    venv = folder / f"{framework.name}-venv"
    python = venv / "bin" / "python"
    if not python.exists():
        fetch(sys.executable, folder, sys.executable, "-m", "venv", str(venv))
    fetch(str(python), venv, str(python), "-m", "pip", "install", "-q", "--prefer-binary", *framework.needs)
    return folder


@pytest.mark.parametrize("make_server", [Gateway, Rabbit], ids=lambda one: one.name)
@pytest.mark.parametrize("framework", FRAMEWORKS, ids=lambda one: one.name)
def test_tasks_are_done_over_kills(framework, make_server, tmp_path):
    if make_server is Rabbit and find_rabbitmq() is None:
        pytest.skip("there is no RabbitMQ to compare with")
    folder = install(framework)
    server = make_server(tmp_path)
    sys.stdout.write("\n")
    try:
        workers = Workers(framework, server, folder, tmp_path)
        try:
            found = run(framework, server, workers)
        finally:
            workers.end()
    finally:
        server.end()
    if make_server is Rabbit:
        return  # what it gives is printed, to compare
    for scenario, counts in found.items():
        wanted = {"sent": COUNT, "done": COUNT, "lost": 0, "early": 0}
        assert {name: counts[name] for name in wanted} == wanted, scenario
        assert scenario in KILLS or counts["twice"] == 0, scenario
