from __future__ import annotations

from pamqp.commands import Basic, Queue

from gateway.amqp.output import OUTPUT_BYTES_MAX


def test_nothing_is_put_for_a_peer_whose_time_is_not_known(world):
    output = world.accept().handler.output
    output.put(b"x" * OUTPUT_BYTES_MAX)
    output.flush()
    assert not output.transport.sent


def test_what_is_put_goes_out_in_one_write_or_when_it_is_much(world):
    peer = world.client()
    sent = peer.transport.sent
    sent.clear()
    peer.handler.output.put(b"a" * 10)
    assert not sent
    peer.handler.output.put(b"b" * OUTPUT_BYTES_MAX)
    assert len(sent) == OUTPUT_BYTES_MAX + 10
    peer.handler.output.put(b"c")
    peer.handler.output.flush()
    assert sent.endswith(b"c")


def test_there_is_room_until_the_peer_stalls_or_ends(world):
    peer = world.client()
    output = peer.handler.output
    assert output.has_room()
    peer.stall()
    assert not output.has_room()
    peer.drain()
    assert output.has_room()
    output.is_ending = True
    assert not output.has_room()


def test_a_channel_takes_answers_while_it_is_the_one_of_its_number(world):
    peer = world.client()
    output = peer.handler.output
    (channel,) = output.connection.channels.values()
    assert output.is_open(channel)
    peer.vanish()
    assert not output.is_open(channel)


def test_a_channel_that_ended_holds_nothing_of_its_consumers(world):
    peer = world.client()
    (channel,) = peer.handler.output.connection.channels.values()
    peer.declare("q")
    peer.publish(b"x", key="q").consume("q").take()
    peer.vanish()
    assert not channel.consumers
    assert not channel.slots
    other = world.client()
    assert other.declare("q").message_count == 1
    assert isinstance(other.call(Queue.Delete(queue="q")), Queue.DeleteOk)
    assert not any(isinstance(each, Basic.Cancel) for each in peer.take())
