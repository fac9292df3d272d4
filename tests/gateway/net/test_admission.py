"""Connections that come at once are heard a few at a time, in order."""

from __future__ import annotations

from gateway.net.admission import ADMITTED_MAX, Admission


class Newcomer:
    def __init__(self, number, heard):
        self.number = number
        self.heard = heard

    def admit(self):
        self.heard.append(self.number)


class Crowd:
    """Newcomers at one door; a turn of the loop is a call."""

    def __init__(self):
        self.turns = []
        self.heard = []
        self.admission = Admission(self.turns.append)

    def come(self, first, end):
        for number in range(first, end):
            if self.admission.may_enter(Newcomer(number, self.heard)):
                self.heard.append(number)

    def turn(self):
        due, self.turns[:] = self.turns[:], []
        for call in due:
            call()


def test_few_are_heard_at_once():
    crowd = Crowd()
    crowd.come(0, ADMITTED_MAX)
    assert crowd.heard == [*range(ADMITTED_MAX)]


def test_many_are_heard_in_order_a_few_in_each_turn():
    crowd = Crowd()
    crowd.come(0, 3 * ADMITTED_MAX + 1)
    for heard in (1, 2, 3):
        assert crowd.heard == [*range(heard * ADMITTED_MAX)]
        crowd.turn()
    assert crowd.heard == [*range(3 * ADMITTED_MAX + 1)]


def test_who_comes_later_is_heard_after_those_who_wait():
    crowd = Crowd()
    crowd.come(0, ADMITTED_MAX + 2)
    crowd.turn()
    crowd.come(ADMITTED_MAX + 2, ADMITTED_MAX + 4)
    crowd.turn()
    assert crowd.heard == [*range(ADMITTED_MAX + 4)]


def test_door_rests_when_nobody_comes():
    crowd = Crowd()
    crowd.come(0, 1)
    crowd.turn()
    assert crowd.turns == []
    crowd.come(1, 2)
    assert crowd.heard == [0, 1]
