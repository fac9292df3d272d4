from __future__ import annotations

from array import array

import pytest

from core.errors import CorruptRecordError
from core.message import StoredBatch
from core.store.gap import (
    GAP_BYTES_MAX,
    GAP_BYTES_MIN,
    NEVER,
    encode_uses,
    group_queues,
    make_blank,
    make_gaps,
    read_uses,
)
from core.store.log_scan import LogScan
from core.store.record import BLANK, fill_columns, find_gap_end, is_intact, record_size
from core.store.record_codec import decode_record
from core.store.segments import first_store_ms
from tests.support.records import encode_record
from tests.support.store import make_record

BASE = 1 << 30


def write(segment, writes):
    for position, data in writes:
        segment[position : position + len(data)] = data


def segment_with_gap(size, data=b""):
    """Return a segment of a record, a gap of `size` bytes and another record; and where the gap starts and ends."""
    first = encode_record(make_record(physical_offset=BASE, body=b"one", store_ms=5), with_crc=True)
    start, end = len(first), len(first) + size
    second = encode_record(make_record(physical_offset=BASE + end, body=b"two"), with_crc=True)
    segment = bytearray(end + len(second) + 8)
    write(
        segment,
        [(0, first), *make_gaps(BASE, start, end, 7, data), (end, second), make_blank(end + len(second), len(segment))],
    )
    return segment, start, end


@pytest.mark.parametrize("size", [GAP_BYTES_MIN, 5_000, GAP_BYTES_MAX, 2 * GAP_BYTES_MAX + 1])
def test_gap_is_a_record_of_the_format_and_leads_to_what_follows(size):
    segment, start, end = segment_with_gap(size)
    at = start
    while at < end:
        record = decode_record(segment, at, BASE)
        assert (record.topic, record.sys_flag, record.store_ms) == (b"LMQ_GAP", 4, 7)
        assert len(record.body) < GAP_BYTES_MAX
        assert find_gap_end(segment, BASE, at) == at + record_size(segment, at)
        at += record_size(segment, at)
    assert at == end
    assert first_store_ms(memoryview(segment)) == 5


def test_gap_is_not_read_as_a_message():
    segment, _, _ = segment_with_gap(5_000)
    into = StoredBatch(4)
    scan = LogScan()
    scan.fill(into, memoryview(segment), BASE, BASE, BASE + len(segment))
    assert [bytes(segment[into.body_start[i] : into.body_end[i]]) for i in range(into.count)] == [b"one", b"two"]
    assert scan.damaged == []


@pytest.mark.parametrize("at", [2, 30, 60, 78, 87, 91, 93, 97])
def test_damaged_head_of_a_gap_is_none(at):
    segment, start, _ = segment_with_gap(5_000, b"data")
    into = StoredBatch(1)
    assert fill_columns(into, 0, segment, start, BASE)
    assert is_intact(into, 0, segment)
    segment[start + at] ^= 1
    assert find_gap_end(segment, BASE, start) < 0
    assert not (fill_columns(into, 0, segment, start, BASE) and is_intact(into, 0, segment))


def test_record_with_any_fields_that_a_producer_chooses_is_no_gap():
    raw = encode_record(make_record(topic=b"LMQ_GAP", sys_flag=4, body=bytes(200), physical_offset=0), with_crc=False)
    assert find_gap_end(raw, 0, 0) == -1


def test_queues_of_a_set_go_on_where_the_gap_says():
    starts = [500, 500, 500, NEVER, 900, 900]
    offsets = [10, 11, 12, 0, 3, 5]
    set_offsets = [1, 2, 3, 7, 5, 5]
    groups = group_queues(starts, offsets, set_offsets)
    assert groups == [(3, 500, 9), (1, NEVER, 0), (1, 900, -2), (1, 900, 0)]
    data = encode_uses({BASE + 70: groups, BASE + 4: []}, BASE, 400)
    found = read_uses(data, BASE, 400)
    assert set(found) == {BASE + 70, BASE + 4}
    use = found[BASE + 70]
    use.bind(array("q", set_offsets))
    assert list(use.starts) == starts
    assert [offset for start, offset in zip(use.starts, use.offsets, strict=True) if start != NEVER] == [
        10,
        11,
        12,
        3,
        5,
    ]
    found[BASE + 4].bind(array("q", [1, 2]))
    assert list(found[BASE + 4].starts) == [NEVER, NEVER]


def test_sets_that_end_too_early_are_refused():
    data = encode_uses({BASE: [(3, 500, 9)]}, BASE, 400)
    for size in range(1, len(data)):
        with pytest.raises(CorruptRecordError):
            read_uses(data[:size], BASE, 400)
    assert read_uses(b"", BASE, 400) == {}


def test_blank_ends_a_segment():
    segment = bytearray(b"\xff" * 100)
    write(segment, [make_blank(40, 100)])
    assert record_size(segment, 40) == BLANK
    assert int.from_bytes(segment[40:44], "big") == 60
