from __future__ import annotations

import pytest

from core.message import StoredBatch
from core.store.log_scan import LogScan
from tests.support.records import encode_record
from tests.support.store import make_record

BASE = 1 << 20


@pytest.fixture
def segment():
    """A segment of 4 KiB with ten messages, of which the fourth was flipped, and where each record starts."""
    data = bytearray(4096)
    starts = []
    at = 0
    for k in range(10):
        record = encode_record(make_record(physical_offset=BASE + at, body=b"%d" % k * 20), with_crc=True)
        data[at : at + len(record)] = record
        starts.append(at)
        at += len(record)
    data[starts[3] + 90] ^= 1
    return memoryview(data), starts, at


def scan(view, start, end, capacity=4):
    """Return the first byte of each body in [start, end), and what was damaged."""
    one = LogScan()
    into = StoredBatch(capacity)
    found = []
    while start < end:
        start = one.fill(into, view, BASE, start, end)
        found += [into.buf[into.body_start[i]] - 48 for i in range(into.count)]
    return found, one.damaged


def test_messages_come_in_their_order_past_damage(segment):
    view, starts, end = segment
    assert scan(view, BASE, BASE + end) == ([0, 1, 2, 4, 5, 6, 7, 8, 9], [(BASE + starts[3], BASE + starts[4])])
    assert scan(view, BASE + starts[6], BASE + end) == ([6, 7, 8, 9], [])


def test_nothing_where_something_was_written_is_damage(segment):
    view, starts, end = segment
    assert scan(view, BASE + starts[8], BASE + end, capacity=100) == ([8, 9], [])
    assert scan(view, BASE + starts[8], BASE + len(view), capacity=100) == ([8, 9], [(BASE + end, BASE + len(view))])
