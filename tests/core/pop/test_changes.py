"""Changes become few records."""

from __future__ import annotations

import struct

from hypothesis import given, strategies as st

from core.pop.changes import ACK, CHANGE_BYTES, TAKE, ChangeLog

one = st.tuples(st.integers(0, 2), st.sampled_from([TAKE, ACK]), st.integers(0, 6), st.sampled_from([0, 2**40]))


def records_of(log):
    size = log.used
    assert size % CHANGE_BYTES == 0
    rows = [struct.unpack_from(">IIqq", log.buf, pos) for pos in range(0, size, CHANGE_BYTES)]
    return [(number, word >> 24, first, word & 0xFFFFFF, value) for number, word, first, value in rows]


def test_what_follows_one_another_is_one_record():
    log = ChangeLog()
    for offset in (5, 6, 7):
        log.add(1, TAKE, offset, 9)
    log.add(1, ACK, 8, 0)
    log.add(1, ACK, 10, 0)
    log.close_run()
    log.close_run()
    assert records_of(log) == [(1, TAKE, 5, 3, 9), (1, ACK, 8, 1, 0), (1, ACK, 10, 1, 0)]
    log.clear()
    assert records_of(log) == []


@given(st.lists(one, max_size=300))
def test_records_say_what_was_added_in_its_order(added):
    log = ChangeLog()
    for number, kind, offset, value in added:
        log.add(number, kind, offset, value)
    log.close_run()
    unrolled = [
        (number, kind, first + i, value) for number, kind, first, count, value in records_of(log) for i in range(count)
    ]
    assert unrolled == added
