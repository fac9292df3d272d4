from __future__ import annotations


def test_connections_are_counted_until_they_are_gone(world):
    stranger, client = world.dial(), world.client(b"c")
    assert (world.counts.connections, world.counts.connections_total) == (2, 2)
    assert world.door.strangers == {stranger.handler}
    stranger.vanish()
    client.vanish()
    assert (world.counts.connections, world.counts.connections_total) == (0, 2)
    assert world.door.strangers == set()
