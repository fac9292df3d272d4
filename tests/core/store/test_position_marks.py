from __future__ import annotations

from core.store.position_marks import PositionMarks


def runs_of(positions, far=100, size=10_000, cells_max=7):
    marks = PositionMarks(size)
    for position in positions:
        marks.mark(position)
    found = []
    while marks.find_runs(far, cells_max, found):
        pass
    return found


def test_marks_come_in_order_and_split_where_they_are_far_apart():
    assert runs_of([499, 0, 99, 198, 298, 9_999, 499, 400]) == [(0, 198), (298, 298), (400, 499), (9_999, 9_999)]


def test_lost_records_are_not_marked():
    assert runs_of([-1, -2]) == []
    assert runs_of([]) == []


def test_neighbours_are_told_apart():
    assert runs_of([0, 91, 182, 273], far=91) == [(0, 0), (91, 91), (182, 182), (273, 273)]
    assert runs_of([0, 91, 182, 273], far=92) == [(0, 273)]
