"""Rules of a change, made in steps before they count."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gateway.auth.rule import Rule, make_rule
from gateway.auth.rules import RULES_A_STEP, Steps, at_once
from gateway.settings.rules import RuleSettings

Called = Callable[[int], str]
Part = tuple[Sequence[RuleSettings], Called]  # rules, and how an operator finds each, by its place among them


def _nobody(made: Sequence[Rule]) -> None:
    del made


class RuleDraft:
    """Rules that are written down, in the order in which they are asked.

    Args:
        parts: All of them.
        known: Rules that were made before; those that stay need not be made again.
        on_made: Told what was made.
    """

    def __init__(
        self, parts: Sequence[Part], known: Sequence[Rule] = (), on_made: Callable[[Sequence[Rule]], None] = _nobody
    ) -> None:
        self._parts = parts
        self._known = known
        self._on_made = on_made

    def __len__(self) -> int:
        return sum(len(said) for said, _ in self._parts)

    def make(self) -> list[Rule]:
        """Return them as they are evaluated."""
        return at_once(self.steps())

    def steps(self) -> Steps[list[Rule]]:
        """Return the same after some steps."""
        known: dict[int, Rule] = {}
        for start in range(0, len(self._known), RULES_A_STEP):
            some = self._known[start : start + RULES_A_STEP]
            known.update((id(rule.said), rule) for rule in some)
            yield
        made: list[Rule] = []
        for said, called in self._parts:
            for place, one in enumerate(said):
                made.append(make_rule(one, len(made), called(place), known))
                if len(made) % RULES_A_STEP == 0:
                    yield
        self._on_made(made)
        return made
