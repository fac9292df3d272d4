from __future__ import annotations

import math
import sqlite3
import zlib
from contextlib import closing

import pytest
from pamqp.commands import Exchange, Queue

from gateway.amqp.host_parts import TABLE
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


def of_queue(arguments, source="x"):
    return {"queue": "q", "exchange": source, "routing_key": "k", "arguments": arguments}


def of_exchange(arguments, source="x"):
    return {"destination": "y", "source": source, "routing_key": "k", "arguments": arguments}


@pytest.mark.parametrize("source", ["x", "amq.topic"])
@pytest.mark.parametrize(
    ("bind", "unbind", "said"),
    [(Queue.Bind, Queue.Unbind, of_queue), (Exchange.Bind, Exchange.Unbind, of_exchange)],
    ids=["queue", "exchange"],
)
def test_bindings_by_the_same_key_and_other_arguments_are_told_apart(tmp_path, bind, unbind, said, source):
    world = AmqpWorld(tmp_path)
    peer, device = world.client(), world.client_of_mqtt(b"d")
    peer.declare("q", durable=True)
    peer.call(Exchange.Declare(exchange="x", exchange_type="direct", durable=True))
    peer.call(Exchange.Declare(exchange="y", exchange_type="fanout", durable=True))
    if said is of_exchange:
        peer.call(Queue.Bind(queue="q", exchange="y"))
    every = [{}, {"a": 1}, {"a": 2}, {"b": [1, {"c": None}]}]
    for arguments in (*every, {"a": 1}):
        peer.call(bind(**said(arguments, source)))
    for is_new in (False, True):
        if is_new:
            world.close()
            world.open()
            peer, device = world.client(), world.client_of_mqtt(b"d")
        assert len(world.amqp.vhost.exchanges.get(source).bindings) == len(every)
    ready = 0
    for arguments in ({"a": 3}, *every):
        peer.publish(b"x", exchange=source, key="k")
        device.publish(b"k", b"y", qos=1)
        ready += 2 if source == "amq.topic" else 1
        assert peer.call(Queue.Declare(queue="q", passive=True)).message_count == ready
        peer.call(unbind(**said(arguments, source)))
    peer.publish(b"x", exchange=source, key="k")
    device.publish(b"k", b"y", qos=1)
    assert peer.call(Queue.Declare(queue="q", passive=True)).message_count == ready
    world.close()
    world.open()
    assert not world.amqp.vhost.exchanges.get(source).bindings
    world.close()


def test_an_exchange_goes_with_the_last_of_its_bindings_by_one_key(world):
    peer = world.client()
    peer.declare("q")
    peer.call(Exchange.Declare(exchange="x", exchange_type="topic", auto_delete=True))
    for arguments in ({}, {"a": 1}):
        peer.call(Queue.Bind(**of_queue(arguments)))
    peer.call(Queue.Unbind(**of_queue({})))
    assert world.amqp.vhost.exchanges.find("x") is not None
    peer.call(Queue.Unbind(**of_queue({"a": 1})))
    assert world.amqp.vhost.exchanges.find("x") is None


def test_rows_of_a_gateway_that_knew_no_such_arguments_are_read(tmp_path):
    world = AmqpWorld(tmp_path)
    peer = world.client()
    peer.declare("q", durable=True)
    peer.call(Queue.Bind(queue="q", exchange="amq.direct", routing_key="k"))
    peer.call(Queue.Bind(queue="q", exchange="amq.headers", arguments={"x-match": "any", "a": 1}))
    world.close()
    (file,) = tmp_path.rglob("definitions.db")
    with closing(sqlite3.connect(file)) as database, database:
        for key, value in database.execute(f"SELECT key, value FROM {TABLE}").fetchall():
            crc = zlib.crc32((2).to_bytes(4, "big"), zlib.crc32(value, zlib.crc32(key)))
            database.execute(f"UPDATE {TABLE} SET version = 2, crc = ? WHERE key = ?", (crc, key))
    world.open()
    peer = world.client()
    peer.publish(b"x", exchange="amq.direct", key="k")
    peer.publish(b"x", exchange="amq.headers", headers={"a": 1})
    assert peer.call(Queue.Declare(queue="q", passive=True)).message_count == 2
    world.close()


def test_a_binding_by_what_is_not_a_number_is_one_and_is_taken_back_also_after_a_start(tmp_path):
    world = AmqpWorld(tmp_path)
    bindings = {"queue": "q", "exchange": "amq.headers", "arguments": {"a": math.nan, "x-match": "all"}}
    for is_new in (False, True):
        peer = world.client()
        peer.declare("q", durable=True)
        for _ in range(2):
            assert isinstance(peer.call(Queue.Bind(**bindings)), Queue.BindOk)
        if is_new:
            world.close()
            world.open()
            peer = world.client()
        assert len(world.amqp.vhost.exchanges.get("amq.headers").bindings) == 1
        assert isinstance(peer.call(Queue.Unbind(**bindings)), Queue.UnbindOk)
        assert len(world.amqp.vhost.exchanges.get("amq.headers").bindings) == 0
    world.close()
    world.open()
    assert len(world.amqp.vhost.exchanges.get("amq.headers").bindings) == 0
    world.close()
