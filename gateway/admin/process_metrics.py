"""Metrics of the process, under the names that all programs use."""

from __future__ import annotations

import functools
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

import core.message
from gateway.version import VERSION

_STAT = Path("/proc/self/stat")
_START_FIELD = 19  # of those after the name; proc(5) counts from 1, and two stand before
_STATM = Path("/proc/self/statm")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def process_families() -> Iterator[Metric]:
    """Yield memory, processor time and start of the process, and what it runs.

    Its memory counts pages of the log that are mapped.
    """
    size, resident = (int(pages) * _PAGE_BYTES for pages in _STATM.read_text(encoding="ascii").split()[:2])
    yield GaugeMetricFamily("process_virtual_memory_bytes", "Virtual memory size in bytes.", size)
    yield GaugeMetricFamily("process_resident_memory_bytes", "Resident memory size in bytes.", resident)
    yield CounterMetricFamily("process_cpu_seconds", "User and system CPU time spent in seconds.", time.process_time())
    yield GaugeMetricFamily(
        "process_start_time_seconds", "Start time of the process since 1970 in seconds.", _start_s()
    )
    build = GaugeMetricFamily("lmq_build_info", "What runs, always 1.", labels=["version", "python", "compiled"])
    is_compiled = not str(core.message.__file__).endswith(".py")
    build.add_metric([VERSION, platform.python_version(), "yes" if is_compiled else "no"], 1)
    yield build


@functools.cache  # the two clocks are not read at once: each time it would be another moment, as of another process
def _start_s() -> float:
    """Return when the process began, since 1970."""
    ticks = int(_STAT.read_text(encoding="utf-8").rpartition(")")[2].split()[_START_FIELD])
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")
