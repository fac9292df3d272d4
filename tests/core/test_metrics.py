from __future__ import annotations

from core.metrics import SYNC_BUCKETS_MS, Metrics


def test_a_door_is_made_once():
    metrics = Metrics()
    metrics.door("mqtt").messages_in += 3
    assert metrics.door("mqtt").messages_in == 3


def test_refusals_and_drops_are_counted_by_reason():
    door = Metrics().door("mqtt")
    door.refuse("malformed_packet")
    door.refuse("malformed_packet")
    door.drop("slow_reader", 5)
    assert (door.refused, door.dropped) == ({"malformed_packet": 2}, {"slow_reader": 5})


def test_each_sync_falls_into_the_first_bucket_that_holds_it():
    sync = Metrics().sync
    for took_ms in (0.25, 0.3, 5_000.0):
        sync.add(took_ms)
    assert (sync.bucket_counts[0], sync.bucket_counts[1], sync.bucket_counts[len(SYNC_BUCKETS_MS)]) == (1, 1, 1)
    assert sync.count == 3


def test_a_bridge_is_made_once_and_counts_by_reason():
    metrics = Metrics()
    metrics.bridge("cloud").drop("loop")
    metrics.bridge("cloud").drop("loop")
    assert metrics.bridge("cloud").dropped == {"loop": 2}
