"""Publishers while the disk is low on room, as RabbitMQ does it."""

from __future__ import annotations

import pytest
from pamqp.commands import Basic, Connection

from tests.support import amqp
from tests.support.amqp_door import AmqpWorld

LOW, ENOUGH = 0, 1 << 40
TOLD = {"capabilities": {"connection.blocked": True}}


@pytest.fixture
def world(tmp_path, engine_maker):
    world = AmqpWorld(tmp_path, make_engine=engine_maker)
    world.client().declare("q", durable=True)
    yield world
    world.close()


def test_publisher_is_told_at_once_what_it_sent_is_stored_and_then_nothing_is_read(world):
    peer = world.client(properties=TOLD).confirms()
    peer.publish(b"before")
    peer.take()
    world.set_free(LOW)
    (blocked,) = peer.take()
    assert isinstance(blocked, Connection.Blocked)
    assert blocked.reason == "low on disk"
    assert peer.transport.is_held
    world.set_free(ENOUGH)
    (unblocked,) = peer.take()
    assert isinstance(unblocked, Connection.Unblocked)
    assert not peer.transport.is_held


def test_first_publish_at_the_mark_is_confirmed_and_then_the_connection_is_held(world):
    world.set_free(LOW)
    peer = world.client(properties=TOLD).confirms()
    assert not peer.transport.is_held
    peer.publish(b"one", b"two")
    answers = peer.take()
    (ack,) = [one for one in answers if isinstance(one, Basic.Ack)]
    assert (ack.delivery_tag, ack.multiple) == (2, True)
    assert [type(one) for one in answers if not isinstance(one, Basic.Ack)] == [Connection.Blocked]
    assert peer.transport.is_held
    assert world.amqp_counts.publishers_held == world.amqp_counts.holds == 1
    assert world.client().consume("q", no_ack=True).bodies() == [b"one", b"two"]


def test_client_that_does_not_want_to_know_is_held_without_a_word(world):
    peer = world.client()
    peer.publish(b"x")
    world.set_free(LOW)
    assert peer.transport.is_held
    world.set_free(ENOUGH)
    assert not peer.transport.is_held
    assert peer.take() == []


def test_consumers_and_connections_that_only_declare_go_on(world):
    publisher = world.client()
    publisher.publish(b"1", b"2", b"3")
    world.set_free(LOW)
    consumer = world.client(properties=TOLD)
    consumer.send(Basic.Qos(prefetch_count=1))
    consumer.take()
    consumer.consume("q")
    for number in (1, 2, 3):
        (message,) = consumer.messages()
        assert message.body == b"%d" % number
        consumer.send(Basic.Ack(message.tag))
    assert not consumer.transport.is_held
    assert consumer.declare("other", durable=True).queue == "other"


def test_deliveries_to_a_held_connection_go_on(world):
    peer = world.client(properties=TOLD)
    peer.consume("q", no_ack=True)
    peer.publish(b"mine")
    peer.take()
    world.set_free(LOW)
    assert peer.transport.is_held
    world.client().publish(b"another's")
    assert peer.bodies() == [b"another's"]


def test_who_was_held_is_held_again_only_when_it_publishes_again(world):
    peer = world.client(properties=TOLD)
    peer.publish(b"x")
    world.set_free(LOW)
    world.set_free(ENOUGH)
    peer.take()
    world.set_free(LOW)
    assert peer.take() == []
    peer.publish(b"y")
    assert [type(one) for one in peer.take()] == [Connection.Blocked]


def test_held_connection_is_sent_heartbeats_and_not_missed(world):
    peer = world.client(properties=TOLD, heartbeat=10)
    peer.publish(b"x")
    world.set_free(LOW)
    peer.take()
    for _ in range(20):
        world.now_ms += 5_000
        peer.handler.on_timer(world.now_ms)
    assert not peer.is_closed
    assert len(peer.take()) == 10  # one an interval
    world.set_free(ENOUGH)
    world.now_ms += 19_999
    peer.handler.on_timer(world.now_ms)
    assert not peer.is_closed
    world.now_ms += 1
    peer.handler.on_timer(world.now_ms)
    assert peer.is_closed


def test_held_connection_that_vanishes_is_counted_no_more(world):
    peer = world.client(properties=TOLD)
    peer.publish(b"x")
    world.set_free(LOW)
    peer.vanish()
    assert world.amqp_counts.publishers_held == 0
    world.set_free(ENOUGH)


def test_connection_that_ends_is_not_held_so_that_its_end_is_heard(world):
    world.set_free(LOW)
    peer = world.client(properties=TOLD)
    peer.write(amqp.publish(1, b"x"), amqp.method(9, Basic.Get(queue="q")))
    assert [type(one) for one in peer.take()] == [Connection.Close]
    assert not peer.transport.is_held
    peer.send(Connection.CloseOk(), channel=0)
    assert peer.is_closed
