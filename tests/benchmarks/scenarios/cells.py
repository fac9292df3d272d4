"""The table of a scenario as texts: one row for each server, and for each peer of which only others have a figure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from tests.benchmarks.figure import number
from tests.benchmarks.scenarios.elsewhere import FIGURES, HEADING, elsewhere
from tests.benchmarks.scenarios.figures import Row, compared, ratio, server_us, verdicts
from tests.benchmarks.scenarios.scenario import DISK, P99, SERVER_CPU, Scenario

COLUMNS = (
    "server",
    "version",
    "median",
    "min–max",
    "CPU µs",
    "private MB",
    "load CPU",
    "to best peer",
    "floor",
    HEADING,
    "besides",
)


def table_rows(scenario: Scenario, rows: Sequence[Row]) -> list[tuple[Row, tuple[str, ...]]]:
    """Return the servers of the run, then the peers that only gave a figure elsewhere, with their texts."""
    there = {row.peer for row in rows}
    others = [Row(peer, "", is_ours=False) for peer in FIGURES.get(scenario.name, {}) if peer not in there]
    return [(row, cells(scenario, row, rows)) for row in (*rows, *others)]


def cells(scenario: Scenario, row: Row, rows: Sequence[Row]) -> tuple[str, ...]:
    """Return a row of the table, one text for each of COLUMNS."""
    own, published = compared(scenario.figure, row), elsewhere(scenario.name, row.peer)
    if own is None:
        said = ("failed", row.failure.strip().splitlines()[-1][:80]) if row.failure else ("not run", "")
        return (row.peer, row.version, said[0], "", "", "", "", "", "", published, said[1])
    cpu = server_us(row)
    times = ratio(scenario.figure, row, rows)
    return (
        row.peer,
        row.version,
        scenario.figure.text(own.median),
        f"{number(own.low)}–{number(own.high)}",
        number(cpu) if cpu is not None else "",
        number(statistics.median(each.private_mb for each in row.kept)),
        f"{statistics.median(each.result.load_cpu_s / each.result.secs for each in row.kept):.0%}",
        f"{times.text()}x" if times is not None else "",
        "\n".join(each.text(scenario) for each in verdicts(scenario, row, rows)),
        published,
        ", ".join(remarks(scenario, row)),
    )


def remarks(scenario: Scenario, row: Row) -> list[str]:
    """Return what the columns do not say: further figures, disk, and what went wrong."""
    said = []
    for name in row.kept[-1].result.more:
        if name != scenario.figure.name:
            values = [each.result.more[name] for each in row.kept if name in each.result.more]
            said.append(f"{name.removesuffix('_us')} {number(statistics.median(values))}")
    if disk := compared(DISK, row):
        said.append(f"disk {DISK.text(disk.median)} a message")
    if scenario.figure in {SERVER_CPU, P99}:
        said.append(f"{number(statistics.median(each.result.rate for each in row.kept))}/s")
    if lost := max(each.result.lost for each in row.kept):
        is_late = any(each.result.total.is_late for each in row.kept)
        said.append(f"{'late' if is_late else 'LOST'} {lost:,}")
    if closed := max(each.result.closed for each in row.kept):
        said.append(f"closed {closed:,} connections")
    if row.failure:
        said.append(f"then failed: {row.failure.strip().splitlines()[-1][:60]}")
    return said
