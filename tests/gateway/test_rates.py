"""So much a second."""

from __future__ import annotations

from hypothesis import given, strategies as st

from gateway.rates import Rate


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
