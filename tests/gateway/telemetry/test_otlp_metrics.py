from __future__ import annotations

from opentelemetry.sdk.resources import Resource
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from core.metrics import Durations
from gateway.admin.work_metrics import duration_family
from gateway.telemetry.otlp_metrics import to_metrics_data


def convert(*families):
    data = to_metrics_data(families, Resource.create({"service.name": "t"}), 1_000, 2_000)
    return {one.name: one for one in data.resource_metrics[0].scope_metrics[0].metrics}


def test_kinds_and_units_are_kept():
    counter = CounterMetricFamily("lmq_in", "In.", labels=["door"])
    counter.add_metric(["mqtt"], 3)
    found = convert(
        counter, GaugeMetricFamily("lmq_log_bytes", "Log.", 7), CounterMetricFamily("lmq_none", "N.", labels=["a"])
    )
    assert set(found) == {"lmq_in", "lmq_log_bytes"}
    (point,) = found["lmq_in"].data.data_points
    assert (point.attributes, point.value, point.start_time_unix_nano, point.time_unix_nano) == (
        {"door": "mqtt"},
        3,
        1_000,
        2_000,
    )
    assert found["lmq_in"].data.is_monotonic
    assert found["lmq_log_bytes"].unit == "By"


def test_buckets_are_counted_apart():
    durations = Durations((1.0, 10.0))
    for took_ms in (0.5, 5.0, 6.0, 50.0):
        durations.add(took_ms)
    (point,) = convert(duration_family("lmq_sync_seconds", "", durations))["lmq_sync_seconds"].data.data_points
    assert (list(point.bucket_counts), list(point.explicit_bounds)) == ([1, 2, 1], [0.001, 0.01])
    assert (point.count, round(point.sum, 6)) == (4, 0.0615)
