"""Methods of an open channel: each is answered, or refused by the protocol's own word."""

from __future__ import annotations

import pytest
from pamqp import commands
from pamqp.commands import Basic, Confirm, Exchange, Queue, Tx

from gateway.amqp.functions import FUNCTIONS
from gateway.amqp.methods import method_name

OF_EVENTS = {  # that are cut from the bytes in runs, or are the connection's own
    "basic.publish", "basic.ack", "basic.nack", "basic.reject", "channel.open", "channel.close", "channel.closeok",
}  # fmt: skip
FROM_SERVERS = ("ok", ".deliver", ".return", "empty")


def asked_by_clients():
    names = {method_name(index): method for index, method in commands.INDEX_MAPPING.items()}
    return {
        name: method
        for name, method in names.items()
        if not name.startswith(("connection.", "access.")) and not name.endswith(FROM_SERVERS) and name not in OF_EVENTS
    }


def test_every_method_that_a_client_may_send_has_a_function():
    assert set(asked_by_clients().values()) <= FUNCTIONS.keys()


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        (Basic.Qos(prefetch_count=1), Basic.QosOk),
        (Basic.Recover(requeue=True), Basic.RecoverOk),
        (Confirm.Select(), Confirm.SelectOk),
        (Tx.Select(), Tx.SelectOk),
        (commands.Channel.Flow(active=True), commands.Channel.FlowOk),
        (Exchange.Declare(exchange="x"), Exchange.DeclareOk),
        (Queue.Declare(queue="q"), Queue.DeclareOk),
        (Basic.Cancel(consumer_tag="none"), Basic.CancelOk),
    ],
)
def test_a_method_gets_its_answer(world, method, answer):
    assert isinstance(world.client().call(method), answer)
