"""`make bench-watched`: what a load loses beside many queues and connections, and while a console asks about them.

One gateway is alone; another one has the queues and idle connections. Each load runs on the first, on the second, and
on the second while a process asks each second what an operator's console asks.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import http.client
import json
import random
import resource
import statistics
import subprocess
import sys
from collections.abc import Iterator

import uvloop
from rich.console import Console
from rich.table import Table

from tests.benchmarks.scale.gateway import Gateway, gateway
from tests.benchmarks.scenarios.load import Result
from tests.benchmarks.scenarios.scenario import Scenario
from tests.benchmarks.scenarios.scenarios import SCENARIOS
from tests.benchmarks.scenarios.server import ROOT

LOADS = ("mqtt-qos1", "amqp")
ALONE, BESIDE, ASKED = "alone", "beside them", "and asked each second"
LOSS_MAX = 0.03
DECLARE_S = 600.0
DECLARED_AT_ONCE = 10_000
LOGIN = "Basic " + base64.b64encode(b"guest:guest").decode()


def declare(port: int, count: int) -> None:
    """Make so many durable queues."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DECLARE_S)
    with contextlib.closing(connection):
        for start in range(0, count, DECLARED_AT_ONCE):
            names = range(start, min(start + DECLARED_AT_ONCE, count))
            queues = [{"name": f"idle{number:06}", "vhost": "/", "durable": True} for number in names]
            connection.request("POST", "/api/definitions", json.dumps({"queues": queues}), {"Authorization": LOGIN})
            answer = connection.getresponse()
            said = answer.read()
            if answer.status >= http.client.BAD_REQUEST:
                raise RuntimeError(f"queues were not made: {said.decode()}")


class Company:
    """The process that has the idle connections, and asks."""

    def __init__(self, ours: Gateway, connections: int) -> None:
        ports = [str(ours.server.ports[door]) for door in ("admin", "mqtt")]
        command = [sys.executable, "-m", "tests.benchmarks.scenarios.company", *ports, str(connections)]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self._read() != "ready":
            raise RuntimeError("the idle connections were not opened")

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def tell(self, word: str) -> None:
        """Have it `ask` or `rest` from now on."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()

    def end(self) -> dict[str, list[float]]:
        """End it; return for each question how many milliseconds each answer took."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        took_ms: dict[str, list[float]] = json.loads(self._read() or "{}")
        self._process.wait()
        return took_ms

    def kill(self) -> None:
        """End it where it still runs, and its pipes."""
        if self._process.poll() is None:
            self._process.kill()
        with self._process:  # closes them, and waits
            pass


@contextlib.contextmanager
def company(ours: Gateway, connections: int) -> Iterator[Company]:
    """Hold the process; what is left of it is ended."""
    made = Company(ours, connections)
    try:
        yield made
    finally:
        made.kill()


def measure(scenario: Scenario, ours: Gateway, secs: float) -> Result:
    """Put a load on a gateway once."""
    return uvloop.run(scenario.load(ours.server, secs, scenario.payload_bytes))  # type: ignore[arg-type] # a coroutine


def write_table(scenario: Scenario, found: dict[str, list[Result]]) -> Table:
    """Return what one load lost, by medians of all rounds but the first."""
    table = Table(title=scenario.title, title_justify="left")
    for heading in ("", "rate /s", "CPU of the server µs", "rate beside alone", "CPU beside alone", ""):
        table.add_column(heading, justify="left" if not heading else "right")
    alone = medians(found[ALONE])
    for name, results in found.items():
        rate, cpu = medians(results)
        words = "" if name == ALONE else ("met" if rate >= (1 - LOSS_MAX) * alone[0] else "missed")
        table.add_row(name, f"{rate:,.0f}", f"{cpu:.2f}", f"{rate / alone[0]:.3f}", f"{cpu / alone[1]:.3f}", words)
    return table


def write_answers(took_ms: dict[str, list[float]]) -> Table:
    """Return how long the answers to each question took while a load ran."""
    table = Table(title="Answers beside the load, ms", title_justify="left")
    for heading in ("", "answers", "median", "90th percentile", "longest"):
        table.add_column(heading, justify="left" if not heading else "right", overflow="fold")
    for path, took in took_ms.items():
        ordered = sorted(took) or [float("nan")]
        figures = (statistics.median(ordered), ordered[len(ordered) * 9 // 10], ordered[-1])
        table.add_row(path, f"{len(took)}", *(f"{figure:.0f}" for figure in figures))
    return table


def medians(results: list[Result]) -> tuple[float, float]:
    """Return the rate and the server's CPU of a message."""
    kept = results[1:] or results
    return statistics.median(one.rate for one in kept), statistics.median(one.server_us for one in kept)


def run(queues: int, connections: int, secs: float, rounds: int, console: Console) -> None:
    """Measure, and show a table for each load."""
    scenarios = [one for one in SCENARIOS if one.name in LOADS]
    with gateway() as alone, gateway() as beside:
        alone.start()
        beside.start()
        console.print(f"making {queues:,} queues and {connections:,} connections")
        declare(beside.server.ports["admin"], queues)
        with company(beside, connections) as asking:
            for scenario in scenarios:
                found: dict[str, list[Result]] = {ALONE: [], BESIDE: [], ASKED: []}
                for number in range(rounds):
                    for name in random.Random(number).sample(list(found), len(found)):
                        asking.tell("ask" if name == ASKED else "rest")
                        found[name].append(measure(scenario, alone if name == ALONE else beside, secs))
                        console.print(f"{scenario.name}, round {number + 1}, {name}: {found[name][-1].rate:,.0f} /s")
                asking.tell("rest")
                console.print(write_table(scenario, found))
            console.print(write_answers(asking.end()))


def main() -> None:
    """Run what the command line asks for; an empty value is the default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queues", default="100000", type=lambda text: int(text or 100_000))
    parser.add_argument("--connections", default="10000", type=lambda text: int(text or 10_000))
    parser.add_argument("--secs", default="5", type=lambda text: float(text or 5), help="of each measured stretch")
    parser.add_argument("--rounds", default="6", type=lambda text: int(text or 6), help="the first is thrown away")
    arguments = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    run(arguments.queues, arguments.connections, arguments.secs, arguments.rounds, Console())


if __name__ == "__main__":
    main()
