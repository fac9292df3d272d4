from __future__ import annotations

import random

import pytest

from gateway.admin.rosters import members
from gateway.admin.rosters.chunks import Chunks
from gateway.admin.rosters.column import NAME, Column
from gateway.admin.rosters.first_page import find_first

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("count", [1, 7, 16, 40, 200])
async def test_the_first_names_are_those_of_a_sort_of_all_also_where_many_are_equal(monkeypatch, count, reverse):
    monkeypatch.setattr(members, "TEXT_COUNT", 16)
    draw = random.Random(count)
    for name_count in (1, 15, 16, 17, 150):
        names = [f"q{draw.randrange(30)}" for _ in range(name_count)]
        texts = ["\n".join(names[at : at + 16]) for at in range(0, name_count, 16)]
        hits = bytearray(draw.randrange(2) for _ in names)
        ordered = sorted(range(name_count), key=lambda number, names=names: (names[number], number), reverse=reverse)
        chunks = Chunks(None, Column(NAME, str), name_count, texts)
        assert await find_first(chunks.walk(reverse=reverse), count, None, reverse=reverse) == ordered[:count]
        wanted = [number for number in ordered if hits[number]]
        assert await find_first(chunks.walk(reverse=reverse), count, hits, reverse=reverse) == wanted[:count]
