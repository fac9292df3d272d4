from __future__ import annotations

import pytest

from core.store.record_codec import encode_record
from core.store.retention import count_retired
from core.store.segments import Segments
from tests.support.store import make_record

SIZE = 64 * 1024
FOREVER = 1 << 60


@pytest.fixture
def segments(tmp_path):
    """Five segments, whose first records were stored at 0, 100, 200, 300 and 400 ms."""
    segments = Segments(tmp_path, tmp_path, SIZE, 8)
    for k in range(5):
        segments.roll(SIZE)
        raw = encode_record(make_record(physical_offset=k * SIZE, store_ms=100 * k), with_crc=True)
        segments.newest.view[: len(raw)] = raw
    yield segments
    segments.close()


def count(segments, now_ms, age_ms=50, bytes_max=None, needed_from=FOREVER):
    return count_retired(segments, now_ms=now_ms, age_ms=age_ms, bytes_max=bytes_max, needed_from=needed_from)


def test_segment_goes_when_its_last_record_is_too_old(segments):
    assert count(segments, 150) == 0
    assert count(segments, 151) == 1
    assert count(segments, 400) == 3


def test_newest_stays_however_old(segments):
    assert count(segments, FOREVER) == 4


def test_what_somebody_needs_stays_with_all_after_it(segments):
    assert count(segments, FOREVER, needed_from=2 * SIZE) == 2
    assert count(segments, FOREVER, needed_from=2 * SIZE - 1) == 1
    assert count(segments, FOREVER, needed_from=0) == 0


def test_segments_over_the_size_go_before_their_time(segments):
    assert count(segments, 0, bytes_max=3 * SIZE) == 2
    assert count(segments, 0, bytes_max=5 * SIZE) == 0
    assert count(segments, 0, bytes_max=1, needed_from=SIZE) == 1
