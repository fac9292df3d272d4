from __future__ import annotations

import pytest

from gateway.admin.rosters import chunks
from gateway.admin.rosters.chunks import Chunks
from gateway.admin.rosters.column import NAME, Column
from gateway.admin.rosters.members import Members
from gateway.admin.rosters.part import Part

pytestmark = pytest.mark.asyncio


class _Numbers(Part):
    def __init__(self, things):
        self._things = things

    def arrivals(self):
        self.size = len(self._things)
        yield

    def alive(self):
        return self.size - self._things.count(None)

    def name(self, number):
        return f"n{number}"

    def take(self, number):
        return self._things[number]


async def _made(things, column):
    found = Members(lambda: ["all"], lambda _: _Numbers(things))
    await found.take_in()
    return Chunks(found, column, len(found), found.texts)


@pytest.mark.parametrize("reverse", [False, True])
async def test_each_chunk_says_what_its_things_have(monkeypatch, reverse):
    monkeypatch.setattr(chunks, "FIGURES_A_STEP", 3)
    made = await _made([5, 1, 4, None, 2, 3, None], Column("size", lambda thing: thing))
    walked = list(made.walk(reverse=reverse))
    told = [await chunk.tell() for chunk in walked]
    wanted = [[5, 1, 4], [2, 2, 3], []]  # what is gone has what another has
    assert told == (wanted[::-1] if reverse else wanted)
    before = [await chunk.before(3) for chunk in walked]
    passing = [[(5, 0), (4, 2)], [], []] if reverse else [[(1, 1)], [(2, 4)], []]
    assert before == (passing[::-1] if reverse else passing)


async def test_names_are_told_by_their_texts():
    made = await _made([1, 2, 3], Column(NAME, str))
    (chunk,) = made.walk(reverse=False)
    assert (chunk.first, chunk.end, await chunk.tell()) == (0, 3, ["n0", "n1", "n2"])
    assert await chunk.before("n1") == [("n0", 0)]
