"""`make bench-scale`: what things cost as they grow, each figure beside its bound."""

from __future__ import annotations

import argparse
import datetime as dt
import os
import resource
import sys
from pathlib import Path

from rich.console import Console

from tests.benchmarks.chosen import choose
from tests.benchmarks.ending import Ending
from tests.benchmarks.figure import tally
from tests.benchmarks.scale.points import Point, parse_sizes
from tests.benchmarks.scale.progress import Run
from tests.benchmarks.scale.report import Part, Report, tables, write
from tests.benchmarks.scale.scenarios import SCENARIOS, Scenario, choose_sizes
from tests.benchmarks.scenarios.server import ROOT


def measure(run: Run, scenario: Scenario, sizes: list[int], ending: Ending) -> Part:
    """Measure each size; what goes wrong at one is its failure."""
    part = Part(scenario)
    run.scenario = scenario.name
    with run.console.status("") as run.status:
        for size in sizes:
            ending.check()
            try:
                part.points.append(Point(size, scenario.measure(run, size)))
            except Exception as error:  # noqa: BLE001 - the other sizes are still measured
                part.failures[size] = f"{type(error).__name__} {error}"
            else:
                run.console.print(f"[dim]{scenario.name}: {size:,} {scenario.sizes_of} measured", highlight=False)
    return part


def parse_arguments() -> argparse.Namespace:
    """Return what the command line asks for; an empty value is the default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", default="", help="names, comma-separated, * for anything")
    parser.add_argument("--sizes", default="", help="1000,1e5 for these, ..1e5 for the scenario's own up to that")
    parser.add_argument("--rounds", default="3", type=lambda text: int(text or 3), help="their median is what counts")
    parser.add_argument("--secs", default="2", type=lambda text: float(text or 2), help="of each measured stretch")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "out" / "scale")
    parser.add_argument("--list", action="store_true", help="list the scenarios")
    return parser.parse_args()


def main() -> None:
    """Run what was asked for; show each table as soon as it is there."""
    arguments = parse_arguments()
    if arguments.list:
        for each in SCENARIOS:
            print(f"{each.name:15} {each.title} ({', '.join(f'{size:,}' for size in each.sizes)} {each.sizes_of})")
        return
    ending = Ending("bench-scale")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        scenarios = choose(SCENARIOS, arguments.scenario)
        wanted, size_max = parse_sizes(arguments.sizes)
    except ValueError as error:
        sys.exit(f"bench-scale: {error}")
    run = Run(arguments.rounds, arguments.secs, Console(width=None if sys.stdout.isatty() else 160))
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")  # noqa: TID251 - the date of the report
    report = Report(arguments.rounds, arguments.secs, now, os.getloadavg())
    for scenario in scenarios:
        report.parts.append(measure(run, scenario, choose_sizes(scenario, wanted, size_max), ending))
        for table in tables(report.parts[-1]):
            run.console.print(table)
        paths = write(report, arguments.out)
    print("\n".join(f"written: {path}" for path in paths))
    words = [each.word for part in report.parts for each in part.verdicts()]
    print(f"bounds: {tally(words) or 'none'}")
    sys.exit(1 if any(part.failures for part in report.parts) else 0)


if __name__ == "__main__":
    main()
