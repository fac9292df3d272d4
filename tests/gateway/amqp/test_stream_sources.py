"""Consumers with `x-stream-offset` of queues with priorities: all messages, in the order in which they were stored."""

from __future__ import annotations

import random

import pytest
from pamqp.commands import Basic, Queue

from gateway.amqp import stream_sources
from tests.gateway.amqp.test_stream_consumer import offsets, read

PRIORITIES = {"x-max-priority": 5}


def declare(peer):
    peer.declare("q", durable=True, arguments=PRIORITIES)
    return peer


def publish(peer, *priorities, start=0):
    for i, priority in enumerate(priorities, start):
        peer.publish(b"%d" % i, key="q", priority=priority)


def numbers(*of):
    return [b"%d" % i for i in of]


def test_messages_of_all_priorities_are_read_in_the_order_they_came_beside_a_worker(world):
    peer = declare(world.client())
    publish(peer, 0, 3, 3, 1, 0, 3)
    reader = read(world.client(), "first")
    worker = world.client().consume("q", no_ack=True)
    publish(peer, 5, 0, 5, start=6)  # 5 is in use from now on
    found = reader.messages()
    assert [one.body for one in found] == numbers(*range(9))
    assert offsets(found) == sorted(set(offsets(found)))
    assert worker.bodies() == numbers(1, 2, 5, 3, 0, 4, 6, 7, 8)


@pytest.mark.parametrize(
    ("start", "expected"), [("first", range(6)), ("last", (3, 4, 5)), ("next", (4, 5)), ("1h", range(6))]
)
def test_a_reader_begins_where_it_says(world, start, expected):
    peer = declare(world.client())
    publish(peer, 2, 0, 0, 2)
    reader = read(world.client(), start)
    publish(peer, 4, 0, start=4)
    assert reader.bodies() == numbers(*expected)


def test_a_reader_goes_on_from_an_offset_that_it_was_told(world):
    peer = declare(world.client())
    publish(peer, *(i % 4 for i in range(8)))
    told = offsets(read(world.client(), "first").messages())
    for i, offset in enumerate(told):
        assert read(world.client(), offset).bodies() == numbers(*range(i, 8))
        assert read(world.client(), offset + 1).bodies() == numbers(*range(i + 1, 8))
    assert read(world.client(), told[-1] + 1_000_000).bodies() == []


def test_a_reader_begins_at_a_moment_in_each_priority(world):
    peer = declare(world.client())
    publish(peer, 1, 2)
    world.now_ms += 60_000
    publish(peer, 2, 1, start=2)
    assert read(world.client(), "30s").bodies() == numbers(2, 3)


def test_a_new_queue_of_an_old_name_shows_nothing_of_the_old_one(world):
    peer = declare(world.client())
    publish(peer, 0, 1, 2, 3)
    peer.call(Queue.Delete(queue="q"))
    declare(peer)
    assert read(world.client(), "first").bodies() == []
    publish(peer, 3, 1, start=7)
    assert read(world.client(), "first").bodies() == numbers(7, 8)
    world.close()
    world.open()
    assert read(world.client(), 0).bodies() == numbers(7, 8)


def test_very_many_are_passed_over_in_parts(world, monkeypatch):
    monkeypatch.setattr(stream_sources, "SKIP_COUNT", 3)
    peer = declare(world.client())
    publish(peer, *(i % 3 for i in range(100)))
    told = offsets(read(world.client(), "first").messages())
    assert read(world.client(), told[90] - 1).bodies() == numbers(
        *range(90, 100)
    )  # no record is there: all are looked at


def test_prefetch_holds_and_a_cancelled_reader_reads_no_more(world):
    peer = declare(world.client())
    publish(peer, 1, 0, 1, 0)
    reader = world.client()
    reader.send(Basic.Qos(prefetch_count=3)).take()
    found = read(reader, "first").messages()
    assert [one.body for one in found] == numbers(0, 1, 2)
    reader.send(Basic.Ack(found[0].tag))
    assert reader.bodies() == numbers(3)
    reader.call(Basic.Cancel("s"))
    publish(peer, 4, start=4)
    assert reader.take() == []


@pytest.mark.parametrize("seed", range(8))
def test_readers_that_come_at_any_moment_read_all_from_there_on_once(world, seed):
    rng = random.Random(seed)
    peer, count, readers = declare(world.client()), 0, []
    for _ in range(20):
        if rng.random() < 0.4:
            start = rng.choice(("first", "next"))
            readers.append((read(world.client(), start, no_ack=True), 0 if start == "first" else count))
        priorities = [rng.randrange(7) for _ in range(rng.randrange(5))]
        publish(peer, *priorities, start=count)
        count += len(priorities)
    for reader, first in readers:
        assert reader.bodies() == numbers(*range(first, count))
