"""Messages that the engine took and lost: the outcome is their publisher's only."""

from __future__ import annotations

from functools import partial

import pytest
from pamqp.commands import Basic

from tests.support.amqp_door import AmqpWorld
from tests.support.late_engine import make_late


@pytest.fixture
def make(tmp_path):
    worlds = []

    def make(**options):
        worlds.append(AmqpWorld(tmp_path, is_sync=True, make_engine=partial(make_late, **options)))
        return worlds[-1]

    yield make
    for world in worlds:
        world.close()


def read_confirms(client, count):
    """Return the numbers that were acknowledged and those that were refused, in the order that they came in."""
    told, left = [], list(range(1, count + 1))
    for method in client.take():
        numbers = [number for number in left if number == method.delivery_tag]
        if method.multiple:
            numbers = [number for number in left if number <= method.delivery_tag]
        left = [number for number in left if number not in numbers]
        told += [(number, isinstance(method, Basic.Ack)) for number in numbers]
    assert left == []
    return told


def test_each_lost_run_is_refused_and_the_others_are_acknowledged_in_order(make):
    world = make(failures=0.4, seed=5)
    client = world.client().confirms()
    client.declare("q")
    for _ in range(30):
        client.publish(b"1", b"2", key="q")
    told = read_confirms(client, 60)
    assert [number for number, _ in told] == list(range(1, 61))
    refused = [number for number, is_safe in told if not is_safe]
    assert len(refused) == 2 * world.engine.failed > 0
    assert world.amqp_counts.refused["not_stored"] == len(refused)
    assert not client.is_closed


def test_a_loss_on_one_connection_is_not_told_to_another(make):
    world = make(failures=1.0)
    client, other = world.client().confirms(), world.client().confirms()
    client.declare("q")
    client.publish(b"1", key="q")
    assert read_confirms(client, 1) == [(1, False)]
    assert other.take() == []
    world.engine.failures = 0.0
    other.publish(b"2", key="q")
    assert read_confirms(other, 1) == [(1, True)]
