"""Confirmed messages over power cuts that keep what consumers did, and lose the messages they did it with."""

from __future__ import annotations

import pytest
from pamqp.commands import Basic

from tests.support.amqp_door import AmqpWorld
from tests.support.simulated_disk import SimulatedDisk, cut_power

ARGUMENTS = [{}, {"x-max-priority": 3}, {"x-max-length-bytes": 1_000}]


def consume_what_is_lost(tmp_path, arguments, count):
    """Have a queue from which `count` unconfirmed messages were taken that a power cut took; return its folder."""
    (tmp_path / "before").mkdir()
    disk = SimulatedDisk(tmp_path / "before")
    with disk.watching():
        world = AmqpWorld(disk.root / "data", is_sync=True)
        peer = world.client()
        peer.declare("work", durable=True, arguments=arguments)
        peer.confirms().publish(b"first", key="work", priority=2, delivery_mode=2).take()
        world.flushes_by_itself = False
        peer.publish(*[b"lost"] * count, key="work", priority=2, delivery_mode=2)
        for _ in range(1 + count):
            peer.send(Basic.Ack(peer.call(Basic.Get(queue="work")).tag))
        cut_power(world, disk, tmp_path / "after", ("journals/",))
    return tmp_path / "after"


def confirm(world, *bodies):
    peer = world.client().confirms().publish(*bodies, key="work", priority=2, delivery_mode=2)
    assert peer.take()[-1].delivery_tag == len(bodies)


def read_all(world):
    peer = world.client()
    found = []
    while not isinstance(answer := peer.call(Basic.Get(queue="work")), Basic.GetEmpty):
        found.append(answer.body)
    return found


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=str)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_messages_with_offsets_that_were_acknowledged_before_a_power_cut_are_there(tmp_path, arguments, count):
    world = AmqpWorld(consume_what_is_lost(tmp_path, arguments, count) / "data", is_sync=True)
    confirm(world, b"a", b"b", b"c")
    assert read_all(world) == [b"a", b"b", b"c"]
    world.close()


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=str)
def test_that_the_offsets_are_free_again_outlives_a_second_power_cut(tmp_path, arguments):
    disk = SimulatedDisk(consume_what_is_lost(tmp_path, arguments, 1))
    with disk.watching():
        world = AmqpWorld(disk.root / "data", is_sync=True)
        confirm(world, b"a")
        cut_power(world, disk, tmp_path / "again", ())
    world = AmqpWorld(tmp_path / "again" / "data", is_sync=True)
    assert read_all(world) == [b"a"]
    world.close()
