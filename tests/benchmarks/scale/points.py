"""What is made of the measurements: a median at each size, and each bound beside what was found. No I/O."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.benchmarks.figure import Figure

NOT_RUN = "not run"
Samples = Mapping[str, Sequence[float]]  # by figure, one of each round


@dataclass(frozen=True)
class Point:
    """All samples at one size."""

    size: int
    samples: Samples

    def median(self, figure: str) -> float | None:
        """Return the median of a figure, None where it was not measured."""
        found = self.samples.get(figure)
        return statistics.median(found) if found else None


@dataclass(frozen=True)
class Bound:
    """How much a figure may be at a size.

    As it is; or, with `base`, in proportion to what it is at that size.
    """

    figure: str
    limit: float
    at: int
    base: int | None = None
    why: str = ""  # where the limit is not a requirement's own word

    def find(self, points: Sequence[Point]) -> float | None:
        """Return what is bounded, None where a size that it takes was not measured."""
        by_size = {point.size: point.median(self.figure) for point in points}
        value = by_size.get(self.at)
        if value is None or self.base is None:
            return value
        before = by_size.get(self.base)
        return value / before if before else None


@dataclass(frozen=True)
class Verdict:
    """A bound beside what was found."""

    text: str
    found: str
    limit: str
    word: str


def judge(bound: Bound, figure: Figure, points: Sequence[Point], sizes_of: str) -> Verdict:
    """Return the verdict on a bound; `sizes_of` says what the sizes count."""
    value = bound.find(points)
    where = f"{figure.title} at {bound.at:,} {sizes_of}"
    shown = figure
    if bound.base is not None:
        where = f"{where}, to that at {bound.base:,}"
        shown = Figure("", "", "x")
    word = NOT_RUN if value is None else figure.judge(value, bound.limit)
    limit = f"at most {shown.text(bound.limit)}" + (f" ({bound.why})" if bound.why else "")
    return Verdict(where, shown.text(value), limit, word)


def parse_sizes(text: str) -> tuple[list[int], float]:
    """Return the sizes of a list (`1000,1e5`), and the greatest wanted one of `..1e5`; empty and infinite without.

    Raises:
        ValueError: It is neither.
    """
    text = text.strip()
    if text.startswith(".."):
        return [], float(text[2:])
    return [int(float(part)) for part in text.split(",") if part.strip()], float("inf")
