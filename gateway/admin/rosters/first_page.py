"""The first of many things in their order, found in one look at each: what a page can show before all are in order."""

from __future__ import annotations

from array import array
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, NamedTuple

from gateway.admin.steps import Steps

Keyed = tuple[Any, int]  # what a thing is sorted by, and its number


class Chunk(NamedTuple):
    """Some things, from one number to before another."""

    first: int
    end: int
    tell: Callable[[], Awaitable[Sequence[Any]]]
    """Gives what each is sorted by, anything of that kind where one is gone; nothing where all are."""
    before: Callable[[Any], Awaitable[list[Keyed]]]
    """Told what the last of a full page is sorted by, it gives those that stand before it; None: all."""


async def find_first(chunks: Iterable[Chunk], count: int, hits: bytearray | None, *, reverse: bool) -> list[int]:
    """Return the numbers of the first `count` things in their order; of equal ones the lower number comes first.

    Args:
        chunks: All things, those with the lowest numbers first; with `reverse` those with the highest.
        count: How many are wanted, at least 1.
        hits: By number, whether a thing is wanted; None for all.
        reverse: Whether the order is from its end, of equal things, too.
    """
    steps = Steps()
    first: list[Keyed] = []  # in order
    for chunk in chunks:
        if hits is not None and hits.find(1, chunk.first, chunk.end) < 0:
            await steps.rest()
            continue
        some = await chunk.before(first[-1][0] if len(first) == count else None)
        if hits is not None:
            some = [one for one in some if hits[one[1]]]
        if some:
            first = sorted(first + some, reverse=reverse)[:count]
        await steps.rest()
    return [number for _, number in first]


def choose_before(figures: Sequence[Any], first: int, bound: Any, *, reverse: bool) -> list[Keyed]:  # noqa: ANN401 - as a key
    """Return those of some figures that stand before `bound`, with their numbers, of which `first` is the first."""
    if bound is not None and isinstance(figures, array) and figures:  # which has its ends found in a third of the time
        is_any = max(figures) > bound if reverse else min(figures) < bound
        if not is_any:
            return []
    each = enumerate(figures, first)
    if bound is None:
        return [(figure, number) for number, figure in each]
    if reverse:
        return [(figure, number) for number, figure in each if figure > bound]
    return [(figure, number) for number, figure in each if figure < bound]
