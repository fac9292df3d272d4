"""The numbers of /metrics as OpenTelemetry has them, for an exporter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client.metrics_core import Metric as Family

SCOPE = "lmq"
_TOTAL = AggregationTemporality.CUMULATIVE


def to_metrics_data(families: Iterable[Family], resource: Resource, started_ns: int, now_ns: int) -> MetricsData:
    """Return the samples of `families`, all counted since `started_ns`."""
    metrics = [_convert(family, started_ns, now_ns) for family in families if family.samples]
    scope = ScopeMetrics(scope=InstrumentationScope(SCOPE), metrics=metrics, schema_url="")
    return MetricsData(
        resource_metrics=[ResourceMetrics(resource=resource, scope_metrics=[scope], schema_url=resource.schema_url)]
    )


def _convert(family: Family, started_ns: int, now_ns: int) -> Metric:
    unit = "s" if family.name.endswith("_seconds") else "By" if family.name.endswith("_bytes") else "1"
    if family.type == "histogram":
        points = list(_histogram_points(family, started_ns, now_ns))
        return Metric(family.name, family.documentation, unit, Histogram(points, _TOTAL))
    numbers = [
        NumberDataPoint(
            attributes=dict(sample.labels),
            start_time_unix_nano=started_ns,
            time_unix_nano=now_ns,
            value=float(sample.value),
        )
        for sample in family.samples
    ]
    if family.type == "counter":
        return Metric(family.name, family.documentation, unit, Sum(numbers, _TOTAL, is_monotonic=True))
    return Metric(family.name, family.documentation, unit, Gauge(numbers))


def _histogram_points(family: Family, started_ns: int, now_ns: int) -> Iterator[HistogramDataPoint]:
    """Give the one point of a histogram without labels, as all of ours are."""
    buckets = [(float(sample.labels["le"]), sample.value) for sample in family.samples if "le" in sample.labels]
    total = next(sample.value for sample in family.samples if sample.name.endswith("_sum"))
    before = 0.0
    counts = []
    for _, below in buckets:
        counts.append(int(below - before))
        before = below
    yield HistogramDataPoint(
        attributes={},
        start_time_unix_nano=started_ns,
        time_unix_nano=now_ns,
        count=int(before),
        sum=total,
        bucket_counts=counts,
        explicit_bounds=[bound for bound, _ in buckets if bound != inf],
        min=0.0,
        max=0.0,
    )
