"""The first of many things in their order, found in one look at each: what a page can show before all are in order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from gateway.admin.steps import Steps

TOLD_A_STEP = 64  # things that are told of at once: a light queue with hundreds of readers takes 10 us and more
Keyed = tuple[Any, int]  # what a thing is sorted by, and its number


class Chunk(NamedTuple):
    """Some things, from one number to before another."""

    first: int
    end: int
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


def walk_spans(count: int, size: int, *, reverse: bool) -> Iterator[tuple[int, int]]:
    """Give numbers from 0 to before `count` as spans of `size`, from the end with `reverse`."""
    starts = range(0, count, size)
    for start in reversed(starts) if reverse else starts:
        yield start, min(start + size, count)


def name_chunks(texts: Sequence[str], text_count: int, *, reverse: bool) -> Iterator[Chunk]:
    """Give names as chunks for `find_first`.

    Args:
        texts: Names in the order of their numbers, with line breaks between them.
        text_count: How many names each text has, but for the last one.
        reverse: As there.
    """
    for at, _ in walk_spans(len(texts), 1, reverse=reverse):
        base = at * text_count
        yield Chunk(base, base + text_count, partial(_names_before, texts[at], base, reverse))


async def _names_before(text: str, base: int, reverse: bool, bound: str | None) -> list[Keyed]:  # noqa: FBT001 - of a partial
    return choose_before(text.split("\n"), base, bound, reverse=reverse)


async def tell_before(
    tell: Callable[[int, int], Sequence[Any] | None],
    at: int,
    first: int,
    end: int,
    bound: Any,  # noqa: ANN401 - as a key
    *,
    reverse: bool,
    is_cheap: bool = False,
) -> list[Keyed] | None:
    """Return those of some things that stand before `bound`, as `tell` says, some at a time; None where it does not.

    Args:
        tell: Returns figures from one number to before another.
        at: The number of the first thing there.
        first: Its number in the list.
        end: The number in the list before which they end.
        bound: What the last of a full page is sorted by; None: all are wanted.
        reverse: Whether the greatest comes first.
        is_cheap: Whether it is asked of all of them at once.
    """
    steps, found = Steps(), list[Keyed]()
    at_once = end - first if is_cheap else TOLD_A_STEP
    for begin in range(first, end, at_once):
        place = at + begin - first
        told = tell(place, place + min(at_once, end - begin))
        if told is None:
            return None
        found += choose_before(told, begin, bound, reverse=reverse)
        await steps.rest()
    return found


def choose_before(figures: Sequence[Any], first: int, bound: Any, *, reverse: bool) -> list[Keyed]:  # noqa: ANN401 - as a key
    """Return those of some figures that stand before `bound`, with their numbers, of which `first` is the first."""
    each = enumerate(figures, first)
    if bound is None:
        return [(figure, number) for number, figure in each]
    if reverse:
        return [(figure, number) for number, figure in each if figure > bound]
    return [(figure, number) for number, figure in each if figure < bound]
