"""The counters in Prometheus's form, read when they are asked for: the data path knows nothing of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from core.broker import Broker
from core.cache_budget import CacheBudget
from core.metrics import BridgeMetrics, LoopMetrics
from core.room import Room
from gateway.admin.door_metrics import door_families, listener_family, reason_families
from gateway.admin.process_metrics import process_families
from gateway.admin.queue_metrics import total_families
from gateway.admin.tls_metrics import tls_families
from gateway.admin.totals import Totals
from gateway.admin.work_metrics import duration_family, pop_families, transaction_families
from gateway.carriage import SecureAddress
from gateway.net.descriptors import Capacity, descriptor_limit, open_descriptors


class GatewayCollector(Collector):
    """All metrics of one gateway."""

    def __init__(
        self,
        broker: Broker,
        capacity: Capacity,
        certificates: Callable[[], Iterable[SecureAddress]] = tuple,
        *,
        totals: Callable[[], Totals] = Totals,
        loop_delay_s: Callable[[], float] = float,
        guards: Callable[[], Iterable[Metric]] = tuple,
        listeners: Callable[[], Iterable[tuple[str, str, str, int]]] = tuple,
    ) -> None:
        self._broker = broker
        self._capacity = capacity
        self._certificates = certificates
        self._totals = totals
        self._loop_delay_s = loop_delay_s
        self._guards = guards  # metrics of what keeps the gateway safe
        self._listeners = listeners

    def describe(self) -> Iterable[Metric]:
        """Return nothing: names are fixed and need no check against values at the start."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield each metric with its present values."""
        metrics, figures = self._broker.metrics, self._broker.figures()
        doors = list(metrics.doors.values())
        yield from door_families(doors)
        yield from reason_families(doors)
        yield listener_family(self._listeners())
        yield from bridge_families(list(metrics.bridges.values()))
        yield from transaction_families(metrics.transactions)
        yield duration_family("lmq_sync_seconds", "How long a group of writes took to be on disk.", metrics.sync)
        yield _counter("lmq_syncs_failed", "Syncs that the disk refused.", metrics.sync.failed)
        yield _counter("lmq_messages_stored", "Messages written to the log, once each.", figures.messages_stored)
        yield _counter("lmq_dispatches", "Entries written into light queues.", figures.dispatches)
        yield _counter("lmq_records_damaged", "Damaged records met, and not served.", figures.records_damaged)
        yield damage_family(figures.damage_beside)
        yield _counter(
            "lmq_log_bytes_punched",
            "Bytes given back in the middle of the log, where nobody needed them.",
            figures.log_bytes_punched,
        )
        yield GaugeMetricFamily("lmq_light_queues", "Queues that have an index.", figures.queues)
        yield GaugeMetricFamily("lmq_log_bytes", "Bytes of the commit log on disk.", figures.log_bytes)
        yield from total_families(self._totals(), time.time())
        yield GaugeMetricFamily("lmq_retained", "Topics with a retained message.", len(self._broker.retained))
        yield GaugeMetricFamily("lmq_delayed", "Messages that wait for their moment.", self._broker.timer.pending_count)
        yield duration_family(
            "lmq_delayed_lateness_seconds", "How late such messages were handed on.", metrics.lateness
        )
        yield from pop_families(self._broker.pop.counts())
        yield from process_families()
        yield GaugeMetricFamily(
            "lmq_loop_delay_seconds", "How late the loop was at most, in the last second.", self._loop_delay_s()
        )
        yield from cache_families(self._broker.caches)
        yield CounterMetricFamily(
            "lmq_mqtt_acknowledged",
            "Messages at QoS 1 and 2 that MQTT's subscribers acknowledged.",
            self._broker.metrics.door("mqtt").acknowledged,
        )
        yield from room_families(self._broker.room)
        yield from descriptor_families(self._capacity)
        yield from loop_families(metrics.loop)
        yield from self._guards()
        yield from tls_families(self._certificates())
        yield self._alarm_family()
        yield GaugeMetricFamily(
            "lmq_up", "1 while messages are taken, 0 after a failed sync.", int(not self._broker.is_failed)
        )

    def _alarm_family(self) -> Metric:
        """Return the alarms, each 1 while it is on."""
        family = GaugeMetricFamily("lmq_alarm", "1 while something holds work up, else 0.", labels=["alarm"])
        for name, is_on in (
            ("disk_low", self._broker.room.is_disk_low),
            ("memory_low", self._broker.room.is_memory_low),
            ("connections", self._capacity.watermarks.is_full(self._capacity.count)),
            ("descriptors", self._capacity.is_paused),
            ("sync_refused", self._broker.is_failed),
        ):
            family.add_metric([name], int(is_on))
        return family


def bridge_families(bridges: list[BridgeMetrics]) -> Iterator[Metric]:
    """Yield what each bridge is and did; nothing where there is none."""
    if not bridges:
        return
    connected = GaugeMetricFamily("lmq_bridge_connected", "1 while the bridge stands, else 0.", labels=["bridge"])
    connects = CounterMetricFamily("lmq_bridge_connects", "How often it was made.", labels=["bridge"])
    failures = CounterMetricFamily("lmq_bridge_failures", "How often it broke or was not made.", labels=["bridge"])
    messages = CounterMetricFamily("lmq_bridge_messages", "Messages carried.", labels=["bridge", "direction"])
    dropped = CounterMetricFamily("lmq_bridge_dropped", "Messages not carried.", labels=["bridge", "reason"])
    for bridge in bridges:
        connected.add_metric([bridge.name], int(bridge.is_connected))
        connects.add_metric([bridge.name], bridge.connects)
        failures.add_metric([bridge.name], bridge.failures)
        messages.add_metric([bridge.name, "in"], bridge.messages_in)
        messages.add_metric([bridge.name, "out"], bridge.messages_out)
        for reason, count in sorted(bridge.dropped.items()):
            dropped.add_metric([bridge.name, reason], count)
    yield from (connected, connects, failures, messages, dropped)


def cache_families(caches: CacheBudget) -> Iterator[Metric]:
    """Yield what caches have, their bound, and what came and went, by cache."""
    used = GaugeMetricFamily("lmq_cache_bytes", "Bytes of what is kept only to be quick, about.", labels=["cache"])
    entries = GaugeMetricFamily("lmq_cache_entries", "Entries of it.", labels=["cache"])
    hits = CounterMetricFamily("lmq_cache_hits", "Lookups that found an entry.", labels=["cache"])
    made = CounterMetricFamily("lmq_cache_misses", "Entries that were not there, and were made.", labels=["cache"])
    evicted = CounterMetricFamily("lmq_cache_evictions", "Entries let go of, to keep the bound.", labels=["cache"])
    counts = caches.entries()
    for name, size in sorted(caches.bytes_used().items()):
        used.add_metric([name], size)
        entries.add_metric([name], counts[name])
        hits.add_metric([name], caches.hits[name].count)
        made.add_metric([name], caches.made[name])
        evicted.add_metric([name], caches.evicted[name])
    yield used
    yield entries
    yield hits
    yield made
    yield GaugeMetricFamily("lmq_cache_bytes_max", "What all caches may have together.", caches.bytes_max)
    yield evicted


def room_families(room: Room) -> Iterator[Metric]:
    """Yield the room on the disk, the least that is wanted, and whether there is less."""
    yield GaugeMetricFamily("lmq_disk_free_bytes", "Room on the data folder's disk.", room.free_bytes)
    yield GaugeMetricFamily("lmq_disk_free_bytes_min", "With less, publishers are held back.", room.free_bytes_min)
    yield GaugeMetricFamily("lmq_disk_low", "1 while publishers are held back for it, else 0.", int(room.is_disk_low))


def descriptor_families(capacity: Capacity) -> Iterator[Metric]:
    """Yield the files that are open, under the names that all programs use, and the connections that they allow."""
    yield GaugeMetricFamily("process_open_fds", "Number of open file descriptors.", open_descriptors())
    yield GaugeMetricFamily("process_max_fds", "Maximum number of open file descriptors.", descriptor_limit())
    yield GaugeMetricFamily(
        "lmq_connections_max", "Connections of all doors that descriptors allow.", capacity.connections_max
    )
    yield GaugeMetricFamily("lmq_newcomers_wait", "1 while nobody is let in for it, else 0.", int(capacity.is_paused))
    yield _counter("lmq_newcomers_held", "How often newcomers had to wait for it.", capacity.pauses)


def loop_families(loop: LoopMetrics) -> Iterator[Metric]:
    """Yield how long the loop was held at most, in seconds."""
    share_s, turn_s = loop.share_ns_max / 1e9, loop.turn_ns_max / 1e9
    yield GaugeMetricFamily("lmq_share_seconds_max", "The longest that one connection held all others up.", share_s)
    yield GaugeMetricFamily("lmq_turn_seconds_max", "The longest that one turn of all readers took.", turn_s)


def damage_family(counts: dict[str, int]) -> Metric:
    """Return what was damaged beside the log, by kind of file."""
    family = CounterMetricFamily("lmq_damage_beside_log", "Damage in files beside the log, mended.", labels=["kind"])
    for kind, count in counts.items():
        family.add_metric([kind], count)
    return family


def _counter(name: str, text: str, value: int) -> Metric:
    return CounterMetricFamily(name, text, value)
