from __future__ import annotations

import asyncio
import random

import pytest

from gateway.admin.rosters import kept_hits
from gateway.admin.rosters.kept_hits import KEPT_MAX, KeptHits
from gateway.admin.rosters.searching import Search

pytestmark = pytest.mark.asyncio
SIZE = 8


def _texts(names):
    return ["\n".join(names[at : at + SIZE]) for at in range(0, len(names), SIZE)]


def _search(word, asked):
    def matches(name):
        asked.append(name)
        return word in name

    return Search(matches, pattern=word)


async def test_of_a_search_that_comes_again_only_new_names_are_looked_at():
    draw, hits, names, asked = random.Random(34), KeptHits(), [], []
    for _ in range(30):
        names += [f"q{draw.randrange(99)}" for _ in range(draw.randrange(5))]
        asked.clear()
        found = await hits.find(_search("7", asked), _texts(names), SIZE, len(names))
        assert list(found) == ["7" in name for name in names]
        assert len(asked) < SIZE + 5  # those of the last text, which was not full, and what came
        found[:] = bytes(len(found))  # it is the asker's own
    asked.clear()
    await hits.find(_search("7", asked), _texts(names), SIZE, len(names))
    assert asked == []


async def test_what_was_asked_of_fewer_names_is_told_of_those():
    hits, names = KeptHits(), ["a7", "b", "c7"]
    assert list(await hits.find(_search("7", []), _texts(names), SIZE, 3)) == [1, 0, 1]
    assert list(await hits.find(_search("7", []), _texts(names), SIZE, 2)) == [1, 0]


async def test_the_searches_of_late_are_kept_each_for_itself():
    hits, names, asked = KeptHits(), ["a", "b", "c"], []
    words = ["a", "b", "c"][: KEPT_MAX + 1]
    for word in words:
        assert list(await hits.find(_search(word, []), _texts(names), SIZE, 3)) == [word == name for name in names]
    for word in reversed(words):
        await hits.find(_search(word, asked), _texts(names), SIZE, 3)
    assert asked == names  # for the first one alone, which was forgotten


async def test_two_that_ask_the_same_at_once_have_it_looked_for_once(monkeypatch):
    looks, find = [], kept_hits.find_hits

    async def slow(*args):
        looks.append(args)
        await asyncio.sleep(0)
        return await find(*args)

    monkeypatch.setattr(kept_hits, "find_hits", slow)
    hits, search = KeptHits(), Search(lambda name: "7" in name, "7")
    found = await asyncio.gather(*(hits.find(search, ["a7\nb"], SIZE, 2) for _ in range(3)))
    assert ([list(one) for one in found], len(looks)) == ([[1, 0]] * 3, 1)


async def test_a_search_that_is_like_no_other_is_made_each_time():
    hits = KeptHits()
    for wanted in ("a", "b"):
        found = await hits.find(Search(lambda name, wanted=wanted: name == wanted), ["a\nb"], SIZE, 2)
        assert list(found) == [wanted == "a", wanted == "b"]
