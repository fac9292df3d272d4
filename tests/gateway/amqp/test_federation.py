from __future__ import annotations

import json

import pytest
from pamqp.commands import Basic, Exchange, Queue

from gateway.amqp.definition_rows import exchange_row, load_exchange
from gateway.amqp.exchanges import ExchangeTable
from gateway.amqp.tracing import say_why_not, trace_way
from gateway.amqp.traits import Traits
from tests.support import amqp

UPSTREAM = "federation:orders-there.B"
HELD = "federation:orders-there"
SAID = {"x-max-hops": 2, "x-downstream-name": "there", "x-downstream-vhost": "/", "x-internal-purpose": "federation"}


def declare(peer, arguments=SAID, channel=1, **more):
    method = Exchange.Declare(
        exchange=UPSTREAM,
        exchange_type="x-federation-upstream",
        durable=True,
        auto_delete=True,
        internal=True,
        arguments=arguments,
    )
    for name, value in more.items():
        setattr(method, name, value)
    return peer.call(method, channel)


def federate(peer, exchange):
    """Declare what RabbitMQ declares at the start of a link for an exchange."""
    peer.declare(HELD, durable=True, arguments={"x-internal-purpose": "federation"})
    assert isinstance(declare(peer), Exchange.DeclareOk)
    assert isinstance(peer.call(Queue.Bind(queue=HELD, exchange=UPSTREAM)), Queue.BindOk)
    bind = Exchange.Bind(destination=UPSTREAM, source=exchange, routing_key="a.*", arguments={"x-bound-from": []})
    assert isinstance(peer.call(bind), Exchange.BindOk)


def passed(*servers):
    return {"x-received-from": [{"cluster-name": name, "vhost": vhost, "uri": "amqp://x"} for name, vhost in servers]}


GOES = [
    ({}, True),
    ({"x-received-from": "text"}, True),
    (passed(("elsewhere", "/")), True),
    (passed(("there", "other")), True),
    ({"x-received-from": [{"uri": "amqp://x"}]}, True),
    ({"x-received-from": [{"cluster-name": 1, "vhost": "/"}]}, True),
    (passed(("there", "/")), False),
    (passed(("one", "/"), ("two", "/")), False),
    ({"x-received-from": [1, 2]}, False),
]


@pytest.mark.parametrize("exchange", ["orders", "amq.topic"])
def test_a_rabbitmq_that_federates_an_exchange_gets_what_it_has_not_seen(world, exchange):
    peer = world.client()
    peer.call(Exchange.Declare(exchange="orders", exchange_type="topic", durable=True))
    federate(peer, exchange)
    for number, (headers, _) in enumerate(GOES):
        peer.publish(str(number).encode(), exchange=exchange, key="a.b", headers=headers)
    peer.publish(b"elsewhere", exchange=exchange, key="b.b")
    peer.consume(HELD, no_ack=True)
    assert peer.bodies() == [str(number).encode() for number, (_, goes) in enumerate(GOES) if goes]


def test_the_exchange_of_a_federation_is_there_after_a_restart(world):
    peer = world.client()
    peer.call(Exchange.Declare(exchange="orders", exchange_type="topic", durable=True))
    federate(peer, "orders")
    world.close()
    world.open()
    peer = world.client(channels=2)
    assert isinstance(declare(peer), Exchange.DeclareOk)
    peer.publish(b"seen", exchange="orders", key="a.b", headers=passed(("there", "/")))
    peer.publish(b"new", exchange="orders", key="a.b")
    peer.consume(HELD, no_ack=True)
    assert peer.bodies() == [b"new"]
    close = declare(peer, {**SAID, "x-max-hops": 3}, channel=2)
    assert close.reply_code == 406
    assert "inequivalent arg 'x-max-hops'" in close.reply_text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "Argument x-max-hops missing"),
        ({"x-max-hops": "2"}, "Argument x-max-hops must be of type long"),
    ],
)
def test_how_far_messages_may_go_has_to_be_said(world, arguments, text):
    close = declare(world.client(), arguments)
    assert (close.reply_code, close.reply_text) == (406, f"PRECONDITION_FAILED - {text}")


def test_nobody_publishes_to_it(world):
    peer = world.client()
    declare(peer)
    peer.publish(b"m", exchange=UPSTREAM)
    assert peer.take()[0].reply_code == 403


def test_a_mandatory_message_that_its_downstream_has_is_returned(world):
    peer = world.client()
    peer.call(Exchange.Declare(exchange="orders", exchange_type="topic", durable=True))
    federate(peer, "orders")
    peer.publish(b"m", exchange="orders", key="a.b", mandatory=True, headers=passed(("there", "/")))
    assert isinstance(peer.take()[0].method, Basic.Return)


def test_why_a_message_goes_nowhere_is_told():
    row = {
        "kind": "x-federation-upstream",
        "auto_delete": True,
        "internal": True,
        "downstream": [1, "there", "/"],
    }
    exchange = load_exchange("x", row)
    assert json.loads(exchange_row(exchange)) == row
    table = ExchangeTable("/", lambda *_: None, lambda *_: None, lambda: None)
    table.add(exchange)
    table.bind(exchange, ("q", "", None))
    assert trace_way(table, exchange, "a").queues == {"q": ["x"]}
    block = amqp.block(headers=passed(("one", "/")))
    traits = Traits("a", block)
    trace = trace_way(table, exchange, "a", traits)
    assert trace.queues == {}
    assert "passed too many servers" in say_why_not(table, trace, "q", "a", traits)[0]
