from __future__ import annotations

from pamqp.commands import Basic, Queue

from gateway.amqp.channel import Channel as ServerChannel


def test_a_consumer_that_does_not_read_is_not_written_to(world):
    peer, other = world.client(), world.client()
    peer.declare("q")
    peer.consume("q").take()
    peer.stall()
    other.publish(*[b"x" * 1_000] * 100, key="q")
    assert len(peer.transport.sent) == 0
    other.consume("q")
    assert len(other.messages()) == 100
    other.publish(b"more", key="q")
    other.vanish()
    peer.drain()
    assert len(peer.messages()) == 101


def test_slots_are_used_again(world):
    peer = world.client()
    peer.declare("q")
    (channel,) = peer.handler.output.connection.channels.values()
    assert isinstance(channel, ServerChannel)
    for i in range(50):
        peer.publish(b"x", key="q").consume("q", f"c{i}").take()
        peer.send(Basic.Cancel(f"c{i}"), Basic.Ack(i + 1))
        peer.take()
    assert len(channel.slots) == 1


def test_the_end_of_a_queue_is_told_to_its_consumers(world):
    peer, other = world.client(), world.client()
    peer.declare("q")
    other.publish(b"1", key="q").consume("q", "mine").take()
    assert isinstance(peer.call(Queue.Delete(queue="q")), Queue.DeleteOk)
    (cancel,) = other.take()
    assert isinstance(cancel, Basic.Cancel)
    assert cancel.consumer_tag == "mine"
    other.send(Basic.Ack(1))
    assert other.take() == []
    assert other.declare("q").message_count == 0


def test_slots_of_messages_that_are_not_acknowledged_are_used_again_afterwards(world):
    peer = world.client()
    for name in ("q", "r"):
        peer.declare(name)
        peer.publish(*[b"x"] * 150, key=name)
    (channel,) = peer.handler.output.connection.channels.values()
    for _ in range(75):
        assert peer.call(Basic.Get(queue="q"))
        assert peer.call(Basic.Get(queue="r"))
    assert len(channel.slots) == len(channel.free_slots) == 150
    peer.send(Basic.Ack(0, multiple=True))
    for _ in range(75):
        assert peer.call(Basic.Get(queue="q"))
        assert peer.call(Basic.Get(queue="r"))
    assert len(channel.slots) == len(channel.free_slots) == 150
