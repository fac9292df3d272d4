from __future__ import annotations

import random

import pytest

from gateway.admin.rosters import middle_page
from gateway.admin.rosters.first_page import Chunk
from gateway.admin.rosters.middle_page import find_middle

pytestmark = pytest.mark.asyncio


def _chunks(keys, size):
    for first in range(0, len(keys), size):

        async def tell(some=keys[first : first + size]):
            return some

        yield Chunk(first, min(first + size, len(keys)), tell, None)


@pytest.mark.parametrize("narrowed_min", [50, middle_page.NARROWED_MIN])
@pytest.mark.parametrize("kinds", [1, 2, 3, 40, 10_000])
async def test_a_page_in_the_midst_is_that_of_a_sort_of_all(monkeypatch, kinds, narrowed_min):
    monkeypatch.setattr(middle_page, "SAMPLE", 200)
    monkeypatch.setattr(middle_page, "NARROWED_MIN", narrowed_min)
    monkeypatch.setattr(middle_page, "SORTED_A_STEP", 64)
    draw = random.Random(kinds)
    found_count = 0
    for turn in range(30):
        keys = [draw.randrange(kinds) for _ in range(draw.choice((700, 3_000)))]
        if turn % 3 == 0:
            keys.sort(reverse=turn % 2 == 0)
        hits = None if turn % 2 else bytearray(draw.random() < 0.7 for _ in keys)
        wanted = sorted((number for number in range(len(keys)) if hits is None or hits[number]), key=keys.__getitem__)
        low = draw.randrange(len(wanted))
        high = min(low + draw.randrange(1, 60), len(wanted))
        tell = (lambda numbers: None) if turn % 4 else (lambda numbers, keys=keys: [keys[number] for number in numbers])
        found = await find_middle(_chunks(keys, 100), keys.__getitem__, hits, low, high, len(wanted), tell)
        assert found is None or found == wanted[low:high]
        found_count += found is not None
    assert found_count >= 28  # a sample is wrong once in 10,000 times


async def test_only_what_is_near_the_page_is_sorted(monkeypatch):
    monkeypatch.setattr(middle_page, "SAMPLE", 400)
    draw = random.Random(2)
    keys, sorted_counts = [draw.random() for _ in range(20_000)], []
    sort = middle_page.sort_numbers

    async def note(numbers, key):
        sorted_counts.append(len(numbers))
        return await sort(numbers, key)

    monkeypatch.setattr(middle_page, "sort_numbers", note)
    found = await find_middle(_chunks(keys, 512), keys.__getitem__, None, 10_000, 10_100, len(keys))
    assert found == sorted(range(len(keys)), key=keys.__getitem__)[10_000:10_100]
    assert sorted_counts[0] < 0.25 * len(keys)


async def test_a_page_that_the_sample_does_not_stand_around_is_not_told_wrong(monkeypatch):
    monkeypatch.setattr(middle_page, "SAMPLE", 10)
    monkeypatch.setattr(middle_page, "DOUBT", 0.0)
    monkeypatch.setattr(middle_page, "_GOLDEN", 0.0)  # the first ten are asked
    keys = [*range(10), *range(-1_000, 0)]
    assert await find_middle(_chunks(keys, 100), keys.__getitem__, None, 500, 510, len(keys)) is None


async def test_where_all_that_is_asked_is_gone_nothing_is_told():
    assert await find_middle([], lambda _: None, bytearray(b"\1" * 9), 3, 5, 9) is None
