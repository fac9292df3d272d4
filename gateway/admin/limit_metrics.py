"""Metrics of what keeps the gateway safe: the audit log, memory, addresses that guess, back ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from gateway.audit.writer import Counts
from gateway.auth.backends.asked import AskedBackend
from gateway.auth.digest_memory import DigestMemory
from gateway.auth.penalty_box import PenaltyBox
from gateway.auth.token_logins import TokenMemory
from gateway.process.memory import MemoryWatch


def audit_families(counts: Counts) -> Iterator[Metric]:
    """Yield how many lines of the audit log were written and lost."""
    yield CounterMetricFamily("lmq_audit_written", "Lines of the audit log that were written.", counts.written)
    yield CounterMetricFamily("lmq_audit_lost", "Lines of the audit log that were lost.", counts.lost)


def penalty_families(box: PenaltyBox, now_ms: int) -> Iterator[Metric]:
    """Yield how many addresses are refused because they guess, and how many logins that refused."""
    yield GaugeMetricFamily("lmq_addresses_refused", "Addresses whose logins are refused now.", box.count(now_ms))
    yield CounterMetricFamily("lmq_penalties", "How often an address came to be refused.", box.penalty_count)
    yield CounterMetricFamily("lmq_logins_refused", "Logins of such addresses, refused unchecked.", box.refused_count)


def backend_families(backends: Sequence[AskedBackend]) -> Iterator[Metric]:
    """Yield counts of questions to back ends of logins, of their answers, and the time they took."""
    labels = ["backend", "kind"]
    questions = CounterMetricFamily(
        "lmq_backend_questions", "Questions to a back end of logins, by its answer.", labels=[*labels, "outcome"]
    )
    remembered = CounterMetricFamily("lmq_backend_remembered", "Logins that its memory answered.", labels=labels)
    seconds = CounterMetricFamily("lmq_backend_seconds", "Time that its answers took, together.", labels=labels)
    waiting = GaugeMetricFamily("lmq_backend_under_way", "Questions that have no answer yet.", labels=labels)
    for backend in backends:
        counts, named = backend.counts, [backend.name, backend.kind]
        for outcome, count in counts.outcomes.items():
            questions.add_metric([*named, outcome], count)
        remembered.add_metric(named, counts.remembered)
        seconds.add_metric(named, counts.ms / 1_000)
        waiting.add_metric(named, counts.under_way)
    yield from (questions, remembered, seconds, waiting)


def remembered_families(remembered: Mapping[str, DigestMemory | TokenMemory]) -> Iterator[Metric]:
    """Yield how often a login needed no check, as an equal one was right before; by what logins are remembered by."""
    hits = CounterMetricFamily("lmq_login_cache_hits", "Logins that needed no check.", labels=["by"])
    misses = CounterMetricFamily("lmq_login_cache_misses", "Logins that were not remembered.", labels=["by"])
    for name, memory in remembered.items():
        hits.add_metric([name], memory.hits)
        misses.add_metric([name], memory.misses)
    yield from (hits, misses)


def memory_families(memory: MemoryWatch) -> Iterator[Metric]:
    """Yield the memory of the process, and what it may have."""
    yield GaugeMetricFamily("lmq_memory_bytes", "Memory of the process, without mapped files.", memory.used_bytes)
    yield GaugeMetricFamily("lmq_memory_bytes_max", "With more, publishers are held back, 0: none.", memory.bytes_max)
