"""Queues with priorities."""

from __future__ import annotations

import pytest
from pamqp.commands import Basic, Confirm, Queue

from core.errors import QueueLimitError
from tests.support.amqp_queues import count, drain, outcomes


def declare_levels(world, highest=5, **arguments):
    peer = world.client()
    peer.declare("q", durable=True, arguments={"x-max-priority": highest, **arguments})
    return peer


def publish_levels(peer, *pairs):
    for priority, text in pairs:
        peer.publish(text, key="q", **({} if priority is None else {"priority": priority}))


MIXED = (1, b"a"), (5, b"b"), (0, b"c"), (9, b"d"), (None, b"e"), (1, b"f")


def test_the_highest_priority_goes_first_and_each_in_its_order(world):
    peer = declare_levels(world)
    publish_levels(peer, *MIXED)
    assert count(peer) == 6
    assert drain(peer) == [b"b", b"d", b"a", b"f", b"c", b"e"]
    assert count(peer) == 0


def test_what_is_given_back_has_its_place_in_its_level(world):
    peer = declare_levels(world)
    publish_levels(peer, *MIXED)
    peer.call(Basic.Qos(prefetch_count=4))
    first = peer.consume("q").messages()
    assert [one.body for one in first] == [b"b", b"d", b"a", b"f"]
    peer.send(Basic.Nack(first[1].tag, requeue=True), Basic.Nack(first[2].tag, requeue=True))
    again = peer.messages()
    assert [(one.body, one.method.redelivered) for one in again] == [(b"d", True), (b"a", True)]
    peer.send(Basic.Ack(0, multiple=True))
    assert peer.bodies() == [b"c", b"e"]


def test_levels_outlive_the_process_and_begin_empty_in_a_new_queue(world):
    peer = declare_levels(world)
    publish_levels(peer, *MIXED)
    peer.call(Basic.Get(queue="q"))
    world.close()
    world.open()
    peer = world.client()
    assert count(peer) == 6
    peer.call(Basic.Get(queue="q", no_ack=True))
    assert drain(peer) == [b"d", b"a", b"f", b"c", b"e"]
    publish_levels(peer, *MIXED)
    assert peer.call(Queue.Delete(queue="q")).message_count == 6
    world.turn()
    peer = declare_levels(world)
    assert (count(peer), drain(peer)) == (0, [])
    publish_levels(peer, (1, b"g"))
    assert drain(peer) == [b"g"]


def test_levels_are_purged_together_and_made_on_first_use(world):
    peer = declare_levels(world, 255)
    assert world.store.queue_count() == 1
    publish_levels(peer, *MIXED, (255, b"top"))
    assert world.store.queue_count() == 1 + 4 + 1  # the parent topic's is one
    assert peer.call(Queue.Purge(queue="q")).message_count == 7
    assert drain(peer) == []


def test_a_queue_with_priorities_drops_the_first_where_it_is_too_long(world):
    peer = declare_levels(world, **{"x-max-length": 3})
    publish_levels(peer, *MIXED[:5])
    assert drain(peer) == [b"a", b"c", b"e"]  # as RabbitMQ does: the first are those of the highest priority


@pytest.mark.here(reason="what is on its way has no size yet")
def test_a_queue_with_priorities_holds_so_many_bytes_over_all_levels(world):
    peer = declare_levels(world, **{"x-max-length-bytes": 10, "x-overflow": "reject-publish"})
    peer.call(Confirm.Select())
    publish_levels(peer, (1, b"aaaa"), (5, b"bbbb"), (2, b"cccc"), (0, b"dd"))
    assert outcomes(peer) == ([1, 2, 4], [3])
    assert drain(peer) == [b"bbbb", b"aaaa", b"dd"]


def test_dead_letters_of_all_levels_go_on_and_keep_their_priority(world):
    peer = declare_levels(world, **{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    peer.declare("dead", arguments={"x-max-priority": 10})
    publish_levels(peer, *MIXED)
    for one in peer.consume("q").messages():
        peer.send(Basic.Reject(one.tag, requeue=False))
    world.turn()
    assert drain(peer, "dead") == [b"d", b"b", b"a", b"f", b"c", b"e"]
    assert count(peer) == 0


def test_messages_of_a_level_outlive_their_time_there(world):
    peer = declare_levels(world, **{"x-message-ttl": 100})
    publish_levels(peer, (3, b"old"), (0, b"old too"))
    world.now_ms += 200
    publish_levels(peer, (3, b"new"))
    assert drain(peer) == [b"new"]


def test_a_message_with_no_time_to_live_reaches_a_waiting_consumer_from_any_level(world):
    peer = declare_levels(world, **{"x-message-ttl": 0})
    peer.consume("q", no_ack=True)
    publish_levels(peer, (3, b"at once"))
    assert peer.bodies() == [b"at once"]


def test_devices_and_fan_out_reach_the_levels_too(world):
    peer = declare_levels(world)
    peer.declare("plain")
    for queue in ("q", "plain"):
        peer.call(Queue.Bind(queue=queue, exchange="amq.topic", routing_key="a.*"))
    peer.publish(b"low", exchange="amq.topic", key="a.b")
    peer.publish(b"high", exchange="amq.topic", key="a.b", priority=4)
    world.client_of_mqtt(b"d").publish(b"a/b", b"device")
    assert drain(peer) == [b"high", b"low", b"device"]
    assert drain(peer, "plain") == [b"low", b"high", b"device"]


def test_a_level_that_has_no_room_for_its_light_queue_shares_the_lowest(world, monkeypatch):
    peer = declare_levels(world)
    publish_levels(peer, (1, b"a"))
    monkeypatch.setattr(world.broker.detours.levels.asked.popitem()[1].__class__, "use_level", refuse_level)
    world.amqp.vhost.find("q").watch()
    publish_levels(peer, (4, b"b"))
    assert drain(peer) == [b"a", b"b"]


def refuse_level(_queue, _level):
    raise QueueLimitError(7)
