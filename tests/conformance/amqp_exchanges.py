"""What is said to an AMQP server, exchange by exchange.

The same exchanges are had with RabbitMQ (`record_rabbitmq.py`) and with the door (`test_rabbitmq_replies.py`). Each
begins with a new connection that has channel 1 open, and with neither a queue `q` nor an exchange `x`.
"""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from decimal import Decimal

from pamqp.commands import Basic, Confirm, Connection, Exchange, Queue, Tx

from tests.conformance.amqp_argument_exchanges import ARGUMENTS
from tests.conformance.amqp_steps import (
    DECLARE,
    RECOVER_ASYNC,
    Channel,
    at,
    content_header,
    declare_with,
    other,
    raw,
    table,
)
from tests.support import amqp

CONSUME = Basic.Consume(queue="q", consumer_tag="c")
OTHER_CONSUMER = Basic.Consume(queue="q", consumer_tag="d")
MESSAGE = amqp.publish(1, b"1", key="q")
PUBLISH = amqp.method(1, Basic.Publish(routing_key="q"))
CLOSE = Channel.Close(200, "", 0, 0)
BIND = Queue.Bind(queue="q", exchange="amq.direct", routing_key="k")
UNBIND = Queue.Unbind(queue="q", exchange="amq.direct", routing_key="k")
DIRECT = Exchange.Declare(exchange="x", exchange_type="direct")
HEADERS = Exchange.Declare(exchange="x", exchange_type="headers")
UNKNOWN_TAG = Basic.Ack(5)
LINK = Exchange.Bind(destination="amq.fanout", source="x", routing_key="k")
UNLINK = Exchange.Unbind(destination="amq.fanout", source="x", routing_key="k")
QUORUM = {"x-queue-type": "quorum"}
QUORUM_QUEUE = Queue.Declare(queue="q", durable=True, arguments=QUORUM)
STREAM_QUEUE = Queue.Declare(queue="q", durable=True, arguments={"x-queue-type": "stream"})
DELETE = Queue.Delete(queue="q")
FORWARD = amqp.publish(1, b"1", exchange="x", key="k", mandatory=True)

EXCHANGES = {
    # Queues
    "passive declare of no queue": [Queue.Declare(queue="none", passive=True)],
    "passive declare without a name": [Queue.Declare(passive=True)],
    "passive declare after another": [DECLARE, Queue.Declare(passive=True)],
    "declare of a reserved name": [Queue.Declare(queue="amq.mine")],
    "declare of a made name": [Queue.Declare(queue="amq.gen-1")],
    "declare again, durable": [Queue.Declare(queue="q"), Queue.Declare(queue="q", durable=True)],
    "declare again, deleting itself": [Queue.Declare(queue="q"), Queue.Declare(queue="q", auto_delete=True)],
    "declare again, exclusive": [Queue.Declare(queue="q"), DECLARE],
    "declare again, exclusive no more": [DECLARE, Queue.Declare(queue="q")],
    "declare again, exclusive and durable": [DECLARE, Queue.Declare(queue="q", exclusive=True, durable=True)],
    "locked: declare": [DECLARE, other(Queue.Declare(queue="q"))],
    "locked: passive declare": [DECLARE, other(Queue.Declare(queue="q", passive=True))],
    "locked: get": [DECLARE, other(Basic.Get(queue="q"))],
    "locked: consume": [DECLARE, other(Basic.Consume(queue="q"))],
    "locked: purge": [DECLARE, other(Queue.Purge(queue="q"))],
    "locked: delete": [DECLARE, other(Queue.Delete(queue="q"))],
    "locked: bind": [DECLARE, other(BIND)],
    "locked: unbind": [DECLARE, BIND, other(UNBIND)],
    "locked: unbind what is not bound": [DECLARE, other(UNBIND)],
    "delete of no queue": [Queue.Delete(queue="none")],
    "delete without a name": [Queue.Delete()],
    "delete if unused": [DECLARE, CONSUME, Queue.Delete(queue="q", if_unused=True)],
    "delete if empty": [DECLARE, MESSAGE, Queue.Delete(queue="q", if_empty=True)],
    "delete if unused and empty": [DECLARE, CONSUME, MESSAGE, Queue.Delete(queue="q", if_unused=True, if_empty=True)],
    "delete with a consumer": [DECLARE, CONSUME, Queue.Delete(queue="q")],
    "delete with a consumer, unanswered": [DECLARE, CONSUME, Queue.Delete(queue="q", nowait=True)],
    "delete with a consumer elsewhere": [
        Queue.Declare(queue="q"), at(2, Channel.Open()), at(2, CONSUME), Queue.Delete(queue="q")
    ],
    "delete of a durable one with a consumer": [
        Queue.Declare(queue="q", durable=True), CONSUME, Queue.Delete(queue="q")
    ],
    "cancel-ok of a deleted consumer": [
        DECLARE, CONSUME, Queue.Delete(queue="q"), Basic.CancelOk("c"), Basic.Qos(prefetch_count=1)
    ],
    "purge of no queue": [Queue.Purge(queue="none")],
    "purge without a name": [Queue.Purge()],
    "purge": [DECLARE, MESSAGE, Queue.Purge(queue="q")],
    "text longer than a short string": [Queue.Declare(queue="n" * 250, passive=True)],
    **ARGUMENTS,
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
    # Messages
    "unknown tag: ack": [UNKNOWN_TAG],
    "unknown tag: ack of all up to it": [Basic.Ack(5, multiple=True)],
    "unknown tag: ack of 0": [Basic.Ack(0)],
    "ack of all": [Basic.Ack(0, multiple=True), Basic.Qos()],
    "unknown tag: largest": [Basic.Ack(-1)],
    "unknown tag: nack": [Basic.Nack(5)],
    "unknown tag: nack of all up to it": [Basic.Nack(5, multiple=True)],
    "unknown tag: reject": [Basic.Reject(5)],
    "unknown tag: second ack": [DECLARE, MESSAGE, Basic.Get(queue="q"), Basic.Ack(1), Basic.Ack(1)],
    "unknown tag: got without": [DECLARE, MESSAGE, Basic.Get(queue="q", no_ack=True), Basic.Ack(1)],
    "get from no queue": [Basic.Get(queue="none")],
    "get without a name": [Basic.Get()],
    "get nothing": [DECLARE, Basic.Get(queue="q")],
    "consume no queue": [Basic.Consume(queue="none")],
    "consume without a name": [Basic.Consume()],
    "consume with a tag in use": [DECLARE, CONSUME, CONSUME],
    "consume alone what others consume": [
        DECLARE, CONSUME, Basic.Consume(queue="q", consumer_tag="d", exclusive=True)
    ],
    "consume what another has alone": [
        DECLARE,
        Basic.Consume(queue="q", consumer_tag="c", exclusive=True),
        Basic.Consume(queue="q", consumer_tag="d"),
    ],
    "consume with an unknown argument": [
        DECLARE, Basic.Consume(queue="q", consumer_tag="c", arguments={"x-odd": 1})
    ],
    "consume with a priority that is text": [
        DECLARE, Basic.Consume(queue="q", consumer_tag="c", arguments={"x-priority": "1"})
    ],
    "consume from an offset": [
        DECLARE, Basic.Consume(queue="q", consumer_tag="c", arguments={"x-stream-offset": 1})
    ],
    "cancel nothing": [Basic.Cancel("none")],
    "prefetch of bytes": [Basic.Qos(prefetch_size=1)],
    "recover": [Basic.Recover(requeue=True)],
    "recover to the same": [Basic.Recover(requeue=False)],
    "recover unanswered": [raw(RECOVER_ASYNC, b"\1"), Basic.Qos()],
    "recover unanswered to the same": [raw(RECOVER_ASYNC, b"\0")],
    "prefetch of each consumer": [DECLARE, Basic.Qos(prefetch_count=1), CONSUME, OTHER_CONSUMER, *3 * [MESSAGE]],
    "prefetch of the channel": [
        DECLARE, Basic.Qos(prefetch_count=1, global_=True), CONSUME, OTHER_CONSUMER, *3 * [MESSAGE], Basic.Ack(1)
    ],
    "prefetch of the channel and of a consumer": [
        DECLARE, Basic.Qos(prefetch_count=3, global_=True), Basic.Qos(prefetch_count=2), CONSUME, *3 * [MESSAGE]
    ],
    "prefetch that is set after its consumer": [
        DECLARE, CONSUME, Basic.Qos(prefetch_count=1), *3 * [MESSAGE], Basic.Ack(3, multiple=True)
    ],
    "recover what was got": [
        DECLARE, MESSAGE, Basic.Get(queue="q"), Basic.Recover(requeue=True), Basic.Get(queue="q"), Basic.Ack(2)
    ],
    "recover what was delivered": [DECLARE, CONSUME, MESSAGE, Basic.Recover(requeue=True), Basic.Ack(2), Basic.Ack(1)],
    "publish to no exchange": [amqp.publish(1, b"1", exchange="none")],
    "publish to an internal exchange": [
        Exchange.Declare(exchange="x", exchange_type="direct", internal=True), amqp.publish(1, b"1", exchange="x")
    ],
    "publish at once": [amqp.publish(1, b"1", immediate=True)],
    "publish to nobody": [amqp.publish(1, b"1", exchange="amq.direct", key="none", mandatory=True)],
    "expiration with a unit": [amqp.publish(1, b"1", expiration="10s")],
    "expiration that is negative": [amqp.publish(1, b"1", expiration="-1")],
    "expiration that is too long": [amqp.publish(1, b"1", expiration="315360000001")],
    "publish as another user": [amqp.publish(1, b"1", user_id="me")],
    "publish as oneself": [DECLARE, amqp.publish(1, b"1", user_id="guest"), Basic.Get(queue="q")],
    "return before the confirm": [
        Confirm.Select(), amqp.publish(1, b"1", exchange="amq.direct", key="none", mandatory=True)
    ],
    "publish at once to a queue that is there": [DECLARE, CONSUME, amqp.publish(1, b"1", immediate=True)],
    "copies that are no array": [amqp.publish(1, b"1", headers={"CC": "a"})],
    "confirms": [Confirm.Select()],
    "confirms unanswered": [Confirm.Select(nowait=True), Basic.Qos()],
    "content of another class": [PUBLISH, content_header(1, class_id=50)],
    "content with a weight": [PUBLISH, content_header(1, weight=1)],
    "content without a size": [PUBLISH, amqp.raw_frame(2, 1, b"\0\x3c\0\0")],
    "content larger than any": [PUBLISH, content_header(2**40)],
    "content longer than its header says": [PUBLISH, content_header(1) + amqp.raw_frame(3, 1, b"xx")],
    "method instead of a header": [PUBLISH, Basic.Qos()],
    "body instead of a header": [PUBLISH, amqp.raw_frame(3, 1, b"x")],
    "method instead of a body": [PUBLISH, content_header(5), Basic.Qos()],
    "header instead of a body": [PUBLISH, content_header(5), content_header(5)],
    "body alone": [amqp.raw_frame(3, 1, b"x")],
    "header alone": [content_header(1)],
    "body on channel 0": [amqp.raw_frame(3, 0, b"x")],
    # Channels
    "open twice": [Channel.Open()],
    "method on no channel": [at(5, Basic.Qos())],
    "body on no channel": [amqp.raw_frame(3, 5, b"x")],
    "open the highest number": [at(65_535, Channel.Open()), at(65_535, Basic.Qos())],
    "stop the flow": [Channel.Flow(active=False)],
    "start the flow": [Channel.Flow(active=True)],
    "close": [CLOSE, Channel.Open()],
    "use after close": [CLOSE, Basic.Qos()],
    "closed by us": [UNKNOWN_TAG, Channel.CloseOk(), Channel.Open()],
    "closed by us, others go on": [at(2, Channel.Open()), UNKNOWN_TAG, at(2, Basic.Qos())],
    "closed by both": [UNKNOWN_TAG, CLOSE, Channel.CloseOk(), Channel.Open(), Basic.Qos()],
    "closed by both, late answer": [UNKNOWN_TAG, CLOSE, Channel.Open(), Channel.CloseOk(), Basic.Qos()],
    "closed by us, used before the answer": [UNKNOWN_TAG, Basic.Qos(), MESSAGE, Channel.CloseOk(), Channel.Open()],
    "close-ok late": [CLOSE, Channel.CloseOk(), at(2, Channel.Open())],
    "close-ok twice": [UNKNOWN_TAG, Channel.CloseOk(), Channel.CloseOk(), Channel.Open()],
    "close of no channel": [at(9, CLOSE)],
    # Connection
    "new secret": [at(0, Connection.UpdateSecret("guest", "why"))],
    "new secret that is wrong": [at(0, Connection.UpdateSecret("odd", "why"))],
    "new secret on a channel": [Connection.UpdateSecret("odd", "why")],
    "close of the connection on a channel": [Connection.Close(200, "", 0, 0)],
    "open of the connection again": [at(0, Connection.Open("/"))],
    "channel method on channel 0": [at(0, Channel.Open())],
    "basic method on channel 0": [at(0, Basic.Qos())],
    "method of the server": [Queue.PurgeOk(message_count=0)],
    "unknown method": [raw(0x003C00FF, b"")],
    "octets too few for a method": [amqp.raw_frame(1, 1, b"\0\x32")],
    "arguments cut short": [raw(Queue.Declare.index, b"\0")],
    "arguments too long": [raw(Basic.Qos.index, bytes(7) + b"more")],
    "name that is no text": [raw(Queue.Declare.index, b"\0\0\1\xff\4" + table())],
    "key that is no text": [raw(Basic.Publish.index, b"\0\0\0\1\xff\0") + content_header(0)],
    "heartbeat on a channel": [amqp.raw_frame(8, 1, b"")],
    "heartbeat with a payload": [amqp.raw_frame(8, 0, b"x")],
    "frame of an unknown type": [amqp.raw_frame(7, 1, b"")],
    "frame without its end": [amqp.raw_frame(1, 1, struct.pack(">I", Basic.Qos.index) + bytes(7), 0)],
    "long frame without its end": [amqp.raw_frame(3, 1, b"0123456789abcdefghi", 7)],
    # Transactions
    "transactions": [Tx.Select(), Tx.Select(), Tx.Commit(), Tx.Rollback()],
    "commit without a transaction": [Tx.Commit()],
    "rollback without a transaction": [Tx.Rollback()],
    "transactions after confirms": [Confirm.Select(), Tx.Select()],
    "confirms after transactions": [Tx.Select(), Confirm.Select()],
    "commit of a publish": [DECLARE, Tx.Select(), MESSAGE, CONSUME, Tx.Commit()],
    "rollback of a publish": [DECLARE, Tx.Select(), MESSAGE, Tx.Rollback(), Tx.Commit(), CONSUME],
    "commit of what comes back": [Tx.Select(), amqp.publish(1, b"1", key="none", mandatory=True), Tx.Commit()],
    "publish in a transaction to no exchange": [Tx.Select(), amqp.publish(1, b"1", exchange="none")],
    "ack twice in a transaction": [DECLARE, MESSAGE, CONSUME, Tx.Select(), Basic.Ack(1), Basic.Ack(1)],
    "ack again after a rollback": [
        DECLARE, MESSAGE, CONSUME, Tx.Select(), Basic.Ack(1), Tx.Rollback(), Basic.Ack(1), Tx.Commit(), Basic.Ack(1)
    ],
    "multiple ack in a transaction": [
        DECLARE, MESSAGE, MESSAGE, CONSUME, Tx.Select(), Basic.Ack(1), Basic.Ack(2, multiple=True), Tx.Commit()
    ],
    "nack in a transaction": [DECLARE, MESSAGE, CONSUME, Tx.Select(), Basic.Nack(1), Tx.Commit()],
    "recover in a transaction": [
        DECLARE, MESSAGE, MESSAGE, CONSUME, Tx.Select(), Basic.Ack(1), Basic.Recover(requeue=True), Tx.Commit()
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
    # Quorum queues, one consumer at a time, priorities of consumers
    "quorum queue that is not durable": [Queue.Declare(queue="q", arguments=QUORUM)],
    "quorum queue that is exclusive": [Queue.Declare(queue="q", durable=True, exclusive=True, arguments=QUORUM)],
    "quorum queue that deletes itself": [Queue.Declare(queue="q", durable=True, auto_delete=True, arguments=QUORUM)],
    "limit of deliveries of a classic queue": [declare_with(delivery_limit=1)],
    "limit of deliveries": [
        Queue.Declare(queue="q", durable=True, arguments={**QUORUM, "x-delivery-limit": 1}), MESSAGE, CONSUME,
        Basic.Nack(1, requeue=True), Basic.Nack(2, requeue=True), Queue.Delete(queue="q"),
    ],
    "quorum queue declared as a classic one": [
        Queue.Declare(queue="q", durable=True, arguments=QUORUM), Queue.Declare(queue="q", durable=True)
    ],
    "one consumer at a time, as a text": [declare_with(single_active_consumer="a")],
    "one consumer at a time": [
        declare_with(single_active_consumer=True), CONSUME, Basic.Consume(queue="q", consumer_tag="d"),
        MESSAGE, MESSAGE, Basic.Cancel("c"), MESSAGE,
    ],
    "one consumer at a time, and exclusive": [
        declare_with(single_active_consumer=True), Basic.Consume(queue="q", exclusive=True)
    ],
    "consumers of two priorities": [
        DECLARE, CONSUME, Basic.Consume(queue="q", consumer_tag="high", arguments={"x-priority": 5}), MESSAGE, MESSAGE,
        Basic.Cancel("high"), MESSAGE,
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
    # The prefetch of a channel, on queues that have none
    "quorum queue and the prefetch of the channel": [
        QUORUM_QUEUE, Basic.Qos(prefetch_count=1, global_=True), CONSUME, DELETE
    ],
    "quorum queue and the prefetch of the channel set later": [
        QUORUM_QUEUE, CONSUME, Basic.Qos(prefetch_count=1, global_=True), DELETE
    ],
    "quorum queue and no prefetch of the channel": [
        QUORUM_QUEUE, Basic.Qos(prefetch_count=0, global_=True), CONSUME, DELETE
    ],
    "quorum queue and the prefetch of the channel, got": [
        QUORUM_QUEUE, MESSAGE, Basic.Qos(prefetch_count=1, global_=True), Basic.Get(queue="q", no_ack=True), DELETE
    ],
    "prefetch of the channel, and what was got": [
        DECLARE, Basic.Qos(prefetch_count=1, global_=True), MESSAGE, MESSAGE, MESSAGE, MESSAGE, Basic.Get(queue="q"),
        CONSUME, Basic.Ack(1), Basic.Get(queue="q"), Basic.Ack(2), Basic.Ack(3), Basic.Ack(4),
    ],
    "stream and the prefetch of the channel": [
        STREAM_QUEUE, Basic.Qos(prefetch_count=1, global_=True), CONSUME, DELETE
    ],
    "stream and both prefetches": [
        STREAM_QUEUE, Basic.Qos(prefetch_count=1, global_=True), Basic.Qos(prefetch_count=1), CONSUME, DELETE
    ],
    "stream and the prefetch of the channel set later": [
        STREAM_QUEUE, Basic.Qos(prefetch_count=1), CONSUME, Basic.Qos(prefetch_count=1, global_=True), DELETE
    ],
}  # fmt: skip
