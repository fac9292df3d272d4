"""Metrics of what keeps the gateway safe: the audit log, memory, addresses that guess."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from gateway.audit.writer import Counts
from gateway.auth.penalty_box import PenaltyBox
from gateway.memory import MemoryWatch


def audit_families(counts: Counts) -> Iterator[Metric]:
    """Yield how many lines of the audit log were written and lost."""
    yield CounterMetricFamily("lmq_audit_written", "Lines of the audit log that were written.", counts.written)
    yield CounterMetricFamily("lmq_audit_lost", "Lines of the audit log that were lost.", counts.lost)


def penalty_families(box: PenaltyBox, now_ms: int) -> Iterator[Metric]:
    """Yield which addresses are refused because they guess, and what that refused."""
    yield GaugeMetricFamily("lmq_addresses_refused", "Addresses whose logins are refused now.", box.count(now_ms))
    yield CounterMetricFamily("lmq_penalties", "How often an address came to be refused.", box.penalty_count)
    yield CounterMetricFamily("lmq_logins_refused", "Logins of such addresses, refused unchecked.", box.refused_count)


def memory_families(memory: MemoryWatch) -> Iterator[Metric]:
    """Yield the memory of the process, and what it may have."""
    yield GaugeMetricFamily("lmq_memory_bytes", "Memory of the process, without mapped files.", memory.used_bytes)
    yield GaugeMetricFamily("lmq_memory_bytes_max", "With more, publishers are held back, 0: none.", memory.bytes_max)
