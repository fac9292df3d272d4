from __future__ import annotations

import random
from heapq import merge

import pytest

from gateway.admin.rosters.merged_rows import slice_rows

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("seed", range(20))
async def test_a_part_of_two_rows_is_that_of_both_together(seed):
    draw = random.Random(seed)
    figures = [draw.randrange(draw.choice((3, 1_000))) for _ in range(draw.randrange(60))]
    numbers = list(range(len(figures)))
    until = draw.randrange(len(figures) + 1)
    rows = [sorted(some, key=figures.__getitem__) for some in (numbers[:until], numbers[until:])]
    whole = list(merge(*rows, key=figures.__getitem__))
    low = draw.randrange(len(figures) + 1)
    high = draw.randrange(low, len(figures) + 1)
    assert list(await slice_rows(*rows, figures.__getitem__, low, high)) == whole[low:high]


async def test_what_is_gone_has_no_key_and_hides_nothing_else():
    figures = {0: 1, 1: None, 2: 5, 3: 2}
    assert sorted(await slice_rows([0, 1, 2], [3], figures.__getitem__, 0, 4)) == [0, 1, 2, 3]


@pytest.mark.parametrize("figures", [{10: None, 11: 3}, {10: 9, 11: 0}, {10: 9, 11: None}])
async def test_new_things_that_change_or_go_while_they_are_put_in_place_are_each_there_once(figures):
    numbers = range(5)
    shown = await slice_rows(numbers, [10, 11], lambda number: figures.get(number, number), 0, 7)
    assert sorted(shown) == [*numbers, 10, 11]
    assert [number for number in shown if number < 10] == list(numbers)
