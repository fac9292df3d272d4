"""`make bench`: the same loads on the gateway and on each peer that is found, in alternation, side by side."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import datetime as dt
import os
import random
import resource
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import uvloop
from rich.console import Console

from tests.benchmarks.chosen import choose
from tests.benchmarks.ending import Ending
from tests.benchmarks.figure import tally
from tests.benchmarks.scenarios import report as reporting
from tests.benchmarks.scenarios.figures import Round, Row, value_of, verdicts
from tests.benchmarks.scenarios.load import Result
from tests.benchmarks.scenarios.page_cache import FullPageCache, full_page_cache
from tests.benchmarks.scenarios.peers import PEERS, Peer
from tests.benchmarks.scenarios.scenario import Scenario
from tests.benchmarks.scenarios.scenarios import SCENARIOS
from tests.benchmarks.scenarios.server import FOLDERS, ROOT, Server

RUN_MAX_S = 360.0  # a run that takes so much longer than its stretch has failed; a million messages are stored in some
NOT_UNLESS_ASKED = {"gateway-async", "rocketmq-async"}


@dataclass
class Running:
    """A server that is up, what its files held before any load, and what it confirmed since."""

    server: Server
    disk_bytes: int
    acked: int = 0


class Bench:
    """One invocation: which peers, how long, and where progress is shown."""

    def __init__(
        self,
        versions: dict[str, str],
        secs: float,
        rounds: int,
        payload_bytes: int | None,
        ending: Ending,
        page_cache: FullPageCache,
    ) -> None:
        self.versions = versions
        self.secs = secs
        self.rounds = rounds
        self.payload_bytes = payload_bytes
        self.ending = ending
        self.page_cache = page_cache
        self.console = Console(width=None if sys.stdout.isatty() else 160)

    def run(self, scenario: Scenario) -> list[Row]:
        """Run all rounds of one scenario on all servers that can do it."""
        peers = [p for name, p in PEERS.items() if name in self.versions and can_do(p, scenario)]
        rows = {peer.name: Row(peer.name, self.versions[peer.name], peer.is_ours) for peer in peers}
        with running() as servers, self.console.status("") as status:
            rounds = self.rounds * scenario.times_rounds
            for number_of_round in range(rounds):
                for peer in shuffled(peers, number_of_round):
                    self.ending.check()
                    if not rows[peer.name].failure:
                        status.update(f"{scenario.name}: round {number_of_round + 1} of {rounds}, {peer.name}")
                        self.run_round(scenario, peer, rows[peer.name], servers)
        return list(rows.values())

    def run_round(self, scenario: Scenario, peer: Peer, row: Row, servers: dict[str, Running]) -> None:
        """Run one round on one server; what goes wrong is the row's failure."""
        try:
            if peer.name not in servers:
                server = peer.start()
                servers[peer.name] = Running(server, server.disk_bytes())
            self.page_cache.fill()
            os.sync()  # what one server left to be written is not written in another's time
            row.rounds.append(self.measure(scenario, peer, servers[peer.name]))
        except Exception as error:  # noqa: BLE001 - whatever a peer does to a load, the others are still measured
            row.failure = f"{type(error).__name__} {error}"
        else:
            figure = scenario.figure.text(value_of(scenario.figure, row.rounds[-1]))
            self.console.print(f"[dim]{scenario.name} {peer.name} {figure}", highlight=False)
        if (scenario.is_fresh or row.failure) and peer.name in servers:
            servers.pop(peer.name).server.stop()

    def measure(self, scenario: Scenario, peer: Peer, running: Running) -> Round:
        """Put the load on the server once."""
        server = running.server
        result = uvloop.run(self.bounded(scenario, peer, server))
        if not server.is_up():
            raise RuntimeError("the server ended")
        round_ = Round(result, server.private_bytes())
        running.acked += result.total.acked
        if scenario.measures_disk and running.acked:
            round_.disk_bytes_each = (server.disk_bytes() - running.disk_bytes) / running.acked
        return round_

    async def bounded(self, scenario: Scenario, peer: Peer, server: Server) -> Result:
        """Await the load, but not for ever."""
        secs = self.secs * scenario.secs_share
        load = scenario.load_of(peer.name)(server, secs, self.payload_bytes or scenario.payload_bytes)
        return await asyncio.wait_for(load, 3 * secs + RUN_MAX_S)


def can_do(peer: Peer, scenario: Scenario) -> bool:
    """Whether the peer has the doors of the scenario, or another way to do it, and is not known to be unable."""
    return (scenario.doors <= peer.doors or peer.name in scenario.instead) and peer.name not in scenario.without


def shuffled(peers: Sequence[Peer], number_of_round: int) -> list[Peer]:
    """Return the servers in the order of a round: the same in each run, but none always follows the same."""
    return random.Random(number_of_round).sample(peers, len(peers))


@contextlib.contextmanager
def running() -> Iterator[dict[str, Running]]:
    """Hold the running servers by name; all of them are stopped in the end."""
    servers: dict[str, Running] = {}
    try:
        yield servers
    finally:
        for each in servers.values():
            each.server.stop()


def find_versions(names: str, console: Console) -> dict[str, str]:
    """Return the versions of those peers that are installed, of `names` where it says any; say which are not."""
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if unknown := set(wanted) - set(PEERS):
        raise ValueError(f"no peer {', '.join(sorted(unknown))}; there are: {', '.join(PEERS)}")
    found = {}
    for name in wanted or [name for name in PEERS if name not in NOT_UNLESS_ASKED]:
        if (version := PEERS[name].find_version()) is None:
            console.print(f"skipped: {name} is not installed (make bench-peers gets what it can)", highlight=False)
        else:
            found[name] = version
    return found


def parse_arguments() -> argparse.Namespace:
    """Return what the command line asks for; an empty value is the default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", default="", help="names, comma-separated, * for anything")
    parser.add_argument("--peers", default="", help=f"of: {', '.join(PEERS)}")
    parser.add_argument("--secs", default="2", type=lambda text: float(text or 2), help="of each measured stretch")
    parser.add_argument("--rounds", default="4", type=lambda text: int(text or 4), help="the first is thrown away")
    parser.add_argument("--bytes", default="", help="of a message's body; each scenario's own where not given")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "out")
    parser.add_argument("--list", action="store_true", help="list the scenarios")
    return parser.parse_args()


def main() -> None:
    """Run what was asked for; show each table as soon as it is there."""
    arguments = parse_arguments()
    if arguments.list:
        print("\n".join(f"{each.name:16} {each.title}" for each in SCENARIOS))
        return
    ending = Ending("bench")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        scenarios = choose(SCENARIOS, arguments.scenario)
        versions = find_versions(arguments.peers, Console())
    except ValueError as error:
        sys.exit(f"bench: {error}")
    payload_bytes = int(arguments.bytes) if arguments.bytes else None
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")  # noqa: TID251 - the date of the report
    report = reporting.Report(arguments.secs, arguments.rounds, now, os.getloadavg())
    with full_page_cache(FOLDERS) as page_cache:
        print("bench: filling free memory with pages of a file, up to a minute", flush=True)
        page_cache.fill()
        bench = Bench(versions, arguments.secs, arguments.rounds, payload_bytes, ending, page_cache)
        for scenario in scenarios:
            if missing := scenario.why_not():
                bench.console.print(f"skipped: {scenario.name}: {missing}", highlight=False)
                continue
            rows = bench.run(scenario)
            report.parts.append((scenario, rows))
            bench.console.print(reporting.table(scenario, rows))
            report.load_after = os.getloadavg()
            paths = reporting.write(report, arguments.out)
    words = [each.word for part in report.parts for row in part[1] for each in verdicts(part[0], row, part[1])]
    print("\n".join(f"written: {path}" for path in paths))
    print(f"floors: {tally(words) or 'none'}")


if __name__ == "__main__":
    main()
