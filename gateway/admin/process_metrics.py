"""Metrics of the process, under the names that all programs use."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

_STATM = Path("/proc/self/statm")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def process_families() -> Iterator[Metric]:
    """Yield memory and processor time of the process; its memory counts pages of the log that are mapped."""
    size, resident = (int(pages) * _PAGE_BYTES for pages in _STATM.read_text(encoding="ascii").split()[:2])
    yield GaugeMetricFamily("process_virtual_memory_bytes", "Virtual memory size in bytes.", size)
    yield GaugeMetricFamily("process_resident_memory_bytes", "Resident memory size in bytes.", resident)
    yield CounterMetricFamily("process_cpu_seconds", "User and system CPU time spent in seconds.", time.process_time())
