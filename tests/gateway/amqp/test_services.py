from __future__ import annotations


def test_connections_are_counted_until_they_are_gone(world):
    first, second = world.client(), world.accept()
    assert (world.amqp_counts.connections, world.amqp_counts.connections_total) == (2, 2)
    first.vanish()
    assert world.amqp_counts.connections == 1
    assert set(world.amqp.handlers) == {second.handler}
