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


async def test_what_has_no_key_is_left_out(monkeypatch):
    monkeypatch.setattr(sorting, "BUCKET_COUNT", 8)
    found = await sort_numbers(range(100), lambda number: None if number % 3 else -number)
    assert list(found) == sorted(range(0, 100, 3), reverse=True)
