from __future__ import annotations

from core.store.reader import SegmentInfo
from spark_analytics.partitions import LogRange, plan_ranges

SEGMENTS = [
    SegmentInfo(0, 128, 100, 10, 19),
    SegmentInfo(128, 128, 228, 20, 29),
    SegmentInfo(256, 128, 300, 30, 39),
    SegmentInfo(384, 128, 384, -1, 39),
]


def bases(starting_ms=None, ending_ms=None):
    return [part.base for part in plan_ranges(SEGMENTS, starting_ms, ending_ms)]


def test_each_segment_that_holds_something_is_one_range():
    assert plan_ranges(SEGMENTS, None, None) == [
        LogRange(0, 0, 100),
        LogRange(128, 128, 228),
        LogRange(256, 256, 300),
    ]


def test_segments_outside_the_store_times_are_left_out():
    assert bases(starting_ms=20) == [128, 256]
    assert bases(starting_ms=19) == [0, 128, 256]
    assert bases(ending_ms=30) == [0, 128]
    assert bases(ending_ms=31) == [0, 128, 256]
    assert bases(25, 26) == [128]
