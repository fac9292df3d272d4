from __future__ import annotations

import errno
import os

import pytest
from pamqp.commands import Basic, Channel, Exchange, Queue

from core.settings import StoreSettings
from tests.support import amqp
from tests.support.amqp_door import AmqpWorld
from tests.support.full_engine import FullEngine


def test_exchanges_route_by_their_type(world):
    peer = world.client()
    for name, kind in (("d", "direct"), ("f", "fanout"), ("t", "topic")):
        peer.call(Exchange.Declare(exchange=name, exchange_type=kind))
        for queue, key in ((f"{name}1", "a.b"), (f"{name}2", "a.*"), (f"{name}3", "#")):
            peer.declare(queue)
            peer.call(Queue.Bind(queue=queue, exchange=name, routing_key=key))
    for name, expected in (("d", [1, 0, 0]), ("f", [1, 1, 1]), ("t", [1, 1, 1])):
        peer.publish(b"x", exchange=name, key="a.b")
        assert [peer.declare(f"{name}{i}", passive=True).message_count for i in (1, 2, 3)] == expected
    peer.publish(b"y", exchange="t", key="a.c")
    assert [peer.declare(f"t{i}", passive=True).message_count for i in (1, 2, 3)] == [1, 2, 2]
    assert isinstance(peer.call(Queue.Unbind(queue="t2", exchange="t", routing_key="a.*")), Queue.UnbindOk)
    peer.publish(b"y", exchange="t", key="a.c")
    assert [peer.declare(f"t{i}", passive=True).message_count for i in (1, 2, 3)] == [1, 2, 3]


def test_what_must_be_routed_and_cannot_be_is_returned(world):
    peer = world.client()
    peer.confirms().publish(b"lost", key="nowhere", mandatory=True, content_type="text/plain")
    returned, ack = peer.take()
    assert isinstance(returned.method, Basic.Return)
    assert (returned.method.reply_code, returned.method.reply_text) == (312, "NO_ROUTE")
    assert (returned.method.exchange, returned.method.routing_key) == ("", "nowhere")
    assert (returned.body, returned.properties.content_type) == (b"lost", "text/plain")
    assert ack.delivery_tag == 1
    peer.publish(b"lost", key="nowhere")
    assert isinstance(peer.take()[0], Basic.Ack)
    assert world.amqp_counts.dropped == {"returned": 1, "unroutable": 1}
    peer.publish(b"y", exchange="amq.topic", key="no.body", mandatory=True)
    assert isinstance(peer.take()[0].method, Basic.Return)


def test_what_finds_no_queue_comes_back_before_a_fault_that_came_with_it(world):
    peer = world.client()
    data = [amqp.publish(1, b"1", exchange="amq.fanout", mandatory=True), amqp.publish(1, b"2", exchange="none")]
    peer.write(b"".join(data))
    returned, close = peer.take()
    assert (returned.method.reply_code, returned.body) == (312, b"1")
    assert (close.reply_code, close.reply_text) == (404, "NOT_FOUND - no exchange 'none' in vhost '/'")


@pytest.mark.at_once(reason="a disk that is full")
def test_what_finds_no_queue_comes_back_also_where_the_disk_is_full(tmp_path):
    world = AmqpWorld(tmp_path, make_engine=FullEngine)
    peer = world.client()
    peer.declare("q")
    world.engine.left = 0
    peer.write(amqp.publish(1, b"1", key="none", mandatory=True) + amqp.publish(1, b"2", key="q"))
    returned, close = peer.take()
    assert (returned.method.reply_code, returned.body) == (312, b"1")
    assert close.reply_code == 506
    world.close()


def test_a_missing_exchange_costs_the_channel_and_nothing_that_came_before(world):
    peer = world.client()
    peer.declare("q")
    peer.confirms().write(
        amqp.publish(1, b"good", key="q"), amqp.publish(1, b"bad", exchange="none"), amqp.publish(1, b"late", key="q")
    )
    close, *rest = [one for one in peer.take() if not isinstance(one, Basic.Ack)]
    assert rest == []
    assert (close.reply_code, close.reply_text) == (404, "NOT_FOUND - no exchange 'none' in vhost '/'")
    assert (close.class_id, close.method_id) == (60, 40)
    peer.publish(b"ignored", key="q")
    peer.send(Channel.CloseOk())
    peer.call(Channel.Open())
    assert peer.declare("q", passive=True).message_count == 1


def test_immediate_is_not_implemented(world):
    peer = world.client()
    peer.publish(b"x", key="q", immediate=True)
    (close,) = peer.take()
    assert (close.reply_code, close.reply_text) == (540, "NOT_IMPLEMENTED - immediate=true")


def test_a_body_larger_than_allowed_costs_the_channel(tmp_path, engine_maker):
    world = AmqpWorld(tmp_path, body_bytes_max=1_000, make_engine=engine_maker)
    peer = world.client()
    peer.publish(b"x" * 1_001, key="q")
    (close,) = peer.take()
    assert close.reply_code == 406
    assert close.reply_text == "PRECONDITION_FAILED - message size 1001 is larger than configured max size 1000"
    peer.send(Channel.CloseOk())
    assert isinstance(peer.call(Channel.Open()), Channel.OpenOk)
    world.close()


def test_a_body_larger_than_the_store_takes_is_refused_by_its_header(tmp_path, engine_maker):
    world = AmqpWorld(
        tmp_path,
        store_settings=StoreSettings(segment_bytes=1 << 20, message_bytes_max=100_000),
        make_engine=engine_maker,
    )
    peer = world.client()
    peer.declare("q")
    whole = amqp.publish(1, b"x" * 100_001, key="q")
    peer.write(whole[: whole.index(b"\x03\x00\x01")])  # up to the body's first frame
    (close,) = peer.take()
    said = "PRECONDITION_FAILED - message size 100001 is larger than configured max size 100000"
    assert (close.reply_code, close.reply_text) == (406, said)
    peer.send(Channel.CloseOk())
    peer.call(Channel.Open())
    peer.publish(b"x" * 100_000, key="q")
    assert peer.declare("q", passive=True).message_count == 1
    world.close()


def test_origin_travels_to_other_doors(world):
    device = world.client_of_mqtt(b"dev-1", (b"#", 0))
    peer = world.client(properties={"connection_name": "billing"})
    peer.publish(b"x", exchange="amq.topic", key="a")
    assert device.bodies() == [b"x"]
    stored = world.read_parent()
    assert stored[-1][b"LMQ_PROTOCOL"] == b"amqp"
    assert stored[-1][b"LMQ_CLIENT"] == b"billing"
    assert stored[-1][b"LMQ_USER"] == b"guest"


def test_a_key_that_no_record_can_hold_is_refused(world):
    for key in ("a\x01b", "a\x02b", "a\x00b"):
        peer = world.client()
        peer.publish(b"x", exchange="amq.topic", key=key)
        (close,) = peer.take()
        assert (close.reply_code, close.reply_text[:50]) == (406, "PRECONDITION_FAILED - exchange or routing key has ")


@pytest.mark.parametrize("key", ["", "a.b", "a/b", "50%", "*", "#", "a.#", "ü.ö", "x" * 255, "%2F", "a..b"])
@pytest.mark.parametrize("exchange", ["all", "amq.topic"])
def test_any_other_key_comes_out_as_it_went_in(world, exchange, key):
    peer = world.client()
    peer.declare("q")
    peer.send(Exchange.Declare(exchange="all", exchange_type="fanout"))
    peer.send(Queue.Bind(queue="q", exchange=exchange, routing_key="#"))
    peer.take()
    peer.publish(b"x", exchange=exchange, key=key).consume("q")
    (message,) = peer.messages()
    assert (message.method.exchange, message.method.routing_key) == (exchange, key)


def test_a_publish_to_an_internal_exchange_is_refused(world):
    peer = world.client()
    peer.call(Exchange.Declare(exchange="inner", internal=True))
    peer.publish(b"x", exchange="inner")
    (close,) = peer.take()
    assert close.reply_text == "ACCESS_REFUSED - cannot publish to internal exchange 'inner' in vhost '/'"


def test_a_queue_that_gets_a_message_twice_by_two_bindings_gets_it_once(world):
    peer = world.client()
    peer.declare("q")
    peer.send(Exchange.Declare(exchange="t", exchange_type="topic"))
    for key in ("a.*", "#", "a.b"):
        peer.send(Queue.Bind(queue="q", exchange="t", routing_key=key))
        peer.send(Queue.Bind(queue="q", exchange="amq.topic", routing_key=key))
    peer.take()
    peer.publish(b"x", exchange="t", key="a.b").publish(b"y", exchange="amq.topic", key="a.b").consume("q")
    assert peer.bodies() == [b"x", b"y"]


def test_a_new_binding_counts_from_the_next_message_on(world):
    peer = world.client()
    peer.declare("one")
    peer.declare("two")
    peer.send(Queue.Bind(queue="one", exchange="amq.fanout"))
    peer.take()
    peer.publish(b"1", exchange="amq.fanout")
    peer.call(Queue.Bind(queue="two", exchange="amq.fanout"))
    peer.publish(b"2", exchange="amq.fanout")
    peer.call(Queue.Delete(queue="one"))
    peer.publish(b"3", exchange="amq.fanout", mandatory=True)
    peer.consume("two")
    assert peer.bodies() == [b"2", b"3"]


def test_a_message_that_the_store_has_no_room_for_is_refused(tmp_path, engine_maker, monkeypatch):
    world = AmqpWorld(tmp_path, store_settings=StoreSettings(segment_bytes=64 * 1024), make_engine=engine_maker)
    peer = world.client()
    peer.declare("q")
    peer.confirms()
    peer.publish(b"1", key="q")

    def no_room(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", no_room)
    peer.write(*[amqp.publish(1, b"x" * 40_000, key="q") for _ in range(3)])
    answers = [(type(one).__name__, one.delivery_tag) for one in peer.take()]
    assert answers == [("Ack", 1), ("Ack", 2), ("Nack", 3), ("Nack", 4)]
    other = world.client()
    other.publish(b"x" * 40_000, key="q")
    (close,) = other.take()
    assert close.reply_code == 506
    assert close.reply_text.startswith(f"RESOURCE_ERROR - no space left for {tmp_path}")
    monkeypatch.undo()
    assert world.client().declare("q", passive=True).message_count == 2
    world.close()


def test_nobody_says_what_the_gateway_tells_of_itself(world):
    peer = world.client()
    peer.declare("q")
    peer.call(Queue.Bind(queue="q", exchange="amq.topic", routing_key="#"))
    peer.call(Exchange.Declare(exchange="f", exchange_type="fanout"))
    peer.call(Exchange.Bind(destination="amq.topic", source="f", routing_key=""))
    peer.publish(b"fine", exchange="amq.topic", key="$SYS.other")
    peer.publish(b"roundabout", exchange="f", key="$SYS.broker.uptime")
    peer.publish(b"forged", exchange="amq.topic", key="$SYS.broker.uptime")
    (close,) = peer.take()
    reason = "write access to topic '$SYS.broker.uptime' in exchange 'amq.topic' in vhost '/' refused for user 'guest'"
    assert (close.reply_code, close.reply_text) == (403, f"ACCESS_REFUSED - {reason}")
    peer.send(Channel.CloseOk())
    peer.call(Channel.Open())
    assert peer.declare("q", passive=True).message_count == 1


def flow_of(world, name):
    """Return how many messages came to an exchange, and how many copies left it."""
    flow = world.amqp.vhost.exchanges.get(name).flow
    return flow.published_in, flow.published_out


def test_each_exchange_counts_what_came_and_the_queues_that_it_led_to(world):
    peer = world.client()
    peer.call(Exchange.Declare(exchange="f", exchange_type="fanout"))
    peer.call(Exchange.Declare(exchange="h", exchange_type="headers"))
    for queue in ("q1", "q2"):
        peer.declare(queue)
        for exchange in ("f", "h"):
            peer.call(Queue.Bind(queue=queue, exchange=exchange, arguments={"x-match": "all", "a": queue}))
    peer.write(
        *[amqp.publish(1, b"x", exchange="f") for _ in range(3)],
        amqp.publish(1, b"x", key="q1"),
        amqp.publish(1, b"x", key="nowhere"),
        amqp.publish(1, b"x", exchange="h", headers={"a": "q1"}),
        amqp.publish(1, b"x", exchange="h", headers={"a": "none"}),
    )
    assert flow_of(world, "f") == (3, 6)
    assert flow_of(world, "") == (2, 1)
    assert flow_of(world, "h") == (2, 1)
    whole = world.amqp.vhost.exchanges.flow
    assert (whole.published_in, whole.published_out) == (7, 8)


def test_the_exchange_of_topics_counts_what_devices_publish_too(world):
    device = world.client_of_mqtt(b"dev-1", (b"plant/#", 0))
    peer = world.client()
    peer.publish(b"x", exchange="amq.topic", key="plant.1")
    peer.publish(b"x", exchange="amq.topic", key="elsewhere")
    device.publish(b"plant/1", b"y")
    assert flow_of(world, "amq.topic") == (3, 2)
    assert world.amqp.vhost.exchanges.flow.published_in == 3


def test_messages_for_headers_before_a_turn_that_is_over_go_where_they_belong(world):
    peer = world.client()
    peer.confirms().call(Exchange.Declare(exchange="h", exchange_type="headers"))
    names = [f"q{number}" for number in range(9)]
    for name in ("h1", *names):
        peer.declare(name)
    peer.call(Queue.Bind(queue="h1", exchange="h", arguments={"x-match": "all", "a": 1}))
    peer.transport.share, peer.transport.steps = 2, 0
    sends = [amqp.publish(1, b"x", key=name) for name in names]
    peer.write(amqp.publish(1, b"h", exchange="h", headers={"a": 1}), *sends)
    peer.transport.share = None
    world.turn()
    assert peer.take()[-1].delivery_tag == 1 + len(names)
    assert [peer.declare(name, passive=True).message_count for name in ("h1", *names)] == [1] * 10
