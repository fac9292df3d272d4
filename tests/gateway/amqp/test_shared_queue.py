from __future__ import annotations

import pytest
from pamqp.commands import Basic

from gateway.amqp.shared_queue import TAKE_BYTES_MAX, TAKE_COUNT_MAX, TURN_BYTES_MAX


class Taker:
    """A consumer that takes what it has room for."""

    rank = 0

    def __init__(self, room=1_000_000):
        self.left = room
        self.got = []
        self.flushes = 0
        self.is_told = False

    def room(self):
        return self.left

    def room_bytes(self):
        return TAKE_BYTES_MAX

    def deliver(self, stored):
        self.left -= stored.count
        self.got += [bytes(stored.buf[stored.body_start[i] : stored.body_end[i]]) for i in range(stored.count)]

    def flush(self):
        self.flushes += 1

    channel = None

    def on_queue_deleted(self):
        pass

    def tell_deleted(self):
        self.is_told = True


@pytest.fixture
def queue(world):
    return world.amqp.vhost.add("q", durable=True, auto_delete=False, owner=None, arguments={})


def publish(world, *bodies):
    world.client().publish(*bodies, key="q")


@pytest.mark.here(reason="consumers share what is here at a time")
def test_each_consumer_gets_its_share(world, queue):
    takers = [Taker(), Taker(), Taker()]
    for taker in takers:
        queue.add_consumer(taker)
    publish(world, *[b"%d" % i for i in range(90)])
    assert [len(taker.got) for taker in takers] == [30, 30, 30]
    assert sorted(body for taker in takers for body in taker.got) == sorted(b"%d" % i for i in range(90))
    assert [taker.flushes for taker in takers] == [1, 1, 1]


def test_who_has_no_room_is_passed_over(world, queue):
    full, half, free = Taker(0), Taker(5), Taker()
    for taker in (full, half, free):
        queue.add_consumer(taker)
    publish(world, *[b"x"] * 50)
    assert [len(taker.got) for taker in (full, half, free)] == [0, 5, 45]


def test_what_was_there_before_the_consumer_is_handed_out(world, queue):
    publish(world, b"1", b"2")
    taker = Taker()
    queue.add_consumer(taker)
    world.turn()
    assert taker.got == [b"1", b"2"]


@pytest.mark.here(reason="counts what one turn hands out")
def test_a_long_queue_is_handed_out_over_several_turns(world, queue):
    body = b"x" * 100_000
    count = TURN_BYTES_MAX // len(body) + 20
    for _ in range(4):
        publish(world, *[body] * (count // 4 + 1))
    taker = Taker()
    queue.add_consumer(taker)
    world.is_turn_due = False
    world.broker.run_turn(world.now_ms)
    assert 0 < len(taker.got) < count
    assert world.is_turn_due
    world.turn()
    assert len(taker.got) >= count


def test_more_than_one_take_is_handed_out_in_a_turn(world, queue):
    taker = Taker()
    queue.add_consumer(taker)
    publish(world, *[b"x"] * (TAKE_COUNT_MAX + 500))
    assert len(taker.got) == TAKE_COUNT_MAX + 500


def test_nobody_is_handed_anything_after_the_end(world, queue):
    taker = Taker()
    queue.add_consumer(taker)
    world.amqp.vhost.remove(queue)
    assert taker.is_told
    publish(world, b"x")
    queue.run_soon()
    world.turn()
    assert taker.got == []


def test_a_queue_without_consumers_is_not_read(world, queue):
    taker = Taker()
    queue.add_consumer(taker)
    queue.remove_consumer(taker)
    publish(world, b"x")
    assert taker.got == []
    assert queue.pop.ready_count == 1


def test_consumers_of_a_higher_priority_are_served_first_while_they_have_room(world):
    low, high = world.client(), world.client()
    low.declare("q", durable=True)
    low.consume("q").take()
    high.send(Basic.Qos(prefetch_count=2)).take()
    high.consume("q", arguments={"x-priority": 10}).take()
    low.publish(*[b"%d" % i for i in range(5)])
    first = high.messages()
    assert [one.body for one in first] == [b"0", b"1"]
    assert low.bodies() == [b"2", b"3", b"4"]
    high.send(Basic.Ack(first[1].tag, multiple=True))
    low.publish(b"5")
    assert (high.bodies(), low.bodies()) == ([b"5"], [])


def test_one_consumer_at_a_time_has_the_messages_in_the_order_they_came(world):
    peers = [world.client() for _ in range(3)]
    peers[0].declare("q", durable=True, arguments={"x-single-active-consumer": True})
    for peer in peers:
        peer.send(Basic.Qos(prefetch_count=1)).take()
        peer.consume("q").take()
    peers[0].publish(b"0", b"1", b"2")
    assert [peer.bodies() for peer in peers] == [[b"0"], [], []]  # though it has no room for more
    peers[1].call(Basic.Cancel("c"))
    peers[0].vanish()
    (again,) = peers[2].messages()
    assert (again.body, again.method.redelivered) == (b"0", True)
    peers[2].send(Basic.Ack(again.tag))
    assert peers[2].bodies() == [b"1"]
