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

BUCKET_COUNT = 1_024  # things that are sorted in one go, about
SAMPLES_A_BUCKET = 4
LOOKS = 32  # things between two looks at the clock
Key = Callable[[int], Any]


async def sort_numbers(numbers: Sequence[int], key: Key, steps: Steps | None = None) -> array[int]:
    """Return numbers by what `key` says of each, the least first; equal ones stay in their order.

    Those of which it says None are left out.
    """
    steps = steps or Steps()
    borders = await _choose_borders(numbers, key, steps)
    members = [array("i") for _ in range(2 * len(borders) + 1)]
    keys: list[list[Any]] = [[] for _ in members]
    for looked, number in enumerate(numbers):
        found = key(number)
        if found is None:
            continue
        at = bisect_left(borders, found)
        is_border = at < len(borders) and borders[at] == found
        bucket = 2 * at + is_border
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
