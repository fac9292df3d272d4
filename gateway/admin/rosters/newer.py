"""What came since the last look, of things that are kept in the order they came."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

from core.long_list import make_long_list

TAKEN_A_STEP = 1_024  # things of which each costs less than 0.1 us
Thing = TypeVar("Thing")


def take_newer(
    kept: list[Thing], newest_first: Callable[[], Iterable[Thing]], is_there: Callable[[Thing], bool]
) -> Iterator[None]:
    """Append, in steps, what came after the last of `kept` that is still there; the oldest of it first.

    Things may come and go between two steps, and the walk has to go on then; what comes then may be left to the next
    time.
    """
    fresh = make_long_list(kept[:0])
    is_met = False
    while not is_met:
        last = None
        for at, one in enumerate(reversed(kept), 1):
            if is_there(one):
                last = one
                break
            if at % TAKEN_A_STEP == 0:
                yield
        fresh, is_met = make_long_list(kept[:0]), last is None
        for at, one in enumerate(newest_first(), 1):
            if one is last:
                is_met = True
                break
            fresh.append(one)
            if at % TAKEN_A_STEP == 0:
                yield
        # where the last one went meanwhile, what is older than it was taken for newer
    while fresh:
        kept += fresh[: -TAKEN_A_STEP - 1 : -1]
        del fresh[-TAKEN_A_STEP:]
        yield
    yield


def held_still(walk: Iterable[Thing]) -> Iterator[Thing]:
    """Give to `take_newer` what a walk gives that ends with an error once anything came or went, as that over a dict.

    What is behind the first step is copied in the turn of that step.
    """
    walking = iter(walk)
    yield from islice(walking, TAKEN_A_STEP - 1)
    yield from make_long_list(walking)
