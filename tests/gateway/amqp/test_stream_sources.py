"""Consumers with `x-stream-offset` of queues with priorities: all messages, in the order in which they were stored."""

from __future__ import annotations

import random

import pytest
from pamqp.commands import Basic, Queue

from core.message import StoredBatch
from gateway.amqp import stream_sources
from gateway.amqp.stream_consumer import READ_BYTES_MIN, TURN_BYTES_MAX
from gateway.amqp.stream_offset import Start
from tests.gateway.amqp.test_stream_consumer import offsets, read
from tests.support import amqp

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


def test_a_reader_that_had_no_room_yet_begins_at_what_was_the_last_when_it_came(world):
    peer = declare(world.client())
    publish(peer, 0, 0)
    reader = world.client()
    reader.stall()
    read(reader, "last")
    publish(peer, 0, 3, start=2)
    reader.drain()
    assert reader.bodies() == numbers(1, 2, 3)


class OpeningBroker:
    """A broker that tells when it is asked to where queues end."""

    def __init__(self, broker):
        self.broker = broker
        self.opened = {}

    def __getattr__(self, name):
        return getattr(self.broker, name)

    def open_queue(self, ref, then):
        self.opened[ref] = then


@pytest.mark.at_once(reason="tells by itself what is late")
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_nothing_is_left_out_that_came_while_it_was_found_where_the_last_one_is(world, order):
    peer = declare(world.client())
    publish(peer, 0, 3)
    broker = OpeningBroker(world.broker)
    source = stream_sources.LevelsSource(broker, world.amqp.vhosts.find("/").find("q").pop, lambda ref: None)
    begun = []
    source.begin(Start(word="last"), begun.append)
    first, second = [list(broker.opened.values())[i] for i in order]
    first(None)
    publish(peer, 3, 0, start=2)
    second(None)
    publish(peer, 3, start=4)
    stored, found = StoredBatch(1_024), []
    while source.read(stored, 1_024, 1 << 20) >= 0:
        found += [bytes(stored.buf[stored.body_start[i] : stored.body_end[i]]) for i in range(stored.count)]
    source.end()
    assert begun == [None]
    assert found == numbers(*range(5))[-len(found) :]
    assert len(found) >= 2


def test_a_priority_that_comes_while_a_reader_begins_is_read(world):
    peer = declare(world.client())
    publish(peer, 0)
    reader = world.client()
    read_now = amqp.method(1, Basic.Consume(queue="q", consumer_tag="s", arguments={"x-stream-offset": "first"}))
    reader.begin(read_now)
    peer.begin(amqp.publish(1, b"1", key="q", priority=4))
    world.turn()
    assert reader.bodies() == numbers(0, 1)
    publish(peer, 4, 0, start=2)
    assert reader.bodies() == numbers(2, 3)


class CountingBroker:
    """A broker that counts the messages that are read."""

    def __init__(self, broker):
        self.broker = broker
        self.looked_at = 0

    def __getattr__(self, name):
        return getattr(self.broker, name)

    def read(self, ref, offset, stored, count_max, bytes_max):
        found = self.broker.read(ref, offset, stored, count_max, bytes_max)
        self.looked_at += max(found, 0)
        return found


@pytest.mark.at_once(reason="counts what is read, which is asked for again where it is on its way")
def test_priorities_that_alternate_cost_no_more_than_others(world):
    peer = declare(world.client())
    count = 600
    peer.write(*[amqp.publish(1, b"x", key="q", priority=i % 3) for i in range(count)])
    broker = CountingBroker(world.broker)
    source = stream_sources.LevelsSource(broker, world.amqp.vhosts.find("/").find("q").pop, lambda ref: None)
    source.begin(Start(word="first"), lambda error: None)
    stored = StoredBatch(1_024)
    found = []
    while source.read(stored, 1_024, 1 << 20) >= 0:
        found += stored.queue_offset[: stored.count]
    source.end()
    assert len(found) == count
    assert found == sorted(found)
    assert broker.looked_at <= 3 * count


@pytest.mark.at_once(reason="counts what one turn gives")
def test_others_have_their_turns_while_priorities_that_alternate_are_read(world):
    peer = declare(world.client())
    count = 1_000
    peer.write(*[amqp.publish(1, b"x", key="q", priority=i % 2) for i in range(count)])
    reader = world.client()
    reader.begin(
        amqp.method(1, Basic.Consume(queue="q", consumer_tag="s", no_ack=True, arguments={"x-stream-offset": "first"}))
    )
    found = []
    while world.is_turn_due:
        world.step()
        found.append(len(reader.messages()))
    assert sum(found) == count
    assert max(found) <= TURN_BYTES_MAX // READ_BYTES_MIN
