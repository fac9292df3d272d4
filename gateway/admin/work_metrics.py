"""Metrics of what is done with messages beside passing them on: shared consumption, timed messages, transactions."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from core.metrics import Durations, PopCounts, TransactionMetrics


def pop_families(counts: PopCounts) -> Iterator[Metric]:
    """Yield what consumers did that share queues: those of AMQP, of shared subscriptions, and of RocketMQ's POP."""
    for name, text, count in (
        ("taken", "Messages given to a consumer for the first time.", counts.taken),
        ("redelivered", "Messages given once more.", counts.taken_again),
        ("acknowledged", "Messages that a consumer was done with.", counts.done),
        ("returned", "Messages given back, to be given again at once or at a moment.", counts.given_back),
        ("timed_out", "Messages shown again because their invisible time was over.", counts.timed_out),
    ):
        yield CounterMetricFamily(f"lmq_shared_{name}", text, count)


def transaction_families(counts: TransactionMetrics) -> Iterator[Metric]:
    """Yield how transactions of RocketMQ's producers went."""
    yield GaugeMetricFamily("lmq_transactions_pending", "Half messages that wait for their end.", counts.pending)
    ended = CounterMetricFamily("lmq_transactions_ended", "Transactions that are over.", labels=["how"])
    for how, count in (("commit", counts.commits), ("rollback", counts.rollbacks), ("given_up", counts.given_up)):
        ended.add_metric([how], count)
    yield ended
    for name, text, count in (
        ("checks", "How often a producer was asked how one ended.", counts.checks),
        ("checks_unasked", "How often no producer was there to be asked.", counts.unasked),
    ):
        yield CounterMetricFamily(f"lmq_transaction_{name}", text, count)


def duration_family(name: str, text: str, durations: Durations) -> Metric:
    """Return a histogram, in seconds."""
    buckets: list[tuple[str, float]] = []
    below = 0
    for bound_ms, count in zip(durations.bounds_ms, durations.bucket_counts, strict=False):
        below += count
        buckets.append((f"{bound_ms / 1000:g}", below))
    buckets.append(("+Inf", durations.count))
    family = HistogramMetricFamily(name, text)
    family.add_metric([], buckets, durations.total_ms / 1000)
    return family
