"""Consumers have their turns in order, and those without room cost nothing."""

from __future__ import annotations

from hypothesis import given, strategies as st

from core.lmq.rota import Rota


class Taker:
    def __init__(self, left):
        self.left = left
        self.asked = 0

    def room(self):
        self.asked += 1
        return self.left


def hand_out(rota, count):
    """Hand out one message after the other; return their receivers."""
    got = []
    for _ in range(count):
        taker = rota.first()
        if taker is None:
            break
        taker.left -= 1
        got.append(taker)
        rota.step()
    return got


def test_each_has_its_turn_as_long_as_it_has_room():
    rota, takers = Rota(), [Taker(3), Taker(1), Taker(2)]
    for taker in takers:
        rota.note_room(taker)
    assert [takers.index(taker) for taker in hand_out(rota, 9)] == [0, 1, 2, 0, 2, 0]
    assert len(rota) == 0


def test_who_has_room_again_comes_after_those_that_wait():
    rota, first, second = Rota(), Taker(0), Taker(9)
    rota.note_room(first)
    rota.note_room(second)
    assert hand_out(rota, 1) == [second]
    first.left = 1
    assert hand_out(rota, 1) == [second]  # it has not said so
    rota.note_room(first)
    rota.note_room(first)
    assert hand_out(rota, 3) == [second, first, second]


def test_one_that_is_gone_has_no_turn():
    rota, takers = Rota(), [Taker(9), Taker(9)]
    for taker in takers:
        rota.note_room(taker)
    rota.remove(takers[0])
    rota.remove(takers[0])
    assert hand_out(rota, 2) == [takers[1]] * 2


def test_ten_thousand_that_are_full_are_looked_at_once():
    rota, free = Rota(), Taker(1_000)
    full = [Taker(0) for _ in range(10_000)]
    for taker in [*full, free]:
        rota.note_room(taker)
    assert hand_out(rota, 1_000) == [free] * 1_000
    assert sum(taker.asked for taker in full) == len(full)


def test_a_higher_rank_has_its_turns_first():
    rota, low, high, low_too = Rota(), Taker(2), Taker(2), Taker(2)
    for taker, rank in ((low, 1), (high, 9), (low_too, 1)):
        rota.note_room(taker, rank)
    assert len(rota) == 1
    assert hand_out(rota, 3) == [high, high, low]
    high.left = 1
    rota.note_room(high, 9)
    assert hand_out(rota, 9) == [high, low_too, low, low_too]


@given(st.lists(st.tuples(st.sampled_from(["room", "gone", "first"]), st.integers(0, 5))))
def test_the_first_is_always_of_the_highest_rank_that_waits(steps):
    rota, takers = Rota(), [Taker(1_000) for _ in range(6)]
    ranks = [0, 3, -2, 3, 0, 7]
    waiting = []
    for what, i in steps:
        if what == "first":
            taker = rota.first()
            highest = [k for k in waiting if ranks[k] == max(ranks[k] for k in waiting)] if waiting else []
            assert taker is (takers[highest[0]] if highest else None)
            assert len(rota) == len(highest)
            if highest:
                rota.step()
                waiting.remove(highest[0])
                waiting.append(highest[0])
        elif what == "room":
            rota.note_room(takers[i], ranks[i])
            waiting += [i] if i not in waiting else []
        else:
            rota.remove(takers[i], ranks[i])
            waiting = [k for k in waiting if k != i]
