from __future__ import annotations

import pytest

from core.lmq.lifetimes import KEPT, Lifetimes
from core.message import FLAG_EXPIRES, FLAG_MARK, StoredBatch
from core.properties import TTL_MS, encode_properties


def batch_of(*times):
    """Return messages stored at 0 that say these times to live, None for none."""
    batch = StoredBatch(8)
    buf = b""
    for i, ttl_ms in enumerate(times):
        said = b"" if ttl_ms is None else encode_properties([(TTL_MS, b"%d" % ttl_ms)])
        batch.properties_start[i], batch.properties_end[i] = len(buf), len(buf) + len(said)
        batch.flag[i] = FLAG_MARK | (0 if ttl_ms is None else FLAG_EXPIRES)
        batch.store_ms[i] = 0
        batch.queue_offset[i] = 10 + i
        buf += said
    batch.buf = memoryview(buf)
    batch.count = len(times)
    return batch


@pytest.mark.parametrize(
    ("limit_ms", "expired"), [(None, [10]), (-1, [10]), (50, [10, 11, 12]), (60, [10]), (0, [10, 11, 12]), (KEPT, [])]
)
def test_shorter_of_both_times_holds_and_a_stream_keeps_all(limit_ms, expired):
    lifetimes = Lifetimes()
    if limit_ms is not None:
        lifetimes.put(b"q", limit_ms)
    batch = batch_of(50, 51, None)
    assert lifetimes.take_expired(batch, b"q", 50) == expired
    assert [batch.queue_offset[i] for i in range(batch.count)] == [
        offset for offset in (10, 11, 12) if offset not in expired
    ]


@pytest.mark.parametrize("forget", [lambda one: one.drop(b"q"), lambda one: one.put(b"q", -1)])
def test_time_of_a_queue_is_forgotten(forget):
    lifetimes = Lifetimes()
    lifetimes.put(b"q", 5)
    forget(lifetimes)
    forget(lifetimes)
    assert lifetimes.take_expired(batch_of(None), b"q", 50) == []
