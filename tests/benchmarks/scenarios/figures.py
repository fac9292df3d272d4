"""What is made of the rounds: medians with their bounds, and each server beside the best peer. No I/O."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.benchmarks.figure import Figure, number
from tests.benchmarks.scenarios.load import Result
from tests.benchmarks.scenarios.scenarios import Floor, Scenario

NOT_COMPARED = "not compared"


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


def has_lost(row: Row) -> bool:
    """Whether a round that counts lost what had to arrive; what came late is not lost."""
    return any(each.result.lost and not each.result.total.is_late for each in row.kept)


def best_peer(figure: Figure, rows: Sequence[Row]) -> float | None:
    """Return the best median of the peers that lost nothing, the null relay aside, None where there is none."""
    peers = [row for row in rows if not row.is_ours and row.peer != "null" and not has_lost(row)]
    found = [compared(figure, row) for row in peers]
    medians = [each.median for each in found if each is not None]
    if not medians:
        return None
    return max(medians) if figure.is_more_better else min(medians)


def ratio(figure: Figure, row: Row, rows: Sequence[Row]) -> float | None:
    """Return this server's median over the best peer's."""
    own, best = compared(figure, row), best_peer(figure, rows)
    return own.median / best if own is not None and best else None


@dataclass(frozen=True)
class Verdict:
    """A floor beside what was found: a ratio where the floor is one, None where there is nothing to compare with."""

    floor: Floor
    found: float | None

    @property
    def word(self) -> str:
        """Return whether it is met."""
        return NOT_COMPARED if self.found is None else self.floor.figure.judge(self.found, self.floor.value)

    def text(self, scenario: Scenario) -> str:
        """Return it as it stands in our row, where the scenario's own figure has columns of its own."""
        unit = "x" if self.floor.is_ratio else f" {self.floor.figure.unit}"
        said = f"{self.floor.value:,g}{unit} {self.word}"
        if self.floor.figure == scenario.figure:
            return said
        found = "" if self.found is None else f"{number(self.found)} of "
        return f"{self.floor.figure.title} {found}{said}"


def verdicts(scenario: Scenario, row: Row, rows: Sequence[Row]) -> list[Verdict]:
    """Return each floor beside what our own row gave; nothing for a row that is not ours."""
    return [Verdict(floor, _found(floor, row, rows)) for floor in scenario.floors if row.is_ours]


def _found(floor: Floor, row: Row, rows: Sequence[Row]) -> float | None:
    if floor.is_ratio:
        return ratio(floor.figure, row, rows)
    own = compared(floor.figure, row)
    return own.median if own is not None else None
