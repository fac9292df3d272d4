from __future__ import annotations

import pytest

from core.store.log_survey import Stretch
from core.store.reader import SegmentInfo
from spark_analytics.options import ReadOptions
from spark_analytics.partitions import LogRange, find_missing, plan_ranges

SEGMENTS = [
    SegmentInfo(0, 128, 100, 10, 19),
    SegmentInfo(128, 128, 228, 20, 29),
    SegmentInfo(256, 128, 300, 30, 39),
    SegmentInfo(384, 128, 384, -1, 39),
]


def bases(**options):
    return [part.base for part in plan_ranges(SEGMENTS, ReadOptions("d", **options))]


def test_each_segment_that_holds_something_is_one_range():
    assert plan_ranges(SEGMENTS, ReadOptions("d")) == [
        LogRange(0, 0, 100),
        LogRange(128, 128, 228),
        LogRange(256, 256, 300),
    ]


def test_segments_outside_the_store_times_are_left_out():
    assert bases(starting_ms=20) == [128, 256]
    assert bases(starting_ms=19) == [0, 128, 256]
    assert bases(ending_ms=30) == [0, 128]
    assert bases(ending_ms=31) == [0, 128, 256]
    assert bases(starting_ms=25, ending_ms=26) == [128]


def test_positions_outside_the_offsets_are_left_out():
    options = ReadOptions("d", starting_offset=50, ending_offset=260)
    assert plan_ranges(SEGMENTS, options) == [LogRange(0, 50, 100), LogRange(128, 128, 228), LogRange(256, 256, 260)]
    assert bases(starting_offset=300) == []
    assert bases(ending_offset=0) == []


@pytest.mark.parametrize(
    ("start", "end", "count"), [(None, None, 1), (0, 100, 0), (0, 101, 1), (120, 130, 1), (128, None, 0)]
)
def test_what_is_missing_matters_where_it_is_read(start, end, count):
    missing = [Stretch(100, 128, "a segment is missing")]
    options = ReadOptions("d", starting_offset=start, ending_offset=end)
    assert len(list(find_missing(SEGMENTS, missing, options))) == count
