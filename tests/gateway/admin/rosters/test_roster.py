from __future__ import annotations

import asyncio
import random

import pytest

from gateway.admin import pace, steps
from gateway.admin.rosters import chunks, members, middle_page, roster as kept, sorting
from gateway.admin.rosters.column import NAME, Column
from gateway.admin.rosters.part import Part
from gateway.admin.rosters.roster import Roster
from gateway.admin.rosters.searching import Search

pytestmark = pytest.mark.asyncio
ALL = 1 << 40
BY_NAME = Column(NAME, str)
BY_DEPTH = Column("depth", lambda thing: thing.depth)


class _Thing:
    def __init__(self, name, depth=0):
        self.name = name
        self.depth = depth
        self.is_there = True


class _Shelf(Part):
    def __init__(self, things):
        self.things = things

    def arrivals(self):
        self.size = len(self.things)
        yield

    def alive(self):
        return sum(thing.is_there for thing in self.things)

    def name(self, number):
        return self.things[number].name

    def take(self, number):
        thing = self.things[number]
        return thing if thing.is_there else None


class _Shelves(Roster):
    def __init__(self, **shelves):
        super().__init__()
        self.shelves = shelves

    def sources(self):
        return list(self.shelves)

    def open(self, source):
        return _Shelf(self.shelves[source])


def _names(found):
    return [thing.name for thing in found.things]


async def test_what_comes_and_goes_between_two_questions_is_in_its_place(monkeypatch):
    monkeypatch.setattr(kept, "FRESH_MAX", 40)
    monkeypatch.setattr(members, "TEXT_COUNT", 16)
    draw = random.Random(34)
    things: list[_Thing] = []
    shelves = {"a": [], "b": []}
    roster = _Shelves(**shelves)
    for turn in range(60):
        for _ in range(draw.randrange(12)):
            thing = _Thing(f"q{draw.randrange(10**6):06}", draw.randrange(5))
            draw.choice(list(shelves.values())).append(thing)
            things.append(thing)
        for thing in draw.sample(things, min(len(things), draw.randrange(9))):
            thing.is_there = False
            things.remove(thing)
        by_name = sorted(thing.name for thing in things)
        found = await roster.find(BY_NAME, 0, ALL, None)
        assert (found.total, found.filtered, _names(found)) == (len(things), len(things), by_name), turn
        first = draw.randrange(len(things) + 3)
        found = await roster.find(BY_NAME._replace(reverse=True), first, first + 7, None)
        assert _names(found) == by_name[::-1][first : first + 7]
        word = str(draw.randrange(100))
        found = await roster.find(BY_NAME, 0, ALL, Search(lambda name, word=word: word in name, word))
        assert (found.total, _names(found)) == (len(things), [name for name in by_name if word in name])
        found = await roster.find(BY_DEPTH, 0, ALL, None)
        assert sorted(_names(found)) == by_name


async def test_an_order_by_a_figure_is_made_anew_and_a_dear_one_beside_the_questions(monkeypatch):
    things = [_Thing(f"q{number}", number) for number in range(10)]
    roster = _Shelves(a=things)
    assert _names(await roster.find(BY_DEPTH, 0, 2, None)) == ["q0", "q1"]
    things[0].depth = 99
    async with asyncio.timeout(20):
        while _names(await roster.find(BY_DEPTH, 0, 2, None)) != ["q1", "q2"]:
            await asyncio.sleep(0.005)
    monkeypatch.setattr(kept, "WAITED_S", -1.0)
    monkeypatch.setattr(kept, "SHARE", 0)
    things[1].depth = 98
    assert _names(await roster.find(BY_DEPTH, 0, 2, None)) == ["q1", "q2"]  # as it was, while the new one is made
    async with asyncio.timeout(20):
        while _names(await roster.find(BY_DEPTH, 0, 2, None)) != ["q2", "q3"]:
            await asyncio.sleep(0)


async def test_an_order_of_many_is_made_anew_when_it_is_its_turn(monkeypatch):
    monkeypatch.setattr(kept, "FEW", 9)
    clock_s = [1_000.0]
    monkeypatch.setattr(pace, "monotonic", lambda: clock_s[0])
    monkeypatch.setattr(kept, "monotonic", lambda: clock_s[0])
    things = [_Thing(f"q{number}", number) for number in range(10)]
    roster = _Shelves(a=things)
    assert _names(await roster.find(BY_DEPTH, 0, 2, None)) == ["q0", "q1"]
    roster.pace.note((id(roster), "depth"), 0.2)
    things[0].depth = 99
    clock_s[0] += 0.2 * pace.SHARE - 1
    (first, second) = (await roster.find(BY_DEPTH, 0, 2, None)).things
    assert (first.name, first.depth, second.name) == ("q0", 99, "q1")  # figures are those of the moment
    clock_s[0] += 1
    assert _names(await roster.find(BY_DEPTH, 0, 2, None)) == ["q1", "q2"]


async def test_a_source_that_comes_later_is_in_the_list(monkeypatch):
    roster = _Shelves(a=[_Thing("x")])
    assert _names(await roster.find(BY_NAME, 0, ALL, None)) == ["x"]
    roster.shelves["b"] = [_Thing("w\nv")]
    assert _names(await roster.find(BY_NAME, 0, ALL, None)) == ["w\nv", "x"]
    assert _names(await roster.find(BY_NAME, 0, ALL, Search(lambda name: name.startswith("w"), "w"))) == ["w\nv"]


async def test_orders_are_bounded():
    roster = _Shelves(a=[_Thing("x")])
    for number in range(kept.ORDERS_MAX * 2):
        await roster.find(Column(f"column{number}", lambda _: 0), 0, 1, None)
    assert len(roster._orders) == kept.ORDERS_MAX


async def test_many_names_that_come_at_once_are_each_in_their_place(monkeypatch):
    monkeypatch.setattr(members, "TEXT_COUNT", 16)
    draw = random.Random(7)
    things = [_Thing(f"q{draw.randrange(10**6):06}\n") for _ in range(300)]
    roster = _Shelves(a=things[:150], b=things[150:])
    found = await roster.find(BY_NAME, 0, ALL, None)
    assert _names(found) == sorted(thing.name for thing in things)
    found = await roster.find(BY_NAME, 0, ALL, Search(lambda name: name.startswith("q1"), "q1"))
    assert _names(found) == sorted(thing.name for thing in things if thing.name.startswith("q1"))


@pytest.mark.parametrize("reverse", [False, True])
async def test_a_first_page_of_many_does_not_wait_until_all_are_in_order(monkeypatch, reverse):
    monkeypatch.setattr(members, "TEXT_COUNT", 16)
    monkeypatch.setattr(kept, "LONG", 100)
    draw = random.Random(11)
    roster = _Shelves(a=[_Thing(f"q{draw.randrange(10**6):06}") for _ in range(300)])
    by_name, column = sorted(thing.name for thing in roster.shelves["a"]), BY_NAME._replace(reverse=reverse)
    expected = by_name[::-1] if reverse else by_name
    found = await roster.find(column, 20, 40, None)
    assert roster._orders == {}
    assert (found.total, found.filtered, _names(found)) == (300, 300, expected[20:40])
    search = Search(lambda name: "7" in name, "7")
    hits = [name for name in expected if "7" in name]
    found = await roster.find(column, 5, 9, search)
    assert (found.total, found.filtered, _names(found)) == (300, len(hits), hits[5:9])
    async with asyncio.timeout(20):
        while not roster._orders:  # it is made beside the questions
            await asyncio.sleep(0)
    for first in (20, 295, 300):
        assert _names(await roster.find(column, first, first + 20, None)) == expected[first : first + 20]


@pytest.mark.parametrize("reverse", [False, True])
async def test_a_first_page_of_as_many_as_fill_their_texts_has_no_name_too_many(monkeypatch, reverse):
    monkeypatch.setattr(members, "TEXT_COUNT", 16)
    monkeypatch.setattr(kept, "LONG", 100)
    names = [f"q{number:03}" for number in range(160)]
    roster = _Shelves(a=list(map(_Thing, names)))
    found = await roster.find(BY_NAME._replace(reverse=reverse), 0, 5, None)
    assert (found.total, found.filtered, _names(found)) == (160, 160, sorted(names, reverse=reverse)[:5])
    roster = _Shelves(a=list(map(_Thing, names)))
    found = await roster.find(BY_NAME._replace(reverse=reverse), 0, 5, Search(lambda name: "q15" in name, "q15"))
    assert (found.filtered, _names(found)) == (10, sorted(names[150:], reverse=reverse)[:5])


class _SlowShelves(_Shelves):
    """No order is ever made."""

    async def _make_order(self, column):
        await asyncio.Event().wait()


async def test_who_asks_for_first_pages_by_ever_other_columns_has_only_some_orders_made(monkeypatch):
    monkeypatch.setattr(kept, "LONG", 20)
    roster = _SlowShelves(a=[_Thing(f"q{number:03}", number % 7) for number in range(100)])
    for number in range(3 * kept.ORDERS_MAX):
        column = BY_DEPTH._replace(name=f"arguments.{number}")
        assert [thing.depth for thing in (await roster.find(column, 0, 3, None)).things] == [0, 0, 0]
    assert len(roster._tasks) == kept.ORDERS_MAX
    roster.stop()


async def test_list_is_worn_when_most_of_its_sources_are_gone_also_those_that_had_nothing():
    shelves, step = _Shelves(), 500
    for first in range(0, 4 * step, step):
        assert not shelves.is_worn
        shelves.shelves = {number: [] for number in range(first, first + step)}
        assert (await shelves.find(BY_NAME, 0, ALL, None)).total == 0
    assert shelves.is_worn


@pytest.mark.parametrize("reverse", [False, True])
async def test_first_pages_by_a_figure_come_before_all_are_in_order(monkeypatch, reverse):
    monkeypatch.setattr(kept, "LONG", 20)
    monkeypatch.setattr(chunks, "FIGURES_A_STEP", 8)
    draw = random.Random(3)
    things = [_Thing(f"q{number:03}", draw.randrange(9)) for number in range(100)]
    roster = _Shelves(a=things[:55], b=things[55:])
    column = BY_DEPTH._replace(reverse=reverse)
    wanted = sorted(things, key=lambda thing: (thing.depth, thing.name), reverse=reverse)
    found = await roster.find(column, 10, 30, None)
    assert (found.total, found.filtered, found.things) == (100, 100, wanted[10:30])
    assert not roster._orders  # it is made beside the questions
    search = Search(lambda name: "7" in name, "7")
    found = await roster.find(column, 0, 5, search)
    assert (found.filtered, found.things) == (19, [thing for thing in wanted if "7" in thing.name][:5])
    async with asyncio.timeout(20):
        while "depth" not in roster._orders:
            await asyncio.sleep(0)
    assert (await roster.find(column, 10, 30, None)).things == wanted[10:30]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("column", [BY_NAME, BY_DEPTH])
async def test_the_last_page_of_a_long_list_waits_for_no_order(monkeypatch, column, reverse):
    monkeypatch.setattr(kept, "LONG", 20)
    monkeypatch.setattr(kept, "FIRST_MAX", 30)
    draw = random.Random(6)
    things = [_Thing(f"q{number:03}", draw.randrange(9)) for number in range(100)]
    roster, column = _Shelves(a=things[:55], b=things[55:]), column._replace(reverse=reverse)
    await roster.find(BY_DEPTH, 0, 1, Search(lambda _: False, "none"))
    for thing in draw.sample(things, 7):
        thing.is_there = False
    roster.stop()
    wanted = [thing for thing in things if thing.is_there]
    wanted.sort(key=lambda thing: (thing.depth if column.name == "depth" else 0, thing.name), reverse=reverse)
    found = await roster.find(column, 90, 100, None)
    assert (found.total, found.filtered, found.things) == (93, 93, wanted[90:])
    assert not roster._orders  # it is made beside the questions
    search = Search(lambda name: "7" in name, "7")
    found = await roster.find(column, 10, 20, search)
    assert found.things == [thing for thing in wanted if "7" in thing.name][10:20]
    roster.stop()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("column", [BY_NAME, BY_DEPTH])
async def test_a_page_in_the_midst_of_a_long_list_waits_for_no_order(monkeypatch, column, reverse):
    for name, size in (("LONG", 50), ("FIRST_MAX", 20)):
        monkeypatch.setattr(kept, name, size)
    draw = random.Random(9)
    things = [_Thing(f"q{number:03}", draw.randrange(20)) for number in range(300)]
    roster, column = _SlowShelves(a=things[:120], b=things[120:]), column._replace(reverse=reverse)
    for thing in draw.sample(things, 9):
        thing.is_there = False
    wanted = [thing for thing in things if thing.is_there]
    wanted.sort(key=lambda thing: (thing.depth if column.name == "depth" else 0, thing.name), reverse=reverse)
    async with asyncio.timeout(20):
        found = await roster.find(column, 140, 150, None)
        assert (found.total, found.filtered, found.things) == (291, 291, wanted[140:150])
        for word in ("1", "7"):  # of the latter there are few
            hits = [thing for thing in wanted if word in thing.name]
            found = await roster.find(column, 25, 32, Search(lambda name, word=word: word in name, word))
            assert (found.total, found.filtered, found.things) == (291, len(hits), hits[25:32])
    roster.stop()


@pytest.mark.parametrize("reverse", [False, True])
async def test_pages_behind_the_last_one_are_empty(reverse):
    roster = _Shelves(a=[_Thing(f"q{number}") for number in range(15)])
    for first in (15, 20, 40):
        assert _names(await roster.find(BY_NAME._replace(reverse=reverse), first, first + 10, None)) == []


class _ToldShelf(_Shelf):
    def figures(self, column, first, end):
        assert end - first <= chunks.TOLD_A_STEP
        return [thing.depth for thing in self.things[first:end]] if column == "depth" else None


async def test_an_order_is_made_of_what_is_told_at_once_also_where_some_are_gone(monkeypatch):
    monkeypatch.setattr(sorting, "TOLD_AT_ONCE", chunks.TOLD_A_STEP // 2)
    draw = random.Random(5)
    things = [_Thing(f"q{number:03}", draw.randrange(9)) for number in range(300)]
    for thing in draw.sample(things, 40):
        thing.is_there = False
    roster, there = _KnownShelves(a=[], b=things), [thing for thing in things if thing.is_there]

    def tell(thing):
        raise AssertionError(thing.name)

    found = await roster.find(Column("depth", tell), 0, ALL, None)
    assert found.things == sorted(there, key=lambda thing: thing.depth)


class _KnownShelf(_Shelf):
    def at_most(self, column, first, end):
        return [thing.most for thing in self.things[first:end]] if column == "depth" else None


class _KnownShelves(_Shelves):
    def open(self, source):
        return {"a": _KnownShelf, "b": _ToldShelf}.get(source, _Shelf)(self.shelves[source])


@pytest.mark.parametrize("seed", range(8))
async def test_pages_of_any_history_together_are_the_list(monkeypatch, seed):
    draw = random.Random(seed)
    for module, name, sizes in (
        (kept, "FRESH_MAX", (5, 40)),
        (members, "TEXT_COUNT", (4, 16)),
        (kept, "LONG", (10, 100)),
        (chunks, "FIGURES_A_STEP", (3, 8)),
        (kept, "FIRST_MAX", (9, 30, 2_000)),
        (members, "FIRST_MAX", (9, 30, 2_000)),
        (members, "THERE_A_STEP", (3, 64)),
        (middle_page, "SAMPLE", (16, 64)),
        (middle_page, "DOUBT", (0.0, 1.0, 4.0)),
        (middle_page, "SOLE_MIN", (1, 2, 64)),
    ):
        monkeypatch.setattr(module, name, draw.choice(sizes))
    monkeypatch.setattr(chunks, "TOLD_A_STEP", draw.choice((2, 5)))
    roster, things = _KnownShelves(a=[], b=[], c=[]), []
    may_go = draw.random() < 0.5
    for _ in range(8):
        for _ in range(draw.randrange(60)):
            thing = _Thing(f"q{draw.randrange(300):03}", draw.choice([0, 0, draw.randrange(5)]))
            thing.most = thing.depth + draw.randrange(3)
            draw.choice(list(roster.shelves.values())).append(thing)
            things.append(thing)
        mortal = [thing for thing in things if thing not in roster.shelves["b"]]
        for thing in draw.sample(mortal, min(len(mortal), 5 * may_go)):
            thing.is_there = False
            things.remove(thing)
        for column in (BY_NAME, BY_DEPTH):
            asked, word = column._replace(reverse=draw.random() < 0.5), draw.choice(["", "q1", "7"])
            wanted = [thing for thing in things if word in thing.name]
            search = Search(lambda name, word=word: word in name, draw.choice(["", word])) if word else None
            pages = []
            if draw.random() < 0.5:  # the last page is asked for first
                first = max(len(wanted) - 7, 0)
                found = await roster.find(asked, first, first + 7, search)
                assert len(found.things) == min(len(wanted), 7)
            for first in range(0, len(wanted) + 14, 7):
                found = await roster.find(asked, first, first + 7, search)
                assert (found.total, found.filtered) == (len(things), len(wanted))
                pages += found.things
            key = (lambda thing: thing.name) if column is BY_NAME else (lambda thing: thing.depth)
            assert sorted(map(id, pages)) == sorted(map(id, wanted)), asked
            assert list(map(key, pages)) == sorted(map(key, wanted), reverse=asked.reverse)
    roster.stop()


async def test_a_first_page_by_what_is_dear_to_tell_goes_in_steps(monkeypatch):
    monkeypatch.setattr(kept, "LONG", 100)
    clock_s, told, at_once = [0.0], [0], []
    monkeypatch.setattr(steps, "perf_counter", lambda: clock_s[0])

    def tell(thing):
        clock_s[0] += 0.000_05
        told[0] += 1
        return thing.depth

    async def take_turns():
        while True:
            at_once.append(told[0])
            told[0] = 0
            await asyncio.sleep(0)

    roster, beside = (
        _Shelves(a=[_Thing(f"q{number}", number) for number in range(2_000)]),
        asyncio.create_task(take_turns()),
    )
    found = await roster.find(Column("dear", tell), 0, 10, None)
    assert _names(found) == [f"q{number}" for number in range(10)]
    assert sum(at_once) >= 1_900
    assert max(at_once) <= 64  # of 50 us each
    beside.cancel()
    roster.stop()


@pytest.mark.parametrize("is_reverse", [False, True])
@pytest.mark.parametrize("fresh_max", [0, 5, 500])
async def test_a_page_of_what_is_looked_for_is_that_of_all_that_are_found(monkeypatch, is_reverse, fresh_max):
    monkeypatch.setattr(kept, "FRESH_MAX", fresh_max)
    monkeypatch.setattr(members, "TEXT_COUNT", 16)
    draw = random.Random(fresh_max)
    shelf = [_Thing(f"q{draw.randrange(10**6):06}") for _ in range(200)]
    roster = _Shelves(a=shelf)
    column, search = Column(NAME, str, is_reverse), Search(lambda name: "7" in name, "7")
    for turn in range(40):
        shelf += [_Thing(f"q{draw.randrange(10**6):06}") for _ in range(draw.randrange(5))]
        for thing in draw.sample(shelf, 2) if turn >= 20 else ():
            thing.is_there = False
        wanted = sorted((thing.name for thing in shelf if thing.is_there and "7" in thing.name), reverse=is_reverse)
        first = draw.randrange(len(wanted) + 10)
        end = first + draw.randrange(1, 30)
        found = await roster.find(column, first, end, search)
        told = len([thing for thing in shelf if thing.is_there]), len(wanted), wanted[first:end]
        assert (found.total, found.filtered, _names(found)) == told, turn
