from __future__ import annotations

from array import array
from itertools import accumulate

from hypothesis import given, settings, strategies as st

from core.properties import decode_properties
from spark_analytics.property_scan import count_items, find_properties, gather

NAMES = [b"LMQ_CLIENT", b"A", b"LMQ_CLIENTS"]
JOINED = b"".join(NAMES)
NAME_ENDS = array("i", accumulate(len(name) for name in NAMES))


def longs(values):
    return array("i", values)


def find(records):
    buf = b"".join(records)
    ends, at = [], 0
    for record in records:
        at += len(record)
        ends.append(at)
    starts = [end - len(record) for end, record in zip(ends, records, strict=True)]
    count = len(records)
    value_starts, value_ends = longs([9] * 3 * count), longs([9] * 3 * count)
    find_properties(buf, longs(starts), longs(ends), count, JOINED, NAME_ENDS, value_starts, value_ends)
    return [
        {
            name: buf[value_starts[k * count + i] : value_ends[k * count + i]]
            for k, name in enumerate(NAMES)
            if value_ends[k * count + i]
        }
        for i in range(count)
    ]


def test_values_are_found_record_by_record():
    assert find([b"A\x01x\x02LMQ_CLIENT\x01dev\x02", b"", b"B\x01y\x02A\x01\x02"]) == [
        {b"A": b"x", b"LMQ_CLIENT": b"dev"},
        {},
        {b"A": b""},
    ]


def test_a_name_must_be_equal_and_not_only_begin_alike():
    assert find([b"LMQ_CLIEN\x01x\x02LMQ_CLIENTS\x01y\x02XLMQ_CLIENT\x01z\x02"]) == [{b"LMQ_CLIENTS": b"y"}]


def test_a_record_does_not_run_into_the_next():
    assert find([b"LMQ_CLI", b"ENT\x01x\x02", b"A\x01open", b"A\x01x\x02"]) == [{}, {}, {b"A": b"open"}, {b"A": b"x"}]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from([*NAMES, b"\x01", b"\x02", b"v", b"A\x01"]), max_size=9).map(b"".join), min_size=1
    )
)
def test_any_bytes_are_read_as_the_plain_decoder_reads_them(records):
    expected = [
        {name: value for name, value in decode_properties(record).items() if name in NAMES} for record in records
    ]
    assert find(records) == expected


def test_items_between_commas_are_counted():
    buf = b"a,b,c,,"
    into = longs([7, 7, 7, 7])
    count_items(buf, longs([0, 0, 3, 5]), longs([5, 0, 3, 7]), 4, into)
    assert list(into) == [3, 0, 0, 3]


def test_ranges_are_gathered_end_to_end():
    offsets = longs([0] * 4)
    data = gather(b"0123456789", longs([8, 0, 2]), longs([10, 0, 5]), 3, offsets)
    assert (bytes(data), list(offsets)) == (b"89234", [0, 2, 2, 5])


def test_nothing_is_gathered_from_nothing():
    offsets = longs([5])
    assert (bytes(gather(b"", longs([]), longs([]), 0, offsets)), list(offsets)) == (b"", [0])
