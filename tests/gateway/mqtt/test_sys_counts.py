"""What the `$SYS` tree tells of the door."""

from __future__ import annotations

from gateway.mqtt import sys_counts
from tests.support.mqtt import publish, unsubscribe


def test_counts_follow_what_clients_do(world):
    counts = world.door.sys_counts
    world.client(b"p").send(publish(b"t", b"abc", retain=True), publish(b"u", b"", qos=1, packet_id=1))
    peer = world.client(b"a", (b"t", 0), (b"$share/g/u", 1), clean=False)
    now = counts.now()
    assert (now["subscriptions/count"], now["shared_subscriptions/count"], now["retained messages/count"]) == (2, 1, 1)
    assert (now["messages/stored"], now["publish/bytes/received"], now["clients/maximum"]) == (2, 3, 2)
    assert now["store/messages/bytes"] > 0
    peer.send(unsubscribe(2, b"$share/g/u"))
    peer.vanish()
    now = counts.now()
    assert (now["subscriptions/count"], now["shared_subscriptions/count"], now["clients/disconnected"]) == (1, 0, 1)
    world.close()
    world.open()
    now = world.door.sys_counts.now()
    assert (now["subscriptions/count"], now["clients/connected"], now["clients/total"]) == (1, 0, 1)


def test_memory_is_told_and_the_most_of_it(world, monkeypatch):
    counts = world.door.sys_counts
    assert 1_000_000 < counts.now()["heap/current"] <= counts.now()["heap/maximum"]
    most = counts.now()["heap/maximum"]
    for used in (most + 7, 5):
        monkeypatch.setattr(sys_counts, "own_bytes", lambda used=used: used)
        now = counts.now()
    assert (now["heap/current"], now["heap/maximum"]) == (5, most + 7)


def test_expired_sessions_are_counted(make_world):
    world = make_world(session_expiry_s=10)
    world.client(b"a", (b"t", 1), clean=False).vanish()
    world.now_ms += 11_000
    world.door.tend(world.now_ms)
    world.turn()
    now = world.door.sys_counts.now()
    assert (now["clients/expired"], now["subscriptions/count"], now["clients/total"]) == (1, 0, 0)
    assert world.door.sys_counts.growing()["connections"] == 1
