"""Reads that find nothing there yet, because the messages are on their way from where they are kept."""

from __future__ import annotations

from functools import partial

import pytest
from pamqp.commands import Basic, Connection, Exchange, Queue

from core.errors import StoreClosedError
from core.store.embedded import EmbeddedEngine
from tests.support import amqp
from tests.support.amqp_door import AmqpWorld
from tests.support.late_engine import make_late


@pytest.fixture
def world(tmp_path):
    world = AmqpWorld(tmp_path, make_engine=partial(make_late, away=1.0))
    yield world
    world.close()


def test_a_get_is_answered_when_its_message_is_here(world):
    client = world.client()
    client.declare("q")
    client.publish(b"1", b"2")
    for expected in (b"1", b"2"):
        client.send(Basic.Get(queue="q"))
        assert client.bodies() == [expected]
    assert isinstance(client.call(Basic.Get(queue="q")), Basic.GetEmpty)


def test_a_consumer_gets_all_messages_each_once_also_those_given_back(world):
    client = world.client()
    client.declare("q")
    client.publish(*[b"%d" % number for number in range(50)])
    client.consume("q")
    first = client.bodies()
    assert first == [b"%d" % number for number in range(50)]
    client.send(Basic.Recover(requeue=True))
    assert sorted(client.bodies()) == sorted(first)


def test_expired_messages_that_are_on_their_way_go_when_they_are_here(world):
    client = world.client()
    client.declare("q", durable=True)
    client.publish(b"1", b"2", key="q", expiration="100").publish(b"3", key="q")
    world.now_ms += 100
    world.amqp.tend(world.now_ms)
    world.turn()
    assert [offset for _, offset in world.amqp.vhosts.floors()] == [2]
    assert client.declare("q", passive=True).message_count == 1


def test_a_get_that_waited_for_the_disk_is_told_that_there_is_no_queue(tmp_path):
    world = AmqpWorld(tmp_path, is_sync=True)
    client = world.client()
    methods = Queue.Declare(queue="q", durable=True), Basic.Get(queue="none"), Basic.Get(queue="q")
    client.begin(*[amqp.method(1, one) for one in methods])
    world.turn()
    declared, close = client.take()
    assert isinstance(declared, Queue.DeclareOk)
    assert (close.reply_code, close.reply_text) == (404, "NOT_FOUND - no queue 'none' in vhost '/'")
    world.close()


@pytest.mark.at_once(reason="two pieces of input before the disk answers")
def test_a_get_that_waited_for_the_disk_is_answered_before_what_came_after_it(tmp_path):
    world = AmqpWorld(tmp_path, is_sync=True)
    client = world.client()
    client.declare("q")
    client.begin(amqp.method(1, Queue.Declare(queue="a", durable=True)), amqp.method(1, Basic.Get(queue="q")))
    client.begin(amqp.method(1, Queue.Declare(queue="b", durable=True)))
    world.turn()
    assert [type(answer) for answer in client.take()] == [Queue.DeclareOk, Basic.GetEmpty, Queue.DeclareOk]
    world.close()


class UnreadableEngine(EmbeddedEngine):
    """Reads nothing, once it is told so."""

    is_gone = False

    def read(self, queue_ref, offset, into, count_max, bytes_max):
        if self.is_gone:
            raise StoreClosedError
        return super().read(queue_ref, offset, into, count_max, bytes_max)


@pytest.mark.at_once(reason="an engine that reads nothing")
def test_a_get_that_waited_for_the_disk_is_told_that_nothing_can_be_read(tmp_path):
    world = AmqpWorld(tmp_path, is_sync=True, make_engine=UnreadableEngine)
    client = world.client()
    client.declare("q")
    client.publish(b"1")
    client.begin(amqp.method(1, Queue.Declare(queue="a", durable=True)), amqp.method(1, Basic.Get(queue="q")))
    world.engine.is_gone = True
    world.turn()
    declared, close = client.take()
    assert isinstance(declared, Queue.DeclareOk)
    assert close.reply_code == 541
    world.close()


@pytest.mark.parametrize("name", ["a", "q"])
def test_a_get_that_waits_for_the_disk_is_done_before_what_follows_it(tmp_path, name, engine_maker):
    world = AmqpWorld(tmp_path, is_sync=True, make_engine=engine_maker)
    client = world.client()
    client.declare("q")
    client.publish(b"1", key="q")
    methods = Queue.Declare(queue="a", durable=True), Basic.Get(queue=name), Queue.Delete(queue=name)
    client.begin(*[amqp.method(1, one) for one in methods])
    world.turn()
    declared, got, deleted = client.take()
    assert isinstance(declared, Queue.DeclareOk)
    assert isinstance(got, Basic.GetEmpty) if name == "a" else got.body == b"1"
    assert isinstance(deleted, Queue.DeleteOk)
    world.close()


def test_a_get_that_waits_for_the_disk_takes_no_turn_meanwhile(tmp_path):
    world = AmqpWorld(tmp_path, is_sync=True)
    client = world.client(heartbeat=10)
    client.declare("q")
    world.flushes_by_itself = False
    client.begin(amqp.method(1, Exchange.Declare(exchange="x", durable=True)), amqp.method(1, Basic.Get(queue="q")))
    world.step()
    assert client not in world.waiting
    assert not client.transport.wants_turn
    assert not client.transport.is_reading
    world.now_ms += 60_000  # its heartbeats are not read
    client.handler.on_timer(world.now_ms)
    assert not client.is_closed
    world.flushes_by_itself = True
    world.turn()
    assert client.transport.is_reading
    assert [type(answer) for answer in client.take()] == [Exchange.DeclareOk, Basic.GetEmpty]
    world.close()


def test_a_get_that_waits_for_the_disk_is_answered_though_the_client_sends_no_more(tmp_path):
    world = AmqpWorld(tmp_path, is_sync=True)
    client = world.client()
    client.declare("q")
    world.flushes_by_itself = False
    client.begin(amqp.method(1, Exchange.Declare(exchange="x", durable=True)), amqp.method(1, Basic.Get(queue="q")))
    world.step()
    client.handler.on_eof(world.now_ms)
    world.flushes_by_itself = True
    world.turn()
    assert [type(answer) for answer in client.take()] == [Exchange.DeclareOk, Basic.GetEmpty]
    assert client.is_closed
    world.close()


def test_a_get_behind_what_the_disk_did_not_take_is_not_answered(tmp_path):
    world = AmqpWorld(tmp_path, is_sync=True)
    client = world.client()
    client.declare("q")
    client.publish(b"1", key="q")
    world.flushes_by_itself = False
    client.begin(amqp.method(1, Exchange.Declare(exchange="x", durable=True)), amqp.method(1, Basic.Get(queue="q")))
    world.engine.durability.begin_flush()
    world.engine.durability.end_flush(StoreClosedError())
    world.turn()
    assert [type(answer) for answer in client.take()] == [Connection.Close]
    assert client.transport.is_reading
    world.close()
