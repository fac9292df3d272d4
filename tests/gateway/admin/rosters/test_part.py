from __future__ import annotations

from gateway.admin.rosters.part import Part, on_a_line


class _Letters(Part):
    size = 3

    def arrivals(self):
        yield

    def alive(self):
        return 2

    def name(self, number):
        return "a\nbc"[number : number + 2]

    def take(self, number):
        return None if number == 1 else self.name(number)


def test_a_part_that_says_little_is_asked_thing_by_thing():
    letters = _Letters()
    assert letters.names(0, 3) == "a \n b\nbc"
    assert letters.there(0, 3) == b"\x01\x00\x01"
    assert (letters.figures("depth", 0, 3), letters.at_most("depth", 0, 3)) == (None, None)
    assert not letters.is_cheap("depth", 0, 3)


def test_a_name_stands_on_one_line():
    assert (on_a_line("a\nb\n"), on_a_line("ab")) == ("a b ", "ab")
