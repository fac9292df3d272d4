from __future__ import annotations

import pytest

from core.metrics import PopCounts, SyncMetrics
from gateway.admin.work_metrics import duration_family, pop_families


def test_sync_histogram_is_cumulative_and_in_seconds():
    sync = SyncMetrics()
    for took_ms in (0.1, 0.3, 3.0, 5_000.0):
        sync.add(took_ms)
    samples = {
        (sample.name, sample.labels.get("le")): sample.value
        for sample in duration_family("lmq_sync_seconds", "", sync).samples
    }
    assert samples["lmq_sync_seconds_bucket", "0.00025"] == 1
    assert samples["lmq_sync_seconds_bucket", "0.0005"] == 2
    assert samples["lmq_sync_seconds_bucket", "0.004"] == 3
    assert samples["lmq_sync_seconds_bucket", "1.024"] == 3
    assert samples["lmq_sync_seconds_bucket", "+Inf"] == 4
    assert samples["lmq_sync_seconds_sum", None] == pytest.approx(5.0034)


def test_shared_consumption_is_told_by_what_happened():
    families = list(pop_families(PopCounts(taken=5, taken_again=4, done=3, given_back=2, timed_out=1)))
    assert {family.name: family.samples[0].value for family in families} == {
        "lmq_shared_taken": 5,
        "lmq_shared_redelivered": 4,
        "lmq_shared_acknowledged": 3,
        "lmq_shared_returned": 2,
        "lmq_shared_timed_out": 1,
    }
