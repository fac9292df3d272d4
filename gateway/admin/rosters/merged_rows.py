"""A part of two sorted rows as if they were one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from gateway.admin.rosters.sorting import Key
from gateway.admin.steps import Steps

PLACED_A_STEP = 16  # new things whose places are looked for at once: some twenty looks each
SHOWN_A_STEP = 256  # things passed over between two looks at the clock


async def slice_rows(numbers: Sequence[int], fresh: Sequence[int], key: Key, low: int, high: int) -> Sequence[int]:
    """Return the places from `low` to before `high` of two sorted rows as if they were one."""
    if not fresh:
        return numbers[low:high]
    steps = Steps()
    places: list[int] = []
    for at, number in enumerate(fresh):
        place = _place(numbers, key, key(number)) + at
        # What is looked at meanwhile changes: one that passed another since both were sorted stays behind it.
        places.append(max(place, places[-1] + 1) if places else place)
        if at % PLACED_A_STEP == 0:
            await steps.rest()
    taken = bisect_left(places, low)
    shown: list[int] = []
    for place in range(low, high):
        if taken < len(places) and places[taken] == place:
            shown.append(fresh[taken])
            taken += 1
        else:
            shown.append(numbers[place - taken])
        if place % SHOWN_A_STEP == 0:
            await steps.rest()
    return shown


def _place(numbers: Sequence[int], key: Key, wanted: Any) -> int:  # noqa: ANN401 - whatever a column has
    """Return where in a sorted row something stands; what is gone has no key, and stands nowhere in particular."""
    low, high = 0, 0 if wanted is None else len(numbers)
    while low < high:
        middle = (low + high) // 2
        found = key(numbers[middle])
        if found is not None and not wanted < found:
            low = middle + 1
        else:
            high = middle
    return low
