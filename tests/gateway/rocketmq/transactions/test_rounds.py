from __future__ import annotations

from hypothesis import given, strategies as st

from gateway.rocketmq.transactions.rounds import STRETCHES_MAX, Rounds, Stretch


def test_a_stretch_is_due_again_after_the_interval_the_one_that_waits_longest_first():
    rounds = Rounds()
    rounds.note_first(10, 1_000)
    rounds.note_first(20, 2_000)
    assert rounds.find_due(30_999, 30_000) is None
    first, second = rounds.stretches
    assert rounds.find_due(40_000, 30_000) is first
    rounds.note_again(first, 40_000)
    assert rounds.find_due(40_000, 30_000) is second
    assert (first.first, first.end, first.count, second.first, second.end, second.count) == (0, 10, 2, 10, 20, 1)


def test_a_clock_that_was_set_back_does_not_put_a_stretch_off():
    rounds = Rounds()
    rounds.note_first(10, 9_000_000)
    assert rounds.find_due(1_000, 30_000) is None
    assert rounds.find_due(31_000, 30_000) is rounds.stretches[0]


def test_how_often_it_was_asked_about_what_was_to_be_left_alone_first():
    stretch = Stretch(0, 1, 4, first_at_ms=6_000, last_at_ms=96_000)
    counts = {0: 4, 6_000: 4, 6_001: 3, 36_000: 3, 36_001: 2, 96_000: 1, 96_001: 0}
    assert {at_ms: stretch.count_since(at_ms, 30_000) for at_ms in counts} == counts


def test_what_is_done_with_is_forgotten():
    rounds = Rounds()
    rounds.note_first(10, 1)
    rounds.note_first(20, 2)
    rounds.advance(10)
    assert [stretch.first for stretch in rounds.stretches] == [10]
    rounds.advance(25)
    assert (rounds.stretches, rounds.fresh_from) == ([], 25)


def test_it_is_written_down_and_read_again_as_far_as_the_queue_is_there():
    rounds = Rounds()
    for end in (10, 20, 30):
        rounds.note_first(end, end)
    rounds.note_again(rounds.stretches[1], 99)
    again = Rounds()
    again.load(rounds.encode(), 12, 25)
    assert [(one.first, one.end, one.count, one.first_at_ms, one.last_at_ms) for one in again.stretches] == [
        (10, 20, 2, 20, 99)
    ]
    assert again.fresh_from == 20


def test_there_are_never_more_than_so_many_and_they_cover_what_they_did():
    rounds = Rounds()
    for end in range(1, 5 * STRETCHES_MAX):
        rounds.note_first(end, end)
        assert len(rounds.stretches) <= STRETCHES_MAX
    ends = [0, *(stretch.end for stretch in rounds.stretches)]
    assert [stretch.first for stretch in rounds.stretches] == ends[:-1]
    assert ends[-1] == rounds.fresh_from == 5 * STRETCHES_MAX - 1


@given(st.binary(max_size=200), st.integers(0, 100), st.integers(0, 100))
def test_any_row_is_read(row, start, end):
    rounds = Rounds()
    rounds.load(row, start, max(start, end))
    assert rounds.fresh_from >= start
