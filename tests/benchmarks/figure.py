"""One thing that is measured, how it is written, and what is said of it beside a limit. Both benches' own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MET, MISSED = "met", "MISSED"


@dataclass(frozen=True)
class Figure:
    """What a run gives by this name; a count has no unit."""

    name: str
    title: str
    unit: str
    is_more_better: bool = False

    def text(self, value: float | None) -> str:
        """Return a value with its unit, nothing for None."""
        if value is None:
            return ""
        return f"{number(value)} {self.unit}" if self.unit else f"{value:,.0f}"

    def judge(self, found: float, limit: float) -> str:
        """Return the word for what was found beside a limit, which itself is still good."""
        return MET if found == limit or (found > limit) == self.is_more_better else MISSED


def tally(words: Sequence[str]) -> str:
    """Return how often each word was said."""
    return ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))


def number(value: float) -> str:
    """Return a figure with three digits or all of its whole ones."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"
