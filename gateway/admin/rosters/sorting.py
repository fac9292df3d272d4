"""Sorts any number of things in steps: a millisecond or so of the loop at a time.

Things are first put into buckets that follow each other, found by a sample of them, and then each bucket is sorted by
itself. What is equal to a border has a bucket of its own, which is in order already: most queues may be equally deep.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any

from gateway.admin.steps import Steps

BUCKET_COUNT = 1_024  # things that are sorted in one go, about; chosen, so that one go is within a step
SAMPLES_A_BUCKET = 4  # so that buckets are about even, whatever the order
LOOKS = 32  # things between two looks at the clock
TOLD_AT_ONCE = 128  # a light queue with hundreds of readers takes 10 us to tell of
CHEAP_AT_ONCE = 1_024  # of which each takes a fraction of a microsecond
Key = Callable[[int], Any]
Tell = Callable[[Sequence[int]], Sequence[Any] | None]


def _tell_nothing(_numbers: Sequence[int]) -> Sequence[Any] | None:
    return None


async def sort_numbers(
    numbers: Sequence[int], key: Key, steps: Steps | None = None, tell: Tell = _tell_nothing
) -> array[int]:
    """Return numbers by what `key` says of each, the least first; equal ones stay in their order.

    Those of which it says None are left out.

    Args:
        numbers: They.
        key: Says what one is sorted by.
        steps: What this is a part of.
        tell: Says the same of some at once, or None where that is not quick: of `CHEAP_AT_ONCE` where they are that
            cheap, else of `TOLD_AT_ONCE`.
    """
    steps = steps or Steps()
    borders = await _choose_borders(numbers, key, steps)
    members = [array("i") for _ in range(2 * len(borders) + 1)]
    keys: list[list[Any]] = [[] for _ in members]
    at = 0
    while at < len(numbers):
        some = numbers[at : at + CHEAP_AT_ONCE]
        told = tell(some) if len(some) > TOLD_AT_ONCE else None
        if told is None:
            some = some[:TOLD_AT_ONCE]
            told = tell(some)
        at += len(some)
        if told is not None and told[0] is not None and told.count(told[0]) == len(told):
            bucket, is_border = _find_bucket(borders, told[0])
            members[bucket].extend(some)
            keys[bucket].extend([] if is_border else told)
            await steps.rest()
            continue
        for looked, number in enumerate(some):
            found = key(number) if told is None else told[looked]
            if found is None:
                continue
            bucket, is_border = _find_bucket(borders, found)
            members[bucket].append(number)
            if not is_border:
                keys[bucket].append(found)
            if looked % LOOKS == 0:
                await steps.rest()
    ordered = array("i")
    for bucket, inside in enumerate(members):
        found_keys = keys[bucket]
        if found_keys:
            ordered.extend(inside[at] for at in sorted(range(len(inside)), key=found_keys.__getitem__))
        else:
            ordered.extend(inside)
        keys[bucket] = []
        await steps.rest()
    return ordered


def _find_bucket(borders: list[Any], found: Any) -> tuple[int, bool]:  # noqa: ANN401 - whatever a column has
    """Return the bucket of what has this key, and whether that is equal to a border."""
    at = bisect_left(borders, found)
    is_border = at < len(borders) and borders[at] == found
    return 2 * at + is_border, is_border


async def _choose_borders(numbers: Sequence[int], key: Key, steps: Steps) -> list[Any]:
    buckets = len(numbers) // BUCKET_COUNT
    if buckets == 0:
        return []
    stride = len(numbers) // (buckets * SAMPLES_A_BUCKET)
    sample: list[Any] = []
    for at in range(0, len(numbers), stride):
        found = key(numbers[at])
        if found is not None:
            sample.append(found)
        if at % LOOKS == 0:
            await steps.rest()
    sample.sort()
    return sorted(set(sample[::SAMPLES_A_BUCKET]))
