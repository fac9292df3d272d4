from __future__ import annotations

import pytest
from pamqp.commands import Basic

from gateway.amqp.shared_queue import TAKE_COUNT_MAX, TURN_BYTES_MAX


class Taker:
    """A consumer that takes what it has room for."""

    def __init__(self, room=1_000_000):
        self.left = room
        self.got = []
        self.flushes = 0
        self.is_told = False

    def room(self):
        return self.left

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


@pytest.mark.here
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


@pytest.mark.here
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


def declare_short(world, length, **arguments):
    peer = world.client()
    peer.declare("q", arguments={"x-max-length": length, **arguments})
    return peer


def count(peer, queue="q"):
    return peer.declare(queue, passive=True).message_count


def test_the_oldest_go_where_there_are_more_than_the_queue_holds(world):
    peer = declare_short(world, 3)
    peer.publish(*[b"%d" % number for number in range(5_000)], key="q")
    assert count(peer) == 3
    assert peer.call(Basic.Get(queue="q", no_ack=True)).body == b"4997"
    assert world.amqp_counts.dropped == {"maxlen": 4_997}


def test_messages_that_consumers_have_take_no_room_until_they_are_given_back(world):
    peer = declare_short(world, 2)
    peer.publish(b"a", b"b", key="q")
    had = [peer.call(Basic.Get(queue="q")) for _ in range(2)]
    peer.publish(b"c", b"d", key="q")
    assert count(peer) == 2
    peer.send(Basic.Nack(had[1].tag, multiple=True, requeue=True))
    assert count(peer) == 2
    assert peer.call(Basic.Get(queue="q", no_ack=True)).body == b"c"


def test_a_queue_without_room_hands_messages_to_consumers_alone(world):
    peer = declare_short(world, 0)
    peer.publish(b"nobody", key="q").consume("q", no_ack=True)
    peer.publish(b"somebody", key="q")
    assert peer.bodies() == [b"somebody"]
    assert count(peer) == 0


@pytest.mark.here
def test_what_is_too_much_goes_to_the_dead_letters_and_says_so(world):
    peer = declare_short(world, 2, **{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    peer.declare("dead")
    peer.publish(*[b"%d" % number for number in range(300)], key="q")
    world.turn()
    assert (count(peer), count(peer, "dead")) == (2, 298)
    letter = peer.call(Basic.Get(queue="dead"))
    assert (letter.body, letter.properties.headers["x-first-death-reason"]) == (b"0", "maxlen")


def test_a_length_holds_after_a_restart(world):
    peer = world.client()
    peer.declare("q", durable=True, arguments={"x-max-length": 2})
    world.close()
    world.open()
    peer = world.client()
    peer.publish(b"1", b"2", b"3", key="q", delivery_mode=2)
    assert count(peer) == 2
