"""So much a second."""

from __future__ import annotations

from hypothesis import given, strategies as st

from gateway.rates import Rate, Recent


def test_as_much_at_once_as_in_a_second_and_then_in_turn():
    rate = Rate(10, 1_000)
    assert rate.left(1_000) == 10
    rate.take(10)
    assert (rate.left(1_000), rate.wait_ms()) == (0, 101)
    assert (rate.left(1_101), rate.wait_ms()) == (1, 0)
    assert rate.left(60_000) == 10


def test_what_was_taken_ahead_is_waited_for():
    rate = Rate(100, 0)
    rate.take(350)
    assert (rate.left(0), rate.wait_ms()) == (-250, 2_511)
    assert rate.left(2_511) == 1


@given(st.integers(1, 1_000), st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 200)), max_size=50))
def test_never_more_than_its_rate_and_one_second(per_s, steps):
    rate = Rate(per_s, 0)
    now_ms = taken = 0
    for passed_ms, wanted in steps:
        now_ms += passed_ms
        some = min(wanted, max(rate.left(now_ms), 0))
        rate.take(some)
        taken += some
        assert taken <= per_s + per_s * now_ms / 1_000


def test_a_name_that_comes_again_finds_what_it_left_unless_its_limits_changed_or_many_came_since():
    recent = Recent(2)
    first = recent.find("ann", 5, object)
    recent.find("bob", 5, object)
    assert recent.find("ann", 5, object) is first
    recent.find("eve", 5, object)  # bob goes
    assert recent.find("ann", 5, object) is first
    assert recent.find("ann", 6, object) is not first
    other = recent.find("eve", 5, object)
    recent.find("bob", 5, object)
    recent.find("kim", 5, object)
    assert recent.find("eve", 5, object) is not other
