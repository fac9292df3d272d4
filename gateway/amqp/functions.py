"""What each method of an open channel does; those that are events of their own are the handler's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from pamqp import base
from pamqp.commands import Basic, Channel as ChannelMethod, Confirm, Exchange, Queue, Tx

from gateway.amqp.answers import Answers
from gateway.amqp.channel import Channel
from gateway.amqp.consuming import Reading
from gateway.amqp.declaring import Declarer
from gateway.amqp.errors import AmqpError, unimplemented
from gateway.amqp.method_answer import Answer
from gateway.amqp.reply_codes import ReplyCode
from gateway.amqp.stream_consumer import StreamConsumer
from gateway.amqp.transaction import Transaction


class Peer(Protocol):
    """The connection that a method came by."""

    answers: Answers
    declarer: Declarer
    reading: Reading

    def close_channel(self, now_ms: int, channel: Channel, error: AmqpError) -> None:
        """Close a channel for what its client is to be told later than by an answer."""

    def do_get(self, channel: Channel, method: Basic.Get, now_ms: int) -> None:
        """Give one message."""

    def commit(self, channel: Channel, method: Tx.Commit, now_ms: int) -> None:
        """Commit what a transactional channel did."""


Function = Callable[[Peer, Channel, Any, int], base.Frame | None]
"""Does a method; returns what is to be tried in the next turn where it is not done yet."""


def find_function(method: base.Frame) -> Function:
    """Return what does a method.

    Raises:
        AmqpError: NOT_IMPLEMENTED.
    """
    function = FUNCTIONS.get(type(method))
    if function is None:
        raise unimplemented(method.index)
    return function


def _declared(peer: Peer, channel: Channel, answer: Answer) -> base.Frame | None:
    peer.answers.give(channel, answer.method, is_durable=answer.is_durable, then=answer.then)
    return answer.again


def _qos(peer: Peer, channel: Channel, method: Basic.Qos) -> None:
    peer.reading.qos(channel, method)
    peer.answers.give(channel, Basic.QosOk())


def _consume(peer: Peer, channel: Channel, method: Basic.Consume, now_ms: int) -> base.Frame | None:
    """Make a consumer; deliveries start after the answer."""
    consumer = peer.reading.consume(channel, method, now_ms)
    if consumer is None:
        return method
    answer = None if method.nowait else Basic.ConsumeOk(consumer.tag)
    start = consumer.start
    if isinstance(consumer, StreamConsumer):
        start = partial(consumer.start_reading, partial(peer.close_channel, now_ms, channel))
    peer.answers.give(channel, answer, then=start)
    return None


def _cancel(peer: Peer, channel: Channel, method: Basic.Cancel) -> None:
    peer.reading.cancel(channel, method.consumer_tag or "")
    peer.answers.give(channel, None if method.nowait else Basic.CancelOk(method.consumer_tag))


def _recover(peer: Peer, channel: Channel, method: Basic.Recover | Basic.RecoverAsync, now_ms: int) -> None:
    peer.reading.recover(channel, now_ms, requeue=method.requeue)
    if isinstance(method, Basic.Recover):
        peer.answers.give(channel, Basic.RecoverOk())


def _confirm(peer: Peer, channel: Channel, method: Confirm.Select) -> None:
    if channel.transaction is not None:
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, "cannot switch from tx to confirm mode")
    channel.is_confirming = True
    peer.answers.give(channel, None if method.nowait else Confirm.SelectOk())


def _flow(peer: Peer, channel: Channel, method: ChannelMethod.Flow) -> None:
    """Answer channel.flow; stopping deliveries that way is not supported."""
    if not method.active:
        raise AmqpError(ReplyCode.NOT_IMPLEMENTED, "active=false")
    peer.answers.give(channel, ChannelMethod.FlowOk(active=True))


def _begin_transactions(peer: Peer, channel: Channel) -> None:
    if channel.is_confirming:
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, "cannot switch from confirm to tx mode")
    if channel.transaction is None:
        channel.transaction = Transaction(channel)
    peer.answers.give(channel, Tx.SelectOk())


def _commit(peer: Peer, channel: Channel, method: Tx.Commit, now_ms: int) -> None:
    _check_transactional(channel)
    peer.commit(channel, method, now_ms)


def _roll_back(peer: Peer, channel: Channel) -> None:
    _check_transactional(channel)
    channel.transaction.roll_back()
    peer.answers.give(channel, Tx.RollbackOk())


def _check_transactional(channel: Channel) -> None:
    if channel.transaction is None:
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, "channel is not transactional")


FUNCTIONS: dict[type[base.Frame], Function] = {
    Exchange.Declare: lambda peer, channel, m, _: _declared(peer, channel, peer.declarer.declare_exchange(m)),
    Exchange.Delete: lambda peer, channel, m, _: _declared(peer, channel, peer.declarer.delete_exchange(m)),
    Exchange.Bind: lambda peer, channel, m, _: _declared(peer, channel, peer.declarer.binder.bind_exchange(m)),
    Exchange.Unbind: lambda peer, channel, m, _: _declared(peer, channel, peer.declarer.binder.unbind_exchange(m)),
    Queue.Declare: lambda peer, channel, m, now_ms: _declared(
        peer, channel, peer.declarer.declare_queue(channel, m, now_ms)
    ),
    Queue.Delete: lambda peer, channel, m, now_ms: _declared(
        peer, channel, peer.declarer.delete_queue(channel, m, now_ms)
    ),
    Queue.Purge: lambda peer, channel, m, now_ms: _declared(
        peer, channel, peer.declarer.purge_queue(channel, m, now_ms)
    ),
    Queue.Bind: lambda peer, channel, m, _: _declared(peer, channel, peer.declarer.binder.bind_queue(channel, m)),
    Queue.Unbind: lambda peer, channel, m, _: _declared(peer, channel, peer.declarer.binder.unbind_queue(channel, m)),
    Basic.Qos: lambda peer, channel, m, _: _qos(peer, channel, m),
    Basic.Consume: _consume,
    Basic.Cancel: lambda peer, channel, m, _: _cancel(peer, channel, m),
    Basic.CancelOk: lambda peer, channel, m, _: peer.reading.cancel(channel, m.consumer_tag),
    Basic.Get: lambda peer, channel, m, now_ms: peer.do_get(channel, m, now_ms),
    Basic.Recover: _recover,
    Basic.RecoverAsync: _recover,
    Confirm.Select: lambda peer, channel, m, _: _confirm(peer, channel, m),
    Tx.Select: lambda peer, channel, _m, _: _begin_transactions(peer, channel),
    Tx.Commit: _commit,
    Tx.Rollback: lambda peer, channel, _m, _: _roll_back(peer, channel),
    ChannelMethod.Flow: lambda peer, channel, m, _: _flow(peer, channel, m),
}
