from __future__ import annotations

import pytest

from core.message import StoredBatch
from core.store.gap import make_blank, make_gaps
from core.store.log_scan import LogScan
from core.store.record_walk import fill_range, find_sets, find_way_on
from tests.support.records import encode_record
from tests.support.store import make_record

BASE = 1 << 30


def segment_of(*pieces):
    """Return a segment of records, by their properties, and of gaps, by their sizes; and where each starts."""
    segment = bytearray()
    starts = []
    for piece in pieces:
        starts.append(len(segment))
        if isinstance(piece, int):
            gap = bytearray(piece)
            for position, data in make_gaps(BASE, len(segment), len(segment) + piece, 7, b""):
                gap[position - starts[-1] : position - starts[-1] + len(data)] = data
            segment += gap
        else:
            segment += encode_record(make_record(physical_offset=BASE + len(segment), properties=piece), with_crc=True)
    starts.append(len(segment))
    segment += make_blank(len(segment), len(segment) + 50)[1] + bytes(42)
    return segment, starts


@pytest.mark.parametrize("is_whole", [True, False])
def test_reader_that_was_where_a_gap_is_now_goes_on_after_it(is_whole):
    segment, (_, start, end, blank) = segment_of(b"", 5_000, b"")
    if not is_whole:
        segment[end - 10 : end] = bytes(10)  # it is just being written
    into = StoredBatch(4)
    for at in (start, start + 1_000, end - 1):
        scan = LogScan()
        assert find_way_on(segment, BASE, at) == end
        scan.fill(into, memoryview(segment), BASE, BASE + at, BASE + len(segment))
        assert list(into.record_start[: into.count]) == [end]
        assert scan.damaged == []
    assert find_way_on(segment, BASE, blank + 20) == len(segment)
    assert find_way_on(segment, BASE, 1) == -1


def test_sets_that_records_name_are_found_up_to_what_is_no_record():
    name = b"LMQ_SET\x01%d\x02"
    segment, starts = segment_of(name % 7, name % 7, b"", 500, name % 9, name % 7, b"LMQ_SET\x01x\x02", b"")
    scratch = StoredBatch(1)
    found = []
    assert find_sets(scratch, segment, BASE, 0, starts[8], found) == starts[8]
    assert found == [7, 9, 7]
    found.clear()
    assert find_sets(scratch, segment[: starts[5] - 1], BASE, 0, starts[8], found) == starts[4]
    segment[starts[1] + 95] ^= 1
    assert find_sets(scratch, segment, BASE, 0, starts[8], found) == starts[1]


def test_range_fill_passes_over_dispatch_sets_and_stops_at_damage():
    segment = bytearray()
    starts = []
    for topic, properties in [
        (b"T", b""),
        (b"LMQ_DISPATCH_SET", b""),
        (b"LMQ_DISPATCH_SET", b"UNIQ_KEY\x01k\x02"),  # a message, whatever client gave it that topic
        (b"T", b"LMQ_TOPIC\x01LMQ_DISPATCH_SET\x02"),
        (b"T", b""),
    ]:
        starts.append(len(segment))
        segment += encode_record(
            make_record(topic=topic, properties=properties, physical_offset=len(segment)), with_crc=True
        )
    into = StoredBatch(8)
    assert fill_range(into, segment, 0, 0, len(segment), len(segment)) == len(segment)
    assert list(into.record_start[: into.count]) == [starts[0], *starts[2:]]
    into.clear()
    segment[starts[2] + 50] ^= 1
    assert fill_range(into, segment, 0, 0, len(segment), len(segment)) == starts[2]
    assert into.count == 1
    into.clear()
    assert fill_range(into, segment, 0, 0, starts[1] + 1, len(segment)) == starts[2]
