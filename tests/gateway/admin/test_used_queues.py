"""Totals go through the queues that have messages or readers, those that nobody uses by the thousand."""

from __future__ import annotations

import random

import pytest
from pamqp.commands import Queue

from gateway.admin import totals
from gateway.admin.rosters.held_figures import HeldFigures
from gateway.admin.totals import QueueSum, TotalsKeeper
from gateway.admin.used_queues import UsedQueues
from tests.support.amqp_door import AmqpWorld
from tests.support.walks import all_of

pytestmark = pytest.mark.here(reason="totals tell of the messages that are here")


@pytest.fixture
def world(tmp_path):
    world = AmqpWorld(tmp_path)
    yield world
    world.close()


def _walk(world):
    return UsedQueues(world.broker, lambda: world.amqp.vhosts)


def _have_all_known(world):
    for vhost in world.amqp.vhosts:
        for _ in vhost.rows.take_in():
            pass
        for _ in HeldFigures(vhost).take_in(0, len(vhost.rows)):
            pass


def test_queues_without_messages_and_readers_are_passed_over(world):
    peer = world.client()
    for name in ("empty", "ready", "read", "done", "levels"):
        peer.declare(name, arguments={"x-max-priority": 3} if name == "levels" else None)
    peer.publish(b"1", key="ready").publish(b"2", key="done").publish(b"3", key="levels", priority=2)
    reader = world.client()
    reader.consume("read", no_ack=False)

    def used():
        return {entry.name: (entry.ready, entry.unacked, entry.readers) for entry in all_of(_walk(world))}

    assert used() == {"ready": (1, 0, 0), "read": (0, 0, 1), "done": (1, 0, 0), "levels": (1, 0, 0)}
    peer.call(Queue.Purge(queue="done"))
    assert used() == {"ready": (1, 0, 0), "read": (0, 0, 1), "levels": (1, 0, 0)}
    peer.publish(b"4", key="empty").publish(b"5", key="done")
    reader.vanish()
    assert used() == dict.fromkeys(("ready", "levels", "empty", "done"), (1, 0, 0))
    peer.call(Queue.Delete(queue="ready"))
    assert set(used()) == {"levels", "empty", "done"}


def test_queues_of_which_all_is_known_are_added_up(world):
    peer = world.client()
    for name in ("a", "b", "c", "empty"):
        peer.declare(name)
    peer.publish(b"1", key="a").publish(b"2", b"3", key="b").publish(b"4", key="c")
    _have_all_known(world)
    ((vhost, ready, first),) = all_of(_walk(world))
    assert (vhost, ready, {(entry.name, entry.ready) for entry, _ in first}) == ("/", 4, {("a", 1), ("b", 2), ("c", 1)})
    reader = world.client()
    reader.consume("b", no_ack=False)
    summed, read = all_of(_walk(world))
    assert (summed.ready, read.name, read.unacked, read.readers) == (2, "b", 2, 1)
    peer.call(Queue.Delete(queue="a"))
    summed, _ = all_of(_walk(world))
    assert (summed.ready, [entry.name for entry, _ in summed.first]) == (1, ["c"])


@pytest.mark.asyncio
@pytest.mark.parametrize("seed", range(4))
async def test_totals_are_those_of_queues_that_are_described_one_by_one(world, monkeypatch, seed):
    monkeypatch.setattr("gateway.admin.used_queues.DEEPEST_COUNT", 3)
    monkeypatch.setattr("gateway.admin.used_queues.OLDEST_COUNT", 3)
    monkeypatch.setattr(totals, "DEEPEST_COUNT", 3)
    monkeypatch.setattr(totals, "OLDEST_COUNT", 3)
    for module in ("amqp.queue_figures", "admin.rosters.held_figures", "admin.used_queues"):
        monkeypatch.setattr(f"gateway.{module}.BLOCK", 8)
    draw, peer = random.Random(seed), world.client()
    names = [f"q{number:02}" for number in range(40)]
    for name in names:
        peer.declare(name)
    for name in draw.sample(names, 30):
        world.now_ms += draw.randrange(5)
        peer.publish(*[b"x"] * draw.randrange(1, 5), key=name)
    reader = world.client()
    for name in draw.sample(names, 4):
        reader.consume(name, no_ack=False)
    for vhost in world.amqp.vhosts:
        for _ in vhost.rows.take_in():
            pass
        for first in range(0, 40, 8):
            for _ in HeldFigures(vhost).take_in(first, first + 8) if draw.random() < 0.7 else ():
                pass
    for name in draw.sample(names, 5):
        peer.publish(b"late", key=name)
    for name in draw.sample(names, 3):
        peer.call(Queue.Delete(queue=name))
    assert any(isinstance(one, QueueSum) for one in _walk(world))
    ages = totals.OldestMessages(world.broker)
    found = await TotalsKeeper(lambda: iter(_walk(world)), lambda: iter(()), lambda: iter(()), ages).find()
    ages = totals.OldestMessages(world.broker)
    one_by_one = await TotalsKeeper(world.amqp.inventory().queues, lambda: iter(()), lambda: iter(()), ages).find()
    assert found[1:4] == one_by_one[1:4]
    assert found.within({"/"}) == one_by_one.within({"/"})
    assert [one.ready + one.unacked for one in found.deepest] == [one.ready + one.unacked for one in one_by_one.deepest]
    assert [moment for _, moment in found.oldest] == [moment for _, moment in one_by_one.oldest]
