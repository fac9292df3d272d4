"""What SCENARIO= means to both benches."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from typing import Protocol, TypeVar


class Named(Protocol):
    """A scenario, as far as it is chosen by."""

    @property
    def name(self) -> str:
        """What the command line calls it."""


NamedT = TypeVar("NamedT", bound=Named)


def choose(scenarios: Sequence[NamedT], patterns: str) -> list[NamedT]:
    """Return those whose names match one of the comma-separated patterns, `*` in them for anything; all where empty.

    Raises:
        ValueError: A pattern matches none.
    """
    wanted = [pattern.strip() for pattern in patterns.split(",") if pattern.strip()] or ["*"]
    names = [scenario.name for scenario in scenarios]
    for pattern in wanted:
        if not fnmatch.filter(names, pattern):
            raise ValueError(f"no scenario {pattern}; there are: {', '.join(names)}")
    return [each for each in scenarios if any(fnmatch.fnmatch(each.name, pattern) for pattern in wanted)]
