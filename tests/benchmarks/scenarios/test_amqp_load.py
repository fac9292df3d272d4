from __future__ import annotations

from hypothesis import given, strategies as st

from tests.benchmarks.scenarios.amqp_load import Confirms


@given(st.lists(st.tuples(st.integers(1, 30), st.booleans())))
def test_each_publish_counts_once_however_its_confirms_overlap(taken):
    confirms, confirmed = Confirms(), set()
    for tag, is_multiple in taken:
        confirms.take(tag, is_multiple=is_multiple)
        confirmed.update(range(1, tag + 1) if is_multiple else [tag])
        assert confirms.count == len(confirmed)


def test_confirms_in_order_leave_nothing_to_remember():
    confirms = Confirms()
    for tag in (2, 1, 3, 5, 4):
        confirms.take(tag, is_multiple=False)
    assert (confirms.count, confirms.beyond) == (5, set())
