"""What is said to an AMQP server of exchanges and bindings: a part of `amqp_exchanges.py`."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from pamqp.commands import Exchange, Queue

from tests.conformance.amqp_steps import (
    BIND,
    CONSUME,
    DECLARE,
    MESSAGE,
    UNBIND,
    other,
)
from tests.support import amqp

DIRECT = Exchange.Declare(exchange="x", exchange_type="direct")
HEADERS = Exchange.Declare(exchange="x", exchange_type="headers")
LINK = Exchange.Bind(destination="amq.fanout", source="x", routing_key="k")
UNLINK = Exchange.Unbind(destination="amq.fanout", source="x", routing_key="k")
FORWARD = amqp.publish(1, b"1", exchange="x", key="k", mandatory=True)

BINDINGS = {
    # Bindings
    "bind no queue": [Queue.Bind(queue="none", exchange="amq.direct", routing_key="k")],
    "bind to no exchange": [DECLARE, Queue.Bind(queue="q", exchange="none", routing_key="k")],
    "bind neither": [Queue.Bind(queue="none", exchange="nox", routing_key="k")],
    "bind to the default exchange": [DECLARE, Queue.Bind(queue="q", exchange="", routing_key="k")],
    "bind no queue to the default exchange": [Queue.Bind(queue="none", exchange="", routing_key="k")],
    "bind without a name": [Queue.Bind(exchange="amq.direct")],
    "bind twice": [DECLARE, BIND, BIND],
    "bind the last by its name": [
        DECLARE,
        Queue.Bind(exchange="amq.direct"),
        amqp.publish(1, b"1", exchange="amq.direct", key="q"),
        Queue.Declare(queue="q", passive=True),
    ],
    "bind with an empty key": [
        DECLARE,
        Queue.Bind(queue="q", exchange="amq.direct"),
        amqp.publish(1, b"1", exchange="amq.direct", key=""),
        Queue.Declare(queue="q", passive=True),
    ],
    "unbind": [DECLARE, BIND, UNBIND, UNBIND],
    "unbind what is not bound": [DECLARE, UNBIND],
    "unbind no queue": [Queue.Unbind(queue="none", exchange="amq.direct", routing_key="k")],
    "unbind from no exchange": [DECLARE, Queue.Unbind(queue="q", exchange="none", routing_key="k")],
    "unbind neither": [Queue.Unbind(queue="none", exchange="nox", routing_key="k")],
    "unbind from the default exchange": [DECLARE, Queue.Unbind(queue="q", exchange="", routing_key="q")],
    "unbind no queue from the default exchange": [Queue.Unbind(queue="none", exchange="", routing_key="q")],
    "unbind without a name": [Queue.Unbind(exchange="amq.direct")],
    # Exchanges
    "passive declare of the default exchange": [Exchange.Declare(exchange="", passive=True)],
    "declare of the default exchange": [Exchange.Declare(exchange="")],
    "passive declare of no exchange": [Exchange.Declare(exchange="none", passive=True)],
    "declare of a reserved exchange": [Exchange.Declare(exchange="amq.mine")],
    "passive declare of a reserved exchange": [Exchange.Declare(exchange="amq.mine", passive=True)],
    "declare of a system exchange": [Exchange.Declare(exchange="amq.topic", exchange_type="topic", durable=True)],
    "declare of a system exchange, other type": [
        Exchange.Declare(exchange="amq.topic", exchange_type="direct", durable=True)
    ],
    "declare of an unknown type": [Exchange.Declare(exchange="x", exchange_type="x-odd")],
    "declare again, durable exchange": [
        DIRECT, Exchange.Declare(exchange="x", exchange_type="direct", durable=True)
    ],
    "declare again, exchange that deletes itself": [
        DIRECT, Exchange.Declare(exchange="x", exchange_type="direct", auto_delete=True)
    ],
    "declare again, internal exchange": [
        DIRECT, Exchange.Declare(exchange="x", exchange_type="direct", internal=True)
    ],
    "delete of the default exchange": [Exchange.Delete(exchange="")],
    "delete of a system exchange": [Exchange.Delete(exchange="amq.topic")],
    "delete of no reserved exchange": [Exchange.Delete(exchange="amq.none")],
    "delete of no exchange": [Exchange.Delete(exchange="none")],
    "delete of no exchange if unused": [Exchange.Delete(exchange="none", if_unused=True)],
    "delete of a bound exchange if unused": [
        DECLARE,
        DIRECT,
        Queue.Bind(queue="q", exchange="x", routing_key="k"),
        Exchange.Delete(exchange="x", if_unused=True),
    ],
    # Exchanges bound to exchanges, headers, alternates
    "bind of exchanges": [DIRECT, LINK, LINK, UNLINK, UNLINK],
    "bind of exchanges from none": [LINK],
    "bind of exchanges to none": [Exchange.Bind(destination="none", source="amq.fanout")],
    "bind of exchanges from the default": [Exchange.Bind(destination="amq.fanout", source="")],
    "bind of exchanges to the default": [Exchange.Bind(destination="", source="amq.fanout")],
    "unbind of no exchanges": [UNLINK],
    "message through an exchange": [
        DIRECT, LINK, DECLARE, Queue.Bind(queue="q", exchange="amq.fanout"), CONSUME, FORWARD
    ],
    "message in a circle": [
        DIRECT, LINK, Exchange.Bind(destination="x", source="amq.fanout"), DECLARE,
        Queue.Bind(queue="q", exchange="amq.fanout"), CONSUME, FORWARD,
    ],
    "headers exchange, numbers of other types": [
        DECLARE, HEADERS, Queue.Bind(queue="q", exchange="x", arguments={"a": 1}), CONSUME,
        *(amqp.publish(1, b"1", exchange="x", headers={"a": said}, mandatory=True)
          for said in (1.0, datetime.fromtimestamp(1, UTC), True, "1", Decimal(1), [1])),
    ],
    "headers exchange, a number with a fraction": [
        DECLARE, HEADERS, Queue.Bind(queue="q", exchange="x", arguments={"a": 2.0}), CONSUME,
        *(amqp.publish(1, b"1", exchange="x", headers={"a": said}, mandatory=True) for said in (2, 2.5)),
    ],
    "locked: bind with an odd x-match": [
        DECLARE, other(Queue.Bind(queue="q", exchange="amq.headers", arguments={"x-match": "some"}))
    ],
    "delete of an exchange that leads to another": [DIRECT, LINK, Exchange.Delete(exchange="x", if_unused=True)],
    "delete of an exchange that is led to": [
        DIRECT, Exchange.Bind(destination="x", source="amq.fanout"), Exchange.Delete(exchange="x", if_unused=True)
    ],
    "exchange that deletes itself with its last link": [
        Exchange.Declare(exchange="x", auto_delete=True), LINK, UNLINK, Exchange.Declare(exchange="x", passive=True)
    ],
    "headers exchange": [
        DECLARE, Queue.Bind(queue="q", exchange="amq.headers", arguments={"a": 1, "x-match": "all"}), CONSUME,
        *(amqp.publish(1, b"1", exchange="amq.headers", headers=said) for said in ({"a": 1, "b": 2}, {"a": 2}, None)),
    ],
    "headers exchange, any": [
        DECLARE, Queue.Bind(queue="q", exchange="amq.match", arguments={"a": 1, "b": 2, "x-match": "any"}), CONSUME,
        *(amqp.publish(1, b"1", exchange="amq.match", headers=said) for said in ({"b": 2}, {"a": 2}, {"c": 1}, None)),
    ],
    "headers exchange without arguments": [
        DECLARE, Queue.Bind(queue="q", exchange="amq.headers"), CONSUME, amqp.publish(1, b"1", exchange="amq.headers")
    ],
    "headers exchange with an odd x-match": [
        DECLARE, Queue.Bind(queue="q", exchange="amq.headers", arguments={"x-match": "some"})
    ],
    "headers exchange with an x-match that is a number": [
        DECLARE, Queue.Bind(queue="q", exchange="amq.headers", arguments={"x-match": 1})
    ],
    "unbind with other arguments": [
        DECLARE, Queue.Bind(queue="q", exchange="amq.headers", arguments={"a": 1}), CONSUME,
        Queue.Unbind(queue="q", exchange="amq.headers", arguments={"a": 2}),
        amqp.publish(1, b"1", exchange="amq.headers", headers={"a": 1}),
    ],
    "alternate exchange": [
        Exchange.Declare(exchange="x", arguments={"alternate-exchange": "amq.fanout"}), DECLARE,
        Queue.Bind(queue="q", exchange="amq.fanout"), CONSUME, FORWARD,
    ],
    "alternate exchange that is none": [
        Exchange.Declare(exchange="x", arguments={"alternate-exchange": "none"}), FORWARD
    ],
    "alternate exchange that is a number": [Exchange.Declare(exchange="x", arguments={"alternate-exchange": 1})],
    "another alternate exchange": [
        Exchange.Declare(exchange="x", arguments={"alternate-exchange": "a"}),
        Exchange.Declare(exchange="x", arguments={"alternate-exchange": "b"}),
    ],
    "alternate exchange that was not declared": [
        Exchange.Declare(exchange="x"), Exchange.Declare(exchange="x", arguments={"alternate-exchange": "b"})
    ],
    "alternate exchange left out": [
        Exchange.Declare(exchange="x", arguments={"alternate-exchange": "a"}), Exchange.Declare(exchange="x")
    ],
    # What exchanges are told, and those that are there
    "exchange with an unknown argument": [
        Exchange.Declare(exchange="x", arguments={"x-odd": 1}), Exchange.Declare(exchange="x"),
        Exchange.Declare(exchange="x", arguments={"x-odd": "other", "odd": True}),
    ],
    "exchange with an argument of another type": [
        Exchange.Declare(exchange="x", arguments={"x-delayed-type": "direct", "hash-header": 1}),
        Exchange.Declare(exchange="x", exchange_type="direct"),
    ],
    "tracing exchange": [Exchange.Declare(exchange="amq.rabbitmq.trace", passive=True)],
    "tracing exchange declared": [
        Exchange.Declare(exchange="amq.rabbitmq.trace", exchange_type="topic", durable=True, internal=True)
    ],
    "tracing exchange declared otherwise": [
        Exchange.Declare(exchange="amq.rabbitmq.trace", exchange_type="topic", durable=True)
    ],
    "tracing exchange bound": [
        DECLARE, Queue.Bind(queue="q", exchange="amq.rabbitmq.trace", routing_key="#"), MESSAGE,
        Queue.Unbind(queue="q", exchange="amq.rabbitmq.trace", routing_key="#"),
    ],
    "publish to the tracing exchange": [amqp.publish(1, b"1", exchange="amq.rabbitmq.trace", key="k")],
    "delete of the tracing exchange": [Exchange.Delete(exchange="amq.rabbitmq.trace")],
    "log exchange": [Exchange.Declare(exchange="amq.rabbitmq.log", passive=True)],
    "event exchange": [Exchange.Declare(exchange="amq.rabbitmq.event", passive=True)],
}  # fmt: skip
