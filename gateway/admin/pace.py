"""How often all things are looked at anew: all work of that kind together takes a hundredth of the time.

What it costs is the processor's time of its steps, not the time until its end: others have their turns between them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from time import monotonic

SHARE = 100  # times what all of it costs together passes until the same is done again: 1 % of the processor
FRESH_S = 5.0  # at least: as often as RabbitMQ's own console asks
USED_S = 60.0  # so long after the last question a piece of work counts


class Pace:
    """The pieces of work that questions have done again and again, with what each cost the last time."""

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[float, float]] = {}  # by piece: cost, and the moment of the last question
        self._questions = 0  # under way, that do not wait for such a piece

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Have pieces of work wait for a question that does not wait for them."""
        self._questions += 1
        try:
            yield
        finally:
            self._questions -= 1

    def is_asked(self) -> bool:
        """Return whether such a question is under way."""
        return self._questions > 0

    def is_due(self, piece: Hashable, done_at_s: float) -> bool:
        """Return whether a piece of work that was done at a moment is to be done again, as a question asks for it."""
        now_s = monotonic()
        cost_s, _ = self._known.get(piece, (0.0, 0.0))
        self._known[piece] = cost_s, now_s
        return now_s - done_at_s >= self.period_s()

    def note(self, piece: Hashable, cost_s: float) -> None:
        """Note what a piece of work cost now."""
        self._known[piece] = cost_s, monotonic()

    def period_s(self) -> float:
        """Return how many seconds pass between two times that the same is done."""
        before_s = monotonic() - USED_S
        for piece in [piece for piece, (_, asked_at_s) in self._known.items() if asked_at_s < before_s]:
            del self._known[piece]
        return max(FRESH_S, SHARE * sum(cost_s for cost_s, _ in self._known.values()))
