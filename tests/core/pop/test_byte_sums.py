from __future__ import annotations

from core.pop.byte_sums import MARK_MESSAGES, ByteSums


def test_the_sum_at_or_behind_each_offset_is_found():
    sums = ByteSums(5)
    sums.add(10, 100, floor=0)
    sums.add(20, 300, floor=0)
    assert [sums.after(offset) for offset in (0, 5, 6, 10, 11, 20, 21)] == [
        (5, 0), (5, 0), (10, 100), (10, 100), (20, 300), (20, 300), None
    ]  # fmt: skip
    assert sums.last == (20, 300)


def test_what_nobody_needs_is_forgotten_and_the_rest_outlives_a_row():
    sums = ByteSums(0)
    sums.add(10, 100, floor=0)
    sums.add(20, 300, floor=12)
    again = ByteSums.load(sums.dump())
    assert again.after(0) == again.after(10) == (10, 100)
    assert again.last == (20, 300)


def test_a_mark_is_due_some_thousand_messages_after_the_last():
    sums = ByteSums(7)
    assert not sums.is_due(6 + MARK_MESSAGES)
    assert sums.is_due(7 + MARK_MESSAGES)


def test_all_but_one_mark_can_be_dropped():
    sums = ByteSums(0)
    sums.add(10, 100, floor=0)
    sums.reset(15, 200)
    assert sums.after(3) == sums.last == (15, 200)
