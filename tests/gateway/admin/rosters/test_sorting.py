from __future__ import annotations

import random

import pytest

from gateway.admin.rosters import sorting
from gateway.admin.rosters.sorting import sort_numbers

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("spread", [1, 2, 17, 10_000])
async def test_any_number_of_things_is_sorted_as_in_one_go(monkeypatch, spread):
    monkeypatch.setattr(sorting, "BUCKET_COUNT", 8)
    draw = random.Random(spread)
    for count in (0, 1, 7, 8, 9, 500):
        keys = [draw.randrange(spread) for _ in range(count)]
        assert list(await sort_numbers(range(count), keys.__getitem__)) == sorted(range(count), key=keys.__getitem__)


@pytest.mark.parametrize("seed", range(10))
async def test_what_is_told_of_some_at_once_is_sorted_as_if_each_had_been_asked(monkeypatch, seed):
    draw = random.Random(seed)
    monkeypatch.setattr(sorting, "BUCKET_COUNT", draw.choice((8, 64)))
    monkeypatch.setattr(sorting, "TOLD_AT_ONCE", draw.choice((1, 3, 16)))
    monkeypatch.setattr(sorting, "CHEAP_AT_ONCE", draw.choice((16, 50, 1_024)))
    keys = [draw.choice((0, 0, 0, draw.randrange(9), None)) if at < 300 else 0 for at in range(500)]
    numbers = [at for at in range(500) if draw.random() < 0.9]
    asked = []

    def key(number):
        asked.append(number)
        return keys[number]

    def tell(some):
        return None if some[0] < 150 and some[-1] >= 100 else [keys[number] for number in some]

    found = await sort_numbers(numbers, key, tell=tell)
    assert list(found) == sorted((at for at in numbers if keys[at] is not None), key=keys.__getitem__)
    assert {number for number in numbers if 120 <= number < 130} <= set(asked)


async def test_what_has_no_key_is_left_out(monkeypatch):
    monkeypatch.setattr(sorting, "BUCKET_COUNT", 8)
    found = await sort_numbers(range(100), lambda number: None if number % 3 else -number)
    assert list(found) == sorted(range(0, 100, 3), reverse=True)
