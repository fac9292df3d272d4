from __future__ import annotations

import pytest
from pamqp.commands import Exchange, Queue

from tests.support.amqp_door import AmqpWorld


def test_a_binding_without_a_name_is_one_of_the_queue_declared_last_on_the_channel(world):
    peer = world.client()
    peer.declare("first")
    peer.declare("q")
    assert isinstance(peer.call(Queue.Bind(queue="", exchange="amq.direct", routing_key="k")), Queue.BindOk)
    peer.publish(b"1", exchange="amq.direct", key="k")
    peer.take()
    assert [peer.declare(name).message_count for name in ("first", "q")] == [0, 1]
    other = world.client()
    closed = other.call(Queue.Bind(queue="", exchange="amq.direct", routing_key="k"))
    assert (closed.reply_code, closed.reply_text) == (404, "NOT_FOUND - no previously declared queue")


@pytest.mark.parametrize("gone", [Exchange.Delete(exchange="x"), Queue.Delete(queue="q")], ids=lambda one: one.name)
def test_a_binding_of_what_is_deleted_is_told_to_be_gone_when_that_is_on_the_disk(tmp_path, gone):
    world = AmqpWorld(tmp_path, is_sync=True)
    peer, other = world.client(), world.client()
    peer.declare("q", durable=True)
    peer.call(Exchange.Declare(exchange="x", exchange_type="topic", durable=True))
    peer.call(Queue.Bind(queue="q", exchange="x", routing_key="k"))
    world.flushes_by_itself = False
    peer.send(gone)
    other.send(Queue.Unbind(queue="q", exchange="x", routing_key="k"))
    assert other.take() == []
    world.flushes_by_itself = True
    world.turn()
    assert [one.name for one in other.take()] == ["Queue.UnbindOk"]
    world.close()


@pytest.mark.parametrize(
    "again",
    [Exchange.Delete(exchange="x"), Queue.Unbind(queue="q", exchange="x", routing_key="k")],
    ids=lambda one: one.name,
)
def test_an_exchange_that_went_with_its_last_binding_is_told_to_be_gone_when_that_is_on_the_disk(tmp_path, again):
    world = AmqpWorld(tmp_path, is_sync=True)
    peer, other = world.client(), world.client()
    peer.declare("q", durable=True)
    peer.call(Exchange.Declare(exchange="x", exchange_type="direct", durable=True, auto_delete=True))
    peer.call(Queue.Bind(queue="q", exchange="x", routing_key="k"))
    world.flushes_by_itself = False
    peer.send(Queue.Unbind(queue="q", exchange="x", routing_key="k"))
    other.send(again)
    assert peer.take() == other.take() == []
    world.flushes_by_itself = True
    world.turn()
    assert [one.name for one in (*peer.take(), *other.take())] == ["Queue.UnbindOk", f"{again.name}Ok"]
    world.close()


def test_bindings_by_the_same_headers_and_other_keys_are_told_apart(tmp_path):
    world = AmqpWorld(tmp_path)
    peer = world.client()
    peer.declare("q", durable=True)
    bindings = {"queue": "q", "exchange": "amq.headers", "arguments": {"a": 1}}
    for key in ("one", "two", "three"):
        assert isinstance(peer.call(Queue.Bind(routing_key=key, **bindings)), Queue.BindOk)
    world.close()
    world.open()
    peer = world.client()
    for key, ready in (("one", 1), ("two", 2), ("three", 2)):
        assert isinstance(peer.call(Queue.Unbind(routing_key=key, **bindings)), Queue.UnbindOk)
        peer.publish(b"x", exchange="amq.headers", headers={"a": 1})
        assert peer.call(Queue.Declare(queue="q", passive=True)).message_count == ready
    for key in ("one", "two"):
        peer.call(Queue.Bind(routing_key=key, **bindings))
    assert isinstance(peer.call(Queue.Delete(queue="q")), Queue.DeleteOk)
    world.close()
