from __future__ import annotations

import random

import pytest

from gateway.admin.rosters import grouped_part
from gateway.admin.rosters.grouped_part import GroupedPart


class _Shelf:
    """Holders with their things, and the part that is of them."""

    def __init__(self):
        self.held: dict[bytes, list[bytes]] = {}
        self.changes = 0
        self.walks = 0
        figures = {
            "length": lambda some: [0 if one is None else len(one[1]) for one in some],
            "none": lambda some: None,
        }
        self.part = GroupedPart(self._walk, self._tell, lambda: self.changes, figures)

    def _walk(self):
        self.walks += 1
        return ((name, list(things)) for name, things in list(self.held.items()))

    def _tell(self, found):
        return found if found[1] in self.held.get(found[0], ()) else None

    def look(self):
        self.changes += 1
        for _ in self.part.arrivals():
            pass

    def there(self):
        return [(name, thing) for name, things in self.held.items() for thing in things]

    def told(self):
        return [one for one in map(self.part.take, range(self.part.size)) if one is not None]


@pytest.fixture
def shelf():
    return _Shelf()


@pytest.mark.parametrize("at_once", [1, 2, 1_024])
def test_what_comes_and_goes_in_any_order_is_told_once_and_keeps_its_number(shelf, monkeypatch, at_once):
    monkeypatch.setattr(grouped_part, "TAKEN_A_STEP", at_once)
    draw, part, numbers = random.Random(at_once), shelf.part, {}
    for turn in range(300):
        for _ in range(draw.randrange(4)):
            held = shelf.held.setdefault(b"%d" % draw.randrange(9), [])
            action = draw.randrange(6)
            if action == 0:
                del shelf.held[draw.choice(list(shelf.held))]
            elif action == 1:
                draw.shuffle(held)
            elif action == 2 and held:
                held.remove(draw.choice(held))
            else:
                held += {b"t/%d" % draw.randrange(40) for _ in range(4)} - set(held)
        shelf.look()
        there = shelf.there()
        assert sorted(shelf.told()) == sorted(there), turn
        assert part.alive() == len(there)
        is_there = [bool(one) for one in part.there(0, part.size)]
        assert [number for number, one in enumerate(is_there) if not one] == sorted(part.gone)
        names = [part.name(number) for number in range(part.size)]
        assert part.names(0, part.size) == "\n".join(names)
        assert part.figures("length", 0, part.size) == [
            len(name) * one for name, one in zip(names, is_there, strict=True)
        ]
        numbers |= {number: part.take(number) for number in range(part.size) if number not in numbers}
        assert all(part.take(number) in {one, None} for number, one in numbers.items())


def test_those_that_stay_in_their_order_keep_their_numbers(shelf):
    shelf.held = {b"a": [b"%d" % number for number in range(3_000)], b"b": [b"x"]}
    shelf.look()
    shelf.held[b"a"][1_500:1_502] = []
    shelf.held[b"a"].append(b"new")
    shelf.look()
    assert (list(shelf.part.gone), shelf.part.size) == ([1_500, 1_501], 3_002)
    assert shelf.part.take(3_001) == (b"a", b"new")


def test_nothing_is_looked_at_while_nothing_came_or_went(shelf):
    shelf.held = {b"a": [b"1"]}
    shelf.look()
    for _ in shelf.part.arrivals():
        pass
    assert shelf.walks == 1


def test_a_look_that_is_given_up_is_made_good_by_the_next(shelf):
    shelf.held = {b"%d" % number: [b"t", b"u"] for number in range(400)}
    shelf.changes += 1
    next(shelf.part.arrivals())
    shelf.held = {b"%d" % number: [b"u"] for number in range(0, 400, 2)}
    shelf.look()
    assert sorted(shelf.told()) == sorted(shelf.there())
    assert shelf.part.alive() == 200


def test_holders_with_very_much_have_steps_of_their_own(shelf):
    shelf.held = {b"%d" % number: [b"%d" % thing for thing in range(2_000)] for number in range(8)}
    shelf.changes += 1
    steps = [shelf.part.size for _ in shelf.part.arrivals()]
    assert max(after - before for before, after in zip([0, *steps], steps, strict=False)) == 2_000


def test_a_name_with_a_line_break_stays_one_name(shelf):
    shelf.held = {b"a": [b"x\ny", b"z"]}
    shelf.look()
    assert shelf.part.names(0, 2) == "x y\nz"


def test_a_column_that_is_not_quick_to_tell_is_not_told(shelf):
    shelf.held = {b"a": [b"x"]}
    shelf.look()
    assert shelf.part.figures("none", 0, 1) is None
    assert shelf.part.figures("other", 0, 1) is None
