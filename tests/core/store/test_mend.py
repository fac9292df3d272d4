"""A log with stretches missing: what is put in their place."""

from __future__ import annotations

import os

import pytest

from core.message import StoredBatch
from core.store.log_check import find_log_end
from core.store.mend import fill_holes, next_base
from core.store.record import BLANK, fill_columns, is_gap, is_intact, record_size
from core.store.segments import Segments
from tests.support.store import light, open_store, publish

SEGMENT = 64 * 1024
NAME = "{:020d}".format


@pytest.fixture
def data_dir(tmp_path):
    store = open_store(tmp_path / "data")
    publish(store, store.make_route(b"T", 0, b"", light("a")), *(b"x" * 5_000,) * 60)
    store.close()
    return tmp_path / "data"


def load(data_dir):
    return Segments(data_dir / "commitlog", data_dir, SEGMENT, 2)


def check_walk(segments):
    """Walk over every segment but the newest as the official broker does: from record to record, to the blank."""
    batch = StoredBatch(1)
    for segment, after in zip(segments.segments, segments.segments[1:], strict=False):
        assert segment.end == after.base
        view = segments.view(segment.base)
        pos = 0
        while fill_columns(batch, 0, view, pos, segment.base):
            assert is_intact(batch, 0, view)
            pos = batch.record_end[0]
        assert record_size(view, pos) == BLANK


def test_a_segment_with_a_gap_stands_in_place_of_each_that_is_missing(data_dir):
    for number in (1, 2):
        (data_dir / "commitlog" / NAME(number * SEGMENT)).unlink()
    segments = load(data_dir)
    fill_holes(segments, data_dir)
    assert [segment.base for segment in segments.segments] == [number * SEGMENT for number in range(5)]
    check_walk(segments)
    batch = StoredBatch(1)
    view = segments.view(SEGMENT)
    assert fill_columns(batch, 0, view, 0, SEGMENT)
    assert is_gap(batch, 0, view)
    assert batch.store_ms[0] == find_log_end(segments.view(0), 0, SEGMENT).store_ms
    assert segments.segments[1].disk_bytes <= 2 * 4096
    before = {path: path.read_bytes() for path in (data_dir / "commitlog").iterdir()}
    fill_holes(segments, data_dir)
    assert {path: path.read_bytes() for path in (data_dir / "commitlog").iterdir()} == before


@pytest.mark.parametrize("size", [1, 90, 5_000, 12_345, SEGMENT - 5])
def test_a_short_segment_is_closed_after_its_last_record_and_has_its_size_again(data_dir, size):
    path = data_dir / "commitlog" / NAME(SEGMENT)
    os.truncate(path, size)
    segments = load(data_dir)
    fill_holes(segments, data_dir)
    assert path.stat().st_size == SEGMENT
    check_walk(segments)


@pytest.mark.parametrize("known_end", [4 * SEGMENT + 9_000, 5 * SEGMENT, 6 * SEGMENT + 1])
def test_the_log_is_closed_and_filled_up_to_where_the_next_segment_starts(data_dir, known_end):
    segments = load(data_dir)
    base = next_base(segments, known_end)
    assert base == (7 if known_end > 6 * SEGMENT else 5) * SEGMENT
    fill_holes(segments, data_dir, base)
    assert segments.segments[-1].end == base
    segments.roll(0)
    check_walk(segments)


def test_an_empty_log_goes_on_at_the_next_whole_segment(tmp_path):
    (tmp_path / "commitlog").mkdir()
    segments = load(tmp_path)
    assert next_base(segments, 3 * SEGMENT + 1) == 4 * SEGMENT
    fill_holes(segments, tmp_path, 4 * SEGMENT)
    assert segments.segments == []
