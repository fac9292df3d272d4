"""Metrics of each door and of each of its listeners, as its connections count them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from core.metrics import DoorMetrics

COUNTERS = (
    ("messages_in", "Messages taken in."),
    ("messages_out", "Messages handed out."),
    ("redelivered", "Messages handed out once more; messages out has them, too."),
    ("bytes_in", "Bytes of bodies taken in."),
    ("bytes_out", "Bytes of bodies handed out."),
    ("connections_total", "Connections opened since the start."),
    ("holds", "How often a publisher was held back because the disk or the memory was low."),
)
GAUGES = (
    ("connections", "Connections open now."),
    ("sessions", "Sessions, connected or not."),
    ("publishers_held", "Connections held back now, because the disk or the memory is low."),
)
REASONS = (
    ("refused", "reason", "Packets, channels or connections refused."),
    ("dropped", "reason", "Messages taken in and not passed on."),
    ("logins", "outcome", "Logins, by what became of them."),
    ("dead_letters", "reason", "Messages that were stored as dead letters."),
)


def door_families(doors: list[DoorMetrics]) -> Iterator[Metric]:
    """Yield what is counted for each door."""
    for name, text in COUNTERS:
        counter = CounterMetricFamily(
            f"lmq_{name.removesuffix('_total')}" + ("_opened" if "_total" in name else ""), text, labels=["door"]
        )
        for door in doors:
            counter.add_metric([door.name], getattr(door, name))
        yield counter
    for name, text in GAUGES:
        gauge = GaugeMetricFamily(f"lmq_{name}", text, labels=["door"])
        for door in doors:
            gauge.add_metric([door.name], getattr(door, name))
        yield gauge


def reason_families(doors: list[DoorMetrics]) -> Iterator[Metric]:
    """Yield what is counted by door and reason, or outcome."""
    for name, label, text in REASONS:
        family = CounterMetricFamily(f"lmq_{name}", text, labels=["door", label])
        for door in doors:
            for reason, count in sorted(getattr(door, name).items()):
                family.add_metric([door.name, reason], count)
        yield family


def listener_family(listeners: Iterable[tuple[str, str, str, int]]) -> Metric:
    """Return how many connections are open at each address: door, name, address and count."""
    family = GaugeMetricFamily(
        "lmq_listener_connections", "Connections open now, by where they came.", labels=["door", "listener", "address"]
    )
    for door, name, address, count in listeners:
        family.add_metric((door, name, address), count)
    return family
