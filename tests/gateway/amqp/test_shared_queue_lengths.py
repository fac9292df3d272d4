"""Queues that hold so many messages or bytes, and what becomes of more."""

from __future__ import annotations

import shutil

import pytest
from pamqp.commands import Basic, Confirm, Queue

from tests.support.amqp_queues import count, drain, outcomes


def declare_short(world, length, **arguments):
    peer = world.client()
    peer.declare("q", arguments={"x-max-length": length, **arguments})
    return peer


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


def declare_refusing(world, length, queue="q", **arguments):
    peer = world.client()
    peer.declare(queue, arguments={"x-max-length": length, "x-overflow": "reject-publish", **arguments})
    return peer


def test_a_full_queue_refuses_what_comes_and_keeps_what_it_has(world):
    peer = declare_refusing(world, 2)
    peer.call(Confirm.Select())
    peer.publish(b"a", b"b", b"c", b"d", key="q")
    assert outcomes(peer) == ([1, 2], [3, 4])
    assert peer.call(Basic.Get(queue="q", no_ack=True)).body == b"a"
    peer.publish(b"e", b"f", key="q")
    assert outcomes(peer) == ([5], [6])
    assert [peer.call(Basic.Get(queue="q", no_ack=True)).body for _ in range(2)] == [b"b", b"e"]
    assert world.amqp_counts.dropped == {"maxlen": 3}


def test_what_a_full_queue_refuses_goes_to_the_others(world):
    peer = declare_refusing(world, 1)
    peer.declare("wide")
    for queue in ("q", "wide"):
        peer.call(Queue.Bind(queue=queue, exchange="amq.fanout"))
    peer.call(Confirm.Select())
    peer.publish(b"a", b"b", exchange="amq.fanout")
    assert outcomes(peer) == ([1], [2])
    assert (count(peer), count(peer, "wide")) == (1, 2)


def test_a_device_publishes_past_a_full_queue(world):
    peer = declare_refusing(world, 1)
    peer.call(Queue.Bind(queue="q", exchange="amq.topic", routing_key="a.*"))
    device = world.client_of_mqtt(b"d", (b"a/b", 1))
    for text in (b"1", b"2"):
        device.publish(b"a/b", text, qos=1)
    world.turn()
    assert (count(peer), len(device.bodies())) == (1, 2)


def test_a_full_queue_takes_as_many_more_as_its_consumers(world):
    peer = declare_refusing(world, 2)
    peer.call(Basic.Qos(prefetch_count=3))
    peer.consume("q")
    publisher = world.client()
    publisher.call(Confirm.Select())
    publisher.publish(*[b"%d" % number for number in range(7)], key="q")
    assert outcomes(publisher) == ([1, 2, 3, 4, 5], [6, 7])
    assert peer.bodies() == [b"0", b"1", b"2"]


def test_a_queue_that_takes_nothing_takes_nothing_for_its_consumers_either(world):
    peer = declare_refusing(world, 0)
    peer.consume("q", no_ack=True)
    peer.publish(b"a", key="q")
    assert peer.bodies() == []


def test_what_is_given_back_to_a_full_queue_stays(world):
    peer = declare_refusing(world, 1)
    peer.publish(b"a", key="q")
    had = peer.call(Basic.Get(queue="q"))
    peer.publish(b"b", key="q").send(Basic.Nack(had.tag, requeue=True))
    assert count(peer) == 2


def test_expired_messages_make_room_in_a_full_queue(world):
    peer = declare_refusing(world, 1, **{"x-message-ttl": 100})
    peer.publish(b"a", key="q")
    world.now_ms += 200
    peer.publish(b"b", key="q").publish(b"c", key="q")
    assert peer.call(Basic.Get(queue="q", no_ack=True)).body == b"c"


def test_a_deleted_queue_refuses_nothing_in_the_name_of_the_next(world):
    peer = declare_refusing(world, 0)
    peer.call(Queue.Delete(queue="q"))
    world.turn()
    peer.declare("q")
    peer.publish(b"a", key="q")
    assert count(peer) == 1


def test_a_queue_refuses_after_a_restart_as_before(world):
    peer = world.client()
    peer.declare("q", durable=True, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    world.close()
    world.open()
    peer = world.client()
    peer.publish(b"1", b"2", key="q", delivery_mode=2)
    assert count(peer) == 1


def declare_light(world, size, **arguments):
    peer = world.client()
    peer.declare("q", durable=True, arguments={"x-max-length-bytes": size, **arguments})
    return peer


def test_the_oldest_go_where_bodies_are_more_than_the_queue_holds(world):
    peer = declare_light(world, 10)
    peer.publish(b"aaaa", b"bbbb", b"cccc", key="q", headers={"long": "x" * 100})
    assert count(peer) == 2
    peer.publish(b"d" * 13, b"e", key="q")
    assert drain(peer) == [b"e"]
    assert world.amqp_counts.dropped == {"maxlen": 4}


def test_bytes_that_consumers_have_take_no_room_until_they_are_given_back(world):
    peer = declare_light(world, 10)
    peer.publish(b"aaaa", b"bbbb", key="q")
    had = [peer.call(Basic.Get(queue="q")) for _ in range(2)]
    peer.publish(b"cccc", b"dddd", key="q")
    assert count(peer) == 2
    peer.send(Basic.Nack(had[1].tag, multiple=True, requeue=True))
    assert drain(peer) == [b"cccc", b"dddd"]


@pytest.mark.parametrize("overflow", ["reject-publish", "reject-publish-dlx"])
def test_a_queue_refuses_a_body_that_has_no_room_and_takes_smaller_ones(world, overflow):
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    peer = declare_light(world, 10, **{"x-overflow": overflow}, **letters)
    peer.declare("dead")
    peer.call(Confirm.Select())
    peer.publish(b"aaaa", b"bbbb", b"cccc", b"d", b"ee", b"", b"f" * 30, b"g", key="q")
    assert outcomes(peer) == ([1, 2, 4, 6, 8], [3, 5, 7])
    assert drain(peer) == [b"aaaa", b"bbbb", b"d", b"", b"g"]
    world.turn()
    assert sorted(drain(peer, "dead")) == ([b"cccc", b"ee", b"f" * 30] if overflow.endswith("dlx") else [])


def test_a_consumer_with_room_takes_what_is_larger_than_the_queue_holds(world):
    peer = declare_light(world, 1, **{"x-overflow": "reject-publish"})
    peer.consume("q", no_ack=True)
    peer.publish(b"large", key="q")
    assert peer.bodies() == [b"large"]


@pytest.mark.here(reason="what is on its way has no size yet")
@pytest.mark.parametrize("is_killed", [False, True])
def test_bytes_are_known_again_after_a_restart(world, is_killed):
    peer = declare_light(world, 60_000, **{"x-overflow": "reject-publish"})
    for _ in range(10):
        peer.publish(*[b"12345"] * 1_200, key="q", delivery_mode=2)
    for _ in range(3):
        peer.call(Basic.Get(queue="q"))
    drained = [peer.call(Basic.Get(queue="q", no_ack=True)).body for _ in range(7)]
    assert drained == [b"12345"] * 7
    if is_killed:
        world.data_dir = shutil.copytree(world.data_dir, world.data_dir / "as-killed")
    world.close()
    world.open()
    peer = world.client()
    peer.call(Confirm.Select())
    peer.publish(b"x" * 36, b"x" * 35, b"y", key="q")
    assert outcomes(peer) == ([2], [1, 3])


def test_a_purged_queue_has_room_for_all_bytes_again(world):
    peer = declare_light(world, 5, **{"x-overflow": "reject-publish"})
    peer.publish(b"12345", b"6", key="q")
    assert peer.call(Queue.Purge(queue="q")).message_count == 1
    peer.publish(b"abcde", key="q")
    assert drain(peer) == [b"abcde"]
