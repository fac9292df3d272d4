"""What is said to an AMQP server of messages and transactions: a part of `amqp_exchanges.py`."""

from __future__ import annotations

from pamqp.commands import Basic, Confirm, Exchange, Tx

from tests.conformance.amqp_steps import (
    CONSUME,
    DECLARE,
    MESSAGE,
    RECOVER_ASYNC,
    UNKNOWN_TAG,
    content_header,
    raw,
)
from tests.support import amqp

OTHER_CONSUMER = Basic.Consume(queue="q", consumer_tag="d")
PUBLISH = amqp.method(1, Basic.Publish(routing_key="q"))

MESSAGES = {
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
}  # fmt: skip
