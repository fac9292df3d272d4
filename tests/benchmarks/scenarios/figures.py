"""What is made of the rounds: medians with their bounds, and each server beside the best peer. No I/O."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.benchmarks.scenarios.load import Result
from tests.benchmarks.scenarios.scenarios import Scenario


@dataclass
class Round:
    """One run of one server, and what the server held after it."""

    result: Result
    private_bytes: int
    disk_bytes_each: float | None = None  # for each message that was confirmed


@dataclass
class Row:
    """All rounds of one server in one scenario."""

    peer: str
    version: str
    is_ours: bool
    rounds: list[Round] = field(default_factory=list)
    failure: str = ""

    @property
    def kept(self) -> list[Round]:
        """Return the rounds that count: not the first, which touches memory for the first time, if there are more."""
        return self.rounds[1:] or self.rounds


@dataclass(frozen=True)
class Spread:
    """A median and its bounds."""

    median: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread | None:
    """Return the median and bounds of what is a number, None where nothing is."""
    numbers = [value for value in values if not math.isnan(value)]
    return Spread(statistics.median(numbers), min(numbers), max(numbers)) if numbers else None


def figure_of(scenario: Scenario, result: Result) -> float:
    """Return the figure of a run that the scenario compares."""
    if scenario.figure in result.more:
        return result.more[scenario.figure]
    return float(getattr(result, scenario.figure))


def compared(scenario: Scenario, row: Row) -> Spread | None:
    """Return the scenario's figure over the rounds that count."""
    return spread([figure_of(scenario, each.result) for each in row.kept])


def has_lost(row: Row) -> bool:
    """Whether a round that counts lost what had to arrive; what came late is not lost."""
    return any(each.result.lost and not each.result.total.is_late for each in row.kept)


def best_peer(scenario: Scenario, rows: Sequence[Row]) -> float | None:
    """Return the best median of the peers that lost nothing, the null relay aside, None where there is none."""
    peers = [row for row in rows if not row.is_ours and row.peer != "null" and not has_lost(row)]
    found = [compared(scenario, row) for row in peers]
    medians = [each.median for each in found if each is not None]
    if not medians:
        return None
    return max(medians) if scenario.is_more_better else min(medians)


def ratio(scenario: Scenario, row: Row, rows: Sequence[Row]) -> float | None:
    """Return this server's median over the best peer's."""
    own, best = compared(scenario, row), best_peer(scenario, rows)
    return own.median / best if own is not None and best else None


def floor_text(scenario: Scenario, row: Row, rows: Sequence[Row]) -> str:
    """Return the floor of our own row and whether it was reached; nothing where there is none, or none to compare."""
    floor = scenario.floor
    if floor is None or not row.is_ours:
        return ""
    if floor.of:
        own = spread([each.result.more[floor.of] for each in row.kept if floor.of in each.result.more])
        found, text = own.median if own else None, number(floor.value)
    else:
        found, text = ratio(scenario, row, rows), f"{floor.value:g}x"
    if found is None:
        return text
    return f"{text} {'met' if found == floor.value or (found < floor.value) == floor.is_most else 'MISSED'}"


def number(value: float) -> str:
    """Return a figure with three digits or all of its whole ones."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


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
    "besides",
)


def cells(scenario: Scenario, row: Row, rows: Sequence[Row]) -> tuple[str, ...]:
    """Return a row of the table, one text for each of COLUMNS."""
    own = compared(scenario, row)
    if own is None:
        return (row.peer, row.version, "failed", "", "", "", "", "", "", row.failure.strip().splitlines()[-1][:80])
    cpu = spread([each.result.server_us for each in row.kept])
    times = ratio(scenario, row, rows)
    return (
        row.peer,
        row.version,
        f"{number(own.median)} {scenario.unit}",
        f"{number(own.low)}–{number(own.high)}",
        number(cpu.median) if cpu else "",
        number(statistics.median(each.private_bytes for each in row.kept) / 1e6),
        f"{statistics.median(each.result.load_cpu_s / each.result.secs for each in row.kept):.0%}",
        f"{number(times)}x" if times is not None else "",
        floor_text(scenario, row, rows),
        ", ".join(remarks(scenario, row)),
    )


def remarks(scenario: Scenario, row: Row) -> list[str]:
    """Return what the columns do not say: further figures, disk, and what went wrong."""
    said = []
    for name in row.kept[-1].result.more:
        if name != scenario.figure:
            values = [each.result.more[name] for each in row.kept if name in each.result.more]
            said.append(f"{name.removesuffix('_us')} {number(statistics.median(values))}")
    disk = [each.disk_bytes_each for each in row.kept if each.disk_bytes_each is not None]
    if disk:
        said.append(f"disk {number(statistics.median(disk) / 1e3)} KB a message")
    if scenario.figure != "rate" and "bytes_each" not in row.kept[-1].result.more:
        said.append(f"{number(statistics.median(each.result.rate for each in row.kept))}/s")
    if lost := max(each.result.lost for each in row.kept):
        is_late = any(each.result.total.is_late for each in row.kept)
        said.append(f"{'late' if is_late else 'LOST'} {lost:,}")
    if closed := max(each.result.closed for each in row.kept):
        said.append(f"closed {closed:,} connections")
    if row.failure:
        said.append(f"then failed: {row.failure.strip().splitlines()[-1][:60]}")
    return said
