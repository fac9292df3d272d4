"""Metrics of what keeps the gateway safe: the audit log."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily
from prometheus_client.metrics_core import Metric

from gateway.audit.writer import Counts


def audit_families(counts: Counts) -> Iterator[Metric]:
    """Yield how many lines of the audit log were written and lost."""
    yield CounterMetricFamily("lmq_audit_written", "Lines of the audit log that were written.", counts.written)
    yield CounterMetricFamily("lmq_audit_lost", "Lines of the audit log that were lost.", counts.lost)
