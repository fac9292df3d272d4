"""The first of many names in their order, found in one look at each: what a page can show before all are in order."""

from __future__ import annotations

from collections.abc import Iterable

from gateway.admin.steps import Steps

Named = tuple[str, int]


async def find_first(
    texts: Iterable[str], text_count: int, count: int, hits: bytearray | None, *, reverse: bool
) -> list[int]:
    """Return the numbers of the first `count` names in their order; of equal names the lower number comes first.

    Args:
        texts: Names in the order of their numbers from 0, with line breaks between them.
        text_count: How many names each text has, but for the last one.
        count: How many are wanted, at least 1.
        hits: By number, whether a name is wanted; None for all.
        reverse: Whether the order is from its end, of equal names, too.
    """
    steps = Steps()
    first: list[Named] = []  # in order
    for base, text in zip(range(0, 1 << 62, text_count), texts, strict=False):
        names = enumerate(text.split("\n"), base)
        some = _names_before(names, first[-1][0], reverse=reverse) if len(first) == count else _swap(names)
        if hits is not None:
            some = [one for one in some if hits[one[1]]]
        if some:
            first = sorted(first + some, reverse=reverse)[:count]
        await steps.rest()
    return [number for _, number in first]


def _names_before(names: Iterable[tuple[int, str]], bound: str, *, reverse: bool) -> list[Named]:
    """Return the names that stand before one with a lower number."""
    if reverse:
        return [(name, number) for number, name in names if name >= bound]
    return [(name, number) for number, name in names if name < bound]


def _swap(names: Iterable[tuple[int, str]]) -> list[Named]:
    return [(name, number) for number, name in names]
