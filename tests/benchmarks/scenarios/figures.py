"""What is made of the rounds: medians with their bounds, and each server beside the best peer. No I/O."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.benchmarks.figure import Figure, number
from tests.benchmarks.scenarios.load import Result
from tests.benchmarks.scenarios.scenario import Floor, Scenario

NOT_COMPARED = "not compared"
SHARE_OF_EACH_TAIL = 0.025


@dataclass
class Round:
    """One run of one server, and what the server held after it."""

    result: Result
    private_bytes: int
    disk_bytes_each: float = math.nan  # for each message confirmed since the server's start, where it is measured

    @property
    def private_mb(self) -> float:
        """Return the memory as the tables have it."""
        return self.private_bytes / 1e6

    @property
    def disk_kb_each(self) -> float:
        """Return the disk of a message as the tables have it."""
        return self.disk_bytes_each / 1e3


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


def value_of(figure: Figure, each: Round) -> float:
    """Return a figure of a round: one of its own, of the result, or of the result's `more`."""
    if figure.name in each.result.more:
        return each.result.more[figure.name]
    return float(getattr(each if hasattr(each, figure.name) else each.result, figure.name))


def compared(figure: Figure, row: Row) -> Spread | None:
    """Return a figure over the rounds that count."""
    return spread([value_of(figure, each) for each in row.kept])


def server_us(row: Row) -> float | None:
    """Return the server's CPU microseconds for each delivery of the rounds that count, None where nothing came.

    Of all of them together: the kernel counts in steps of 10 ms, 20 us a message where a round is short.
    """
    received = sum(each.result.received for each in row.kept)
    return sum(each.result.server_cpu_s for each in row.kept) / received * 1e6 if received else None


def has_lost(row: Row) -> bool:
    """Whether a round that counts lost what had to arrive; what came late is not lost."""
    return any(each.result.lost and not each.result.total.is_late for each in row.kept)


def best_peer(figure: Figure, rows: Sequence[Row]) -> Row | None:
    """Return the peer with the best median of those that lost nothing, not the null relay; None where there is none."""
    peers = [row for row in rows if not row.is_ours and row.peer != "null" and not has_lost(row)]
    medians = [(own.median, row) for row in peers if (own := compared(figure, row)) is not None]
    best_of = max if figure.is_more_better else min
    return best_of(medians, key=lambda each: each[0])[1] if medians else None


@dataclass(frozen=True)
class Ratio:
    """The median of the rounds' ratios to another server's, and bounds that hold it with 95 % confidence."""

    median: float
    low: float | None = None  # None where there are too few rounds to say
    high: float | None = None

    def text(self) -> str:
        """Return it as the tables have it."""
        bounds = f" ({number(self.low)}–{number(self.high)})" if self.low is not None and self.high is not None else ""
        return f"{number(self.median)}{bounds}"


def ratio(figure: Figure, row: Row, rows: Sequence[Row]) -> Ratio | None:
    """Return this server's figure over the best peer's, each round beside that peer's turn in the same round.

    A machine that is slow for some seconds slows both of a pair; medians taken apart would hold it against one.
    """
    best = best_peer(figure, rows)
    if best is None:
        return None
    pairs = [(value_of(figure, a), value_of(figure, b)) for a, b in zip(row.kept, best.kept, strict=False)]
    ratios = sorted(own / other for own, other in pairs if other > 0 and not math.isnan(own))
    return median_with_bounds(ratios) if ratios else None


def median_with_bounds(ordered: Sequence[float]) -> Ratio:
    """Return the median of ordered values, and the values that hold it with 95 % confidence, whatever is their spread.

    The k-th from either end do where so few as k - 1 of n values are on one side of the true median with 2.5 % at most.
    """
    n = len(ordered)
    median, outside, share = statistics.median(ordered), 0, 0.5**n
    while share <= SHARE_OF_EACH_TAIL:
        outside += 1
        share += math.comb(n, outside) * 0.5**n
    return Ratio(median, ordered[outside - 1], ordered[-outside]) if outside else Ratio(median)


@dataclass(frozen=True)
class Verdict:
    """A floor beside what was found: a ratio where the floor is one, None where there is nothing to compare with."""

    floor: Floor
    found: Ratio | None

    @property
    def word(self) -> str:
        """Return whether it is met."""
        return NOT_COMPARED if self.found is None else self.floor.figure.judge(self.found.median, self.floor.value)

    def text(self, scenario: Scenario) -> str:
        """Return it as it stands in our row, where the scenario's own figure has columns of its own."""
        unit = "x" if self.floor.is_ratio else f" {self.floor.figure.unit}"
        said = f"{self.floor.value:,g}{unit} {self.word}"
        if self.floor.figure == scenario.figure:
            return said
        found = "" if self.found is None else f"{self.found.text()} of "
        return f"{self.floor.figure.title} {found}{said}"


def verdicts(scenario: Scenario, row: Row, rows: Sequence[Row]) -> list[Verdict]:
    """Return each floor beside what our own row gave; nothing for a row that is not ours."""
    return [Verdict(floor, _found(floor, row, rows)) for floor in scenario.floors if row.is_ours]


def _found(floor: Floor, row: Row, rows: Sequence[Row]) -> Ratio | None:
    if floor.is_ratio:
        return ratio(floor.figure, row, rows)
    own = compared(floor.figure, row)
    return Ratio(own.median) if own is not None else None
