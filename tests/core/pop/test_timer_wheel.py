"""Deadlines come in order."""

from __future__ import annotations

from hypothesis import given, strategies as st

from core.pop.timer_wheel import TimerWheel


def take_due(wheel, now_ms):
    due = []
    while (run := wheel.take_first(now_ms)) is not None:
        due.append(run)
    return due


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9), st.integers(0, 9)), max_size=20), st.integers(0, 50))
def test_what_is_due_comes_earliest_first_and_the_rest_stays(runs, now_ms):
    wheel = TimerWheel()
    for run in runs:
        wheel.add(*run)
    assert wheel.next_deadline_ms() == min((deadline for deadline, _, _ in runs), default=None)
    assert take_due(wheel, now_ms) == sorted(run for run in runs if run[0] <= now_ms)
    assert len(wheel) == sum(run[0] > now_ms for run in runs)
    assert take_due(wheel, now_ms) == []


def test_deadline_is_due_at_its_moment_and_not_before():
    wheel = TimerWheel()
    wheel.add(100, 1, 3)
    assert take_due(wheel, 99) == []
    assert take_due(wheel, 100) == [(100, 1, 3)]
    assert wheel.next_deadline_ms() is None


def test_replacing_forgets_what_was_there():
    wheel = TimerWheel()
    wheel.add(1, 0, 1)
    wheel.replace([(9, 5, 6), (3, 4, 5)])
    assert take_due(wheel, 100) == [(3, 4, 5), (9, 5, 6)]
