"""What a full queue refuses becomes a dead letter where the queue is told so."""

from __future__ import annotations

import pytest
from pamqp.commands import Basic, Queue

TO_DEAD = {
    "x-max-length": 1,
    "x-overflow": "reject-publish-dlx",
    "x-dead-letter-exchange": "",
    "x-dead-letter-routing-key": "dead",
}


@pytest.fixture
def peer(world):
    peer = world.client()
    peer.declare("dead", durable=True)
    return peer


def count(peer, queue):
    return peer.declare(queue, passive=True).message_count


def test_what_is_refused_is_a_dead_letter_and_refused_to_the_publisher(world, peer):
    peer.declare("q", arguments=TO_DEAD)
    peer.confirms().publish(b"a", b"b", key="q")
    world.turn()
    assert [type(one) for one in peer.take()] == [Basic.Ack, Basic.Nack]
    assert count(peer, "q") == 1
    letter = peer.call(Basic.Get(queue="dead", no_ack=True))
    (death,) = letter.properties.headers["x-death"]
    assert (letter.body, death["reason"], death["queue"], death["count"]) == (b"b", "maxlen", "q", 1)
    assert world.amqp_counts.dropped == {}
    assert count(peer, "dead") == 0


def test_without_an_exchange_for_dead_letters_it_is_dropped(world, peer):
    peer.declare("q", arguments={"x-max-length": 1, "x-overflow": "reject-publish-dlx"})
    peer.publish(b"a", b"b", key="q")
    assert count(peer, "q") == 1
    assert world.amqp_counts.dropped == {"maxlen": 1}


def test_it_does_so_after_a_restart_and_when_it_is_made_anew(world, peer):
    peer.declare("q", durable=True, arguments=TO_DEAD)
    world.close()
    world.open()
    peer = world.client()
    peer.publish(b"a", b"b", key="q", delivery_mode=2)
    world.turn()
    assert (count(peer, "q"), count(peer, "dead")) == (1, 1)
    peer.call(Queue.Delete(queue="q"))
    world.turn()
    peer.declare("q", arguments=TO_DEAD)
    peer.publish(b"c", b"d", b"e", key="q")
    world.turn()
    assert (count(peer, "q"), count(peer, "dead")) == (1, 3)


def test_a_dead_letter_does_not_come_back_to_the_queue_that_refused_it(world, peer):
    peer.declare("q", arguments={**TO_DEAD, "x-dead-letter-routing-key": "q"})
    peer.publish(b"a", b"b", key="q")
    world.turn()
    assert count(peer, "q") == 1
    assert world.amqp_counts.dropped == {"unroutable": 1}


def test_nothing_is_kept_of_a_queue_that_went_with_the_process(world, peer):
    peer.declare("q", arguments=TO_DEAD)
    peer.publish(b"a", b"b", key="q")
    world.close()
    world.open()
    assert [name for name, _ in world.broker.pop.floors(b"amqp") if b"|r" in name] == []
