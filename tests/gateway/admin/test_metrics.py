from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from core.cache_budget import Cache, CacheBudget
from core.metrics import BridgeMetrics
from gateway.admin.metrics import (
    GatewayCollector,
    bridge_families,
    cache_families,
    damage_family,
)
from tests.support.gateway import running_gateway
from tests.support.sources import ROOT


def _samples(text):
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.mark.asyncio
async def test_what_prometheus_reads_is_what_was_counted(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        metrics = gateway.broker.metrics
        door = metrics.door("mqtt")
        door.messages_in, door.bytes_out, door.connections_total = 5, 700, 2
        door.acknowledged = 4
        door.refuse("malformed")
        metrics.sync.add(0.3)
        metrics.loop.share_ns_max = 1_500_000
        transactions = metrics.transactions
        transactions.commits, transactions.rollbacks, transactions.given_up = 5, 3, 2
        transactions.pending, transactions.checks, transactions.unasked = 7, 9, 1
        registry = CollectorRegistry()
        registry.register(GatewayCollector(gateway.broker, gateway.capacity))
        samples = _samples(generate_latest(registry).decode())
    assert samples["lmq_messages_in_total", ("door", "mqtt")] == 5
    assert samples["lmq_bytes_out_total", ("door", "mqtt")] == 700
    assert samples["lmq_connections_opened_total", ("door", "mqtt")] == 2
    assert samples["lmq_refused_total", ("door", "mqtt"), ("reason", "malformed")] == 1
    ends = ("commit", "rollback", "given_up")
    assert [samples["lmq_transactions_ended_total", ("how", how)] for how in ends] == [5, 3, 2]
    assert (samples["lmq_transactions_pending",], samples["lmq_transaction_checks_total",]) == (7, 9)
    assert samples["lmq_transaction_checks_unasked_total",] == 1
    assert samples["lmq_mqtt_acknowledged_total",] == 4
    assert samples["lmq_up",] == 1
    assert samples["lmq_share_seconds_max",] == 0.0015
    assert samples["lmq_turn_seconds_max",] < 60
    assert samples["lmq_log_bytes",] >= 0
    assert 0 < samples["process_open_fds",] < samples["process_max_fds",]
    assert 0 < samples["lmq_connections_max",] < samples["process_max_fds",]
    assert samples["lmq_newcomers_wait",] == samples["lmq_newcomers_held_total",] == 0
    assert samples["lmq_damage_beside_log_total", ("kind", "journal")] == 0


def test_caches_are_shown_with_their_bound_and_what_went():
    caches = CacheBudget(1000)
    routes, targets = (Cache(caches, name, lambda value, generation: 100) for name in ("routes", "targets"))
    targets.put(b"kept", 1)
    for number in range(20):
        routes.put(b"%d" % number, 1)
        assert targets.get(b"kept") == 1
    assert [routes.get(b"new"), routes.get(b"19")] == [None, 1]
    used, entries, hits, made, bound, evicted = cache_families(caches)
    assert {sample.labels["cache"]: sample.value for sample in hits.samples} == {"routes": 1, "targets": 20}
    assert {sample.labels["cache"]: sample.value for sample in used.samples} == caches.bytes_used()
    assert 0 < caches.bytes_used()["targets"] < sum(caches.bytes_used().values()) <= 1000
    assert [sample.value for sample in bound.samples] == [1000]
    assert {sample.labels["cache"]: sample.value for sample in entries.samples} == {"routes": len(routes), "targets": 1}
    assert {sample.labels["cache"]: sample.value for sample in made.samples} == {"routes": 20, "targets": 1}
    assert {sample.labels["cache"]: sample.value for sample in evicted.samples} == {
        "routes": 20 - len(routes),
        "targets": 0,
    }


def test_damage_beside_the_log_is_counted_by_kind():
    family = damage_family({"place": 2, "journal": 0})
    assert {sample.labels["kind"]: sample.value for sample in family.samples} == {"place": 2, "journal": 0}


@pytest.mark.asyncio
async def test_every_metric_is_in_the_operators_manual(tmp_path):
    manual = (ROOT / "docs/operations.md").read_text()
    async with running_gateway(tmp_path) as gateway:
        families = list(GatewayCollector(gateway.broker, gateway.capacity).collect())
    names = [family.name + "_total" * (family.type == "counter") for family in families]
    assert [name for name in names if f"`{name}`" not in manual] == []


def test_bridges_are_exported_where_there_are_any():
    assert list(bridge_families([])) == []
    bridge = BridgeMetrics("cloud")
    bridge.is_connected, bridge.connects, bridge.messages_in, bridge.messages_out = True, 2, 3, 4
    bridge.drop("loop")
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for one in bridge_families([bridge])
        for sample in one.samples
    }
    assert samples["lmq_bridge_connected", "cloud"] == 1
    assert samples["lmq_bridge_connects_total", "cloud"] == 2
    assert samples["lmq_bridge_messages_total", "cloud", "in"] == 3
    assert samples["lmq_bridge_messages_total", "cloud", "out"] == 4
    assert samples["lmq_bridge_dropped_total", "cloud", "loop"] == 1
