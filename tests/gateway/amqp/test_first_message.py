from __future__ import annotations

from pamqp.commands import Basic, Channel, Queue

from gateway.amqp.shared_queue import DEAD_COUNT_MAX


def test_a_get_passes_over_expired_messages_and_counts_what_is_left(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(b"old", b"older", key="q", expiration="100").publish(b"1", b"2", key="q")
    world.now_ms += 100
    first = peer.call(Basic.Get(queue="q"))
    assert (first.body, first.method.message_count) == (b"1", 1)


def test_a_get_finds_nothing_where_all_is_expired(world):
    peer = world.client()
    peer.declare("q", arguments={"x-message-ttl": 100})
    peer.publish(b"1", b"2", key="q")
    world.now_ms += 100
    assert isinstance(peer.call(Basic.Get(queue="q")), Basic.GetEmpty)
    assert peer.declare("q", passive=True).message_count == 0


def test_a_get_behind_very_many_dead_letters_is_answered_when_they_are_gone(world):
    peer = world.client()
    peer.declare("dead")
    peer.declare("q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    expired = 3 * DEAD_COUNT_MAX
    peer.publish(*[b"old"] * expired, key="q", expiration="100").publish(b"1", key="q")
    world.now_ms += 100
    peer.send(Basic.Get(queue="q"))
    assert peer.bodies() == [b"1"]
    assert peer.declare("dead", passive=True).message_count == expired


def test_the_same_get_again_sees_what_changed_meanwhile(world):
    peer, other = world.client(), world.client()
    peer.declare("q")
    peer.publish(b"1", b"2", key="q")
    assert peer.call(Basic.Get(queue="q")).body == b"1"
    other.call(Queue.Delete(queue="q"))
    closed = peer.call(Basic.Get(queue="q"))
    assert (closed.reply_code, closed.reply_text) == (404, "NOT_FOUND - no queue 'q' in vhost '/'")
    peer.send(Channel.CloseOk())
    peer.call(Channel.Open())
    other.declare("q")
    other.publish(b"3", key="q")
    assert peer.call(Basic.Get(queue="q")).body == b"3"


def test_gets_of_two_queues_are_answered_in_order_also_behind_many_dead_letters(world):
    peer = world.client()
    peer.declare("dead")
    peer.declare("q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    peer.declare("other")
    peer.publish(*[b"old"] * (3 * DEAD_COUNT_MAX), key="q", expiration="100").publish(b"1", key="q")
    peer.publish(b"2", key="other")
    world.now_ms += 100
    peer.send(Basic.Get(queue="q"), Basic.Get(queue="other"), Basic.Get(queue="other"))
    assert peer.bodies() == [b"1", b"2"]
