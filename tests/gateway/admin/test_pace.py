from __future__ import annotations

import pytest

from gateway.admin import pace
from gateway.admin.pace import Pace


@pytest.fixture
def clock(monkeypatch):
    now = [1_000.0]
    monkeypatch.setattr(pace, "monotonic", lambda: now[0])
    return now


def test_what_costs_little_is_done_again_after_some_seconds(clock):
    tempo = Pace()
    assert tempo.is_due("walk", float("-inf"))
    tempo.note("walk", 0.001)
    assert not tempo.is_due("walk", clock[0] - pace.FRESH_S + 0.1)
    assert tempo.is_due("walk", clock[0] - pace.FRESH_S)


def test_all_pieces_together_take_their_share_of_the_time(clock):
    tempo, done, costs, spent = Pace(), {}, {"a": 0.05, "b": 0.15, "c": 0.1}, 0.0
    for _ in range(4_000):
        clock[0] += 0.25
        for piece, cost_s in costs.items():
            if tempo.is_due(piece, done.get(piece, float("-inf"))):
                spent += cost_s
                done[piece] = clock[0]
                tempo.note(piece, cost_s)
    assert spent / (clock[0] - 1_000) == pytest.approx(1 / pace.SHARE, rel=0.05)


def test_what_nobody_asks_for_any_more_leaves_the_time_to_the_rest(clock):
    tempo = Pace()
    for piece, cost_s in (("a", 1.0), ("b", 2.0)):
        tempo.note(piece, cost_s)
    assert tempo.period_s() == 3 * pace.SHARE
    clock[0] += pace.USED_S - 1
    tempo.is_due("a", 0.0)
    clock[0] += 2
    assert tempo.period_s() == pace.SHARE


def test_questions_are_under_way_until_the_last_of_them_is_answered(clock):
    pace = Pace()
    with pace.asking():
        with pytest.raises(KeyError), pace.asking():
            raise KeyError
        assert pace.is_asked()
    assert not pace.is_asked()
