"""Metrics of each door and of each of its listeners, as its connections count them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from core.metrics import DoorMetrics
from gateway.amqp.deaths import DELIVERY_LIMIT, EXPIRED, MAXLEN, REJECTED
from gateway.rocketmq.send_back import BACK, SPENT

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
BEGUN = {  # what is told as 0 from the start, as an alert asks for its increase: the first would be none
    ("amqp", "dead_letters"): tuple(reason.decode() for reason in (DELIVERY_LIMIT, EXPIRED, MAXLEN, REJECTED)),
    ("rocketmq", "dead_letters"): (SPENT, BACK),
}


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
            counts = dict.fromkeys(BEGUN.get((door.name, name), ()), 0) | getattr(door, name)
            for reason, count in sorted(counts.items()):
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
