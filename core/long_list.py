"""Lists of very many things that are there anyway, which the collector of cycles need not go through.

A list that is filled with 100,000 old objects is new to the collector, and its next two rounds look at each of them:
6 to 10 ms each.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from core import untracked

Thing = TypeVar("Thing")


def make_long_list(things: Iterable[Thing]) -> list[Thing]:
    """Return a list of things; it may grow, and must not be a part of a cycle that only the collector would free."""
    made = list(things)
    untracked.untrack(made)
    return made
