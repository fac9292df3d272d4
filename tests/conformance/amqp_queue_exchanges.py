"""What is said to an AMQP server of queues and their consumers: a part of `amqp_exchanges.py`."""

from __future__ import annotations

from pamqp.commands import Basic, Queue

from tests.conformance.amqp_steps import (
    BIND,
    CONSUME,
    DECLARE,
    MESSAGE,
    UNBIND,
    Channel,
    at,
    declare_with,
    other,
)

QUORUM = {"x-queue-type": "quorum"}
QUORUM_QUEUE = Queue.Declare(queue="q", durable=True, arguments=QUORUM)
STREAM_QUEUE = Queue.Declare(queue="q", durable=True, arguments={"x-queue-type": "stream"})
DELETE = Queue.Delete(queue="q")

QUEUES = {
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
