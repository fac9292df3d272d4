"""A page in the midst of very many things, found in one look at each: what is far from it is not sorted.

A sample says which two keys the page stands between, nearly for sure; how many stand before the first of them is
counted, and only what stands between them is sorted. Where the sample is wrong, that is known: the page is not there.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from typing import Any

from gateway.admin.rosters.first_page import Chunk
from gateway.admin.rosters.sorting import sort_numbers
from gateway.admin.steps import Steps

SAMPLE = 8_192  # things; of a million 4 % stand between the two keys then
DOUBT = 3.5  # standard deviations of a place in the sample that the two keys are away from the page
SOLE_MIN = 64  # things of a chunk that are looked at together where all have the same
LOOKS = 32  # things of the sample between two looks at the clock
SORTED_A_STEP = 1_024  # as in `sorting`, where so many are sorted in one go
NARROWED_MIN = 4_096  # things between the two keys, from which on a page is found among them as among all
_GOLDEN = 0.618_033_988_75  # multiples of it are spread evenly, whatever comes again in the order of things


def _tell_nothing(_numbers: Sequence[int]) -> Sequence[Any] | None:
    return None


async def find_middle(
    chunks: Iterable[Chunk],
    key: Callable[[int], Any],
    hits: bytearray | None,
    low: int,
    high: int,
    total: int,
    tell: Callable[[Sequence[int]], Sequence[Any] | None] = _tell_nothing,
) -> list[int] | None:
    """Return the numbers of the things from one place to before another in their order; None where that is not found.

    Args:
        chunks: All things, those with the lowest numbers first.
        key: Says what a thing is sorted by, None of one that is gone.
        hits: By number, whether a thing is wanted; None for all.
        low: The first place.
        high: The place behind the last one.
        total: How many things are wanted.
        tell: Says what `key` says of some at once, wherever they are, or None where that is not quick.
    """
    sample = await _take_sample(key, hits, total, tell)
    between = _choose_keys(sample, low / total, high / total)
    if between is None:
        return None
    band = _Band(*between)
    steps = Steps()
    for chunk in chunks:
        if hits is None or hits.find(1, chunk.first, chunk.end) >= 0:
            band.take(await chunk.tell(), range(chunk.first, chunk.end), hits)
        await steps.rest()
    return await band.find(low, high)


async def _take_sample(
    key: Callable[[int], Any],
    hits: bytearray | None,
    total: int,
    tell: Callable[[Sequence[int]], Sequence[Any] | None],
) -> list[Any]:
    """Return the keys of some things, in order."""
    steps, count = Steps(), total if hits is None else len(hits)
    sample: list[Any] = []
    step = int(count * _GOLDEN) | 1
    for looked in range(0, min(4 * SAMPLE, count), LOOKS):
        numbers = [at * step % count for at in range(looked, min(looked + LOOKS, count))]
        if hits is not None:
            numbers = [number for number in numbers if hits[number]]
        found = tell(numbers) if numbers else ()
        sample += [one for one in (map(key, numbers) if found is None else found) if one is not None]
        await steps.rest()
        if len(sample) >= SAMPLE:
            break
    for at in range(0, len(sample), SORTED_A_STEP):  # so that the last sort only merges
        sample[at : at + SORTED_A_STEP] = sorted(sample[at : at + SORTED_A_STEP])
        await steps.rest()
    sample.sort()
    return sample


def _choose_keys(sample: list[Any], low: float, high: float) -> tuple[Any, Any] | None:
    """Return a key that is before a share of all, and one behind another share, both of a sample that is in order."""
    if not sample:
        return None
    doubt = DOUBT * 0.5 * len(sample) ** 0.5 + 1
    first, last = int(low * len(sample) - doubt), int(high * len(sample) + doubt)
    return sample[max(first, 0)], sample[min(last, len(sample) - 1)]


class _Band:
    """What stands from one key to another, and how many things stand before.

    Args:
        first: The first key.
        last: The last one.
    """

    def __init__(self, first: Any, last: Any) -> None:  # noqa: ANN401 - whatever a column has
        self._first = first
        self._last = last
        self._before = 0
        self._at_first = array("i")  # those that have the first key are in order already
        self._between: dict[int, Any] = {}
        self._at_last = array("i")

    def take(self, keys: Sequence[Any], numbers: Sequence[int], hits: bytearray | None) -> None:
        """Take things with these numbers, which ascend; they follow each other where `hits` says which are wanted."""
        first, last = self._first, self._last
        if len(keys) > SOLE_MIN and self._pass_by(keys, numbers, hits):
            return
        if hits is not None and keys:
            wanted = hits[numbers[0] : numbers[0] + len(keys)]
            if 0 in wanted:
                keys, numbers = list(compress(keys, wanted)), list(compress(numbers, wanted))
        if len(keys) > SOLE_MIN and keys[0] == keys[-1] and keys.count(keys[0]) == len(keys):
            self._take_alike(keys[0], numbers)
            return
        before, at_first = 0, self._at_first
        for one, key in zip(numbers, keys, strict=True):
            if key < first:
                before += 1
            elif key < last:
                if key == first:
                    at_first.append(one)
                else:
                    self._between[one] = key
            elif key == last:
                (at_first if key == first else self._at_last).append(one)
        self._before += before

    def _pass_by(self, keys: Sequence[Any], numbers: Sequence[int], hits: bytearray | None) -> bool:
        """Pass by things that all stand before the first key, or behind the last one; return whether they do.

        Things that came one after the other are often near each other in the order, too.
        """
        ends = keys[0], keys[len(keys) // 2], keys[-1]
        if max(ends) < self._first and max(keys) < self._first:
            end = numbers[0] + len(keys)
            self._before += len(keys) if hits is None else hits.count(1, numbers[0], end)
            return True
        return bool(min(ends) > self._last and min(keys) > self._last)

    def _take_alike(self, key: Any, numbers: Sequence[int]) -> None:  # noqa: ANN401 - as above
        if key < self._first:
            self._before += len(numbers)
        elif key == self._first:
            self._at_first.extend(numbers)
        elif key == self._last:
            self._at_last.extend(numbers)
        elif key < self._last:
            self._between.update(zip(numbers, [key] * len(numbers), strict=True))

    async def find(self, low: int, high: int) -> list[int] | None:
        """Return the numbers of things from one place to before another, None where they do not stand in it."""
        low, high = low - self._before, high - self._before
        if low < 0 or high > len(self._at_first) + len(self._between) + len(self._at_last):
            return None
        found: list[int] = []
        for row in (self._at_first, self._between, self._at_last):
            first, end = max(low, 0), min(max(high, 0), len(row))
            if first < end:
                found += await self._find_between(first, end) if isinstance(row, dict) else row[first:end]
            low, high = low - len(row), high - len(row)
        return found

    async def _find_between(self, low: int, high: int) -> Sequence[int]:
        """Return what stands between the two keys, from one place to before another there."""
        count, steps = len(self._between), Steps()
        if count > NARROWED_MIN:
            numbers, keys = list(self._between), list(self._between.values())
            between = _choose_keys(sorted(keys[:: max(count // SORTED_A_STEP, 1)]), low / count, high / count)
            assert between is not None
            band = _Band(*between)
            for at in range(0, count, SORTED_A_STEP):
                band.take(keys[at : at + SORTED_A_STEP], numbers[at : at + SORTED_A_STEP], None)
                await steps.rest()
            found = await band.find(low, high)
            if found is not None:
                return found
        return (await sort_numbers(list(self._between), self._between.__getitem__))[low:high]
