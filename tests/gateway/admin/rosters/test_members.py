from __future__ import annotations

import random

import pytest

from gateway.admin.rosters import members
from gateway.admin.rosters.members import Members
from gateway.admin.rosters.part import Part

pytestmark = pytest.mark.asyncio


class _Told(Part):
    """Things that are told gone; whether they are there is asked of none."""

    def __init__(self, names):
        self.names_of = names
        self.gone = []

    def arrivals(self):
        self.size = len(self.names_of)
        yield

    def alive(self):
        return self.size - len(self.gone)

    def name(self, number):
        return self.names_of[number]

    def there(self, first, end):
        raise AssertionError((first, end))

    def take(self, number):
        return None if number in self.gone else self.names_of[number]


class _Asked(_Told):
    """Things that went without a word."""

    def __init__(self, names):
        super().__init__(names)
        self.went = set()

    def alive(self):
        return self.size - len(self.went)

    def there(self, first, end):
        return bytes(number not in self.went for number in range(first, end))

    def take(self, number):
        return None if number in self.went else self.names_of[number]


async def test_what_is_told_gone_is_known_without_a_look_at_each(monkeypatch):
    monkeypatch.setattr(members, "TAKEN_A_STEP", 2)
    draw = random.Random(8)
    parts = {"a": _Told([]), "b": _Told([])}
    things = Members(lambda: list(parts), parts.__getitem__)
    for turn in range(12):
        for key, part in parts.items():
            part.names_of += [f"{key}{turn:02}{number}" for number in range(draw.randrange(9))]
        await things.take_in()
        for part in parts.values():
            alive = [number for number in range(part.size) if number not in part.gone]
            part.gone += draw.sample(alive, min(len(alive), draw.randrange(4)))
        await things.take_in()
        there = await things.find_there()
        names = [things.name_of(number) for number in range(len(things)) if there[number]]
        expected = [part.names_of[number] for part in parts.values() for number in range(part.size)
                    if number not in part.gone]  # fmt: skip
        assert sorted(names) == sorted(expected)
        assert things.dead == len(things) - len(expected)
        assert "\n".join(things.texts).split("\n") == [things.name_of(number) for number in range(len(things))]


async def test_where_some_went_without_a_word_each_is_asked():
    parts = {"a": _Told(["x", "y"]), "b": _Asked(["p", "q", "r"])}
    parts["a"].there = lambda first, end: bytes(number not in parts["a"].gone for number in range(first, end))
    things = Members(lambda: list(parts), parts.__getitem__)
    await things.take_in()
    parts["a"].gone.append(0)
    parts["b"].went.add(1)
    await things.take_in()
    assert (things.dead, list(await things.find_there())) == (2, [0, 1, 1, 0, 1])
    assert await things.take([0, 1, 4]) == ["y", "r"]


class _Leaving(_Told):
    """Things that have other numbers one day."""

    has_left = False
    looks = 0

    @property
    def is_left(self):
        return self.has_left

    def arrivals(self):
        self.looks += 1
        return super().arrivals()


async def test_a_part_that_is_left_wears_the_list():
    part = _Leaving(["x"])
    things = Members(lambda: ["a"], lambda _: part)
    await things.take_in()
    assert not things.is_worn
    part.has_left = True
    assert things.is_worn


async def test_only_parts_whose_things_move_are_looked_at_while_nothing_is_said_to_change():
    parts, version = {"a": _Told(["x"]), "b": _Leaving(["p"]), "c": _Told([])}, [1]
    things = Members(lambda: [None, *parts], parts.__getitem__, lambda: list(version))
    for names, looks in ((["x", "p"], 1), (["x", "p"], 2), (["x", "p"], 3)):
        await things.take_in()
        assert ([things.name_of(number) for number in range(len(things))], parts["b"].looks) == (names, looks)
    parts["a"].names_of.append("y")
    parts["b"].names_of.append("q")
    parts["d"] = _Told(["z"])
    parts["b"].gone.append(0)
    await things.take_in()
    assert ([things.name_of(number) for number in range(len(things))], things.dead) == (["x", "p", "q"], 1)
    version[0] = 2
    parts["a"].gone.append(0)
    await things.take_in()
    assert [things.name_of(number) for number in range(len(things))] == ["x", "p", "q", "y", "z"]
    assert (things.dead, list(await things.find_there())) == (2, [0, 0, 1, 1, 1])
    await things.take_in()
    assert things.dead == 2


class _Marked(_Told):
    """Things that say when they come and go."""

    def __init__(self, names):
        super().__init__(names)
        self.said = 0
        self.looks = 0

    def mark(self):
        return self.said

    def arrivals(self):
        self.looks += 1
        return super().arrivals()


async def test_a_part_whose_mark_is_as_it_was_is_not_looked_at():
    parts = {name: _Marked([name]) for name in "abc"}
    things = Members(lambda: list(parts), parts.__getitem__)
    await things.take_in()
    parts["b"].names_of.append("d")
    parts["b"].said += 1
    parts["c"].gone.append(0)
    parts["c"].said += 1
    for _ in range(2):
        await things.take_in()
        assert [things.name_of(number) for number in range(len(things))] == ["a", "b", "c", "d"]
        assert (things.dead, list(await things.find_there())) == (1, [1, 1, 0, 1])
    assert [part.looks for part in parts.values()] == [1, 2, 2]


async def test_a_list_whose_sources_went_is_worn(monkeypatch):
    monkeypatch.setattr(members, "DEAD_MIN", 1)
    parts = {name: _Told([name]) for name in "abcd"}
    sources = dict(parts)
    things = Members(lambda: list(sources), parts.__getitem__)
    await things.take_in()
    for name in "abc":
        del sources[name]
    await things.take_in()
    assert things.is_worn
