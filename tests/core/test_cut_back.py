"""Offsets of groups are cut back to the end of the log; pop queues are in tests/fault/test_power_cut_amqp.py."""

from __future__ import annotations

import pytest

from tests.support.broker import make_batch, make_broker
from tests.support.store import NOW_MS, open_store

OTHER = b"%LMQ%other"


@pytest.mark.parametrize(("key", "committed", "expected"), [(b"%LMQ%q", 5, 2), (b"%LMQ%q", 1, 1), (OTHER, 3, 0)])
def test_group_that_committed_more_than_the_log_has_goes_on_at_its_end(store, tmp_path, key, committed, expected):
    broker, _ = make_broker(store)
    broker.bind_filter(b"t", b"%LMQ%q", hides_dollar=True)
    broker.publish_batch(make_batch(broker, b"t", b"1", b"2"), NOW_MS)
    broker.consumer_offsets.commit(b"g", key, committed)
    store.close()
    again = open_store(tmp_path)
    broker, _ = make_broker(again)
    assert broker.consumer_offsets.get(b"g", key) == expected
    again.close()
