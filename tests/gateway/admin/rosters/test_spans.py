from __future__ import annotations

from gateway.admin.rosters.spans import walk_spans


def test_spans_follow_each_other_from_either_end():
    assert list(walk_spans(7, 3, reverse=False)) == [(0, 3), (3, 6), (6, 7)]
    assert list(walk_spans(7, 3, reverse=True)) == [(6, 7), (3, 6), (0, 3)]
    assert list(walk_spans(0, 3, reverse=False)) == []
