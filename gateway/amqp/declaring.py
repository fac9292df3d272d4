"""The methods that make and remove exchanges, queues and bindings.

Source: docs/protocols/amqp.md, "Declarations".
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from pamqp import base
from pamqp.commands import Exchange as ExchangeMethod, Queue as QueueMethod

from core.lmq.topic_space import filter_from_binding_key
from core.properties import TTL_MS_MAX
from gateway.amqp.channel import Channel
from gateway.amqp.errors import AmqpError
from gateway.amqp.exchanges import DEFAULT, DIRECT, FANOUT, PREDECLARED, TOPIC, Exchange
from gateway.amqp.queues import VirtualHost
from gateway.amqp.reply_codes import ReplyCode
from gateway.amqp.shared_queue import EXPIRES, MESSAGE_TTL, SharedQueue
from gateway.auth.authenticator import Identity

KINDS = (DIRECT, FANOUT, TOPIC)
HEADERS = "headers"
RESERVED_PREFIX = "amq."


class Answer:
    """What a method is answered with; `is_durable`: not before it is safe on disk; `method` None: with nothing."""

    __slots__ = ("is_durable", "method")

    def __init__(self, method: base.Frame | None, *, is_durable: bool) -> None:
        self.method = method
        self.is_durable = is_durable


class Declarer:
    """Declarations of one connection.

    Args:
        vhost: What is changed.
        owner: The connection, as owner of exclusive queues.
        identity: May it?
    """

    def __init__(self, vhost: VirtualHost, owner: object, identity: Identity) -> None:
        self._vhost = vhost
        self._owner = owner
        self._identity = identity

    def remove_owned(self) -> None:
        """Delete the exclusive queues: their connection is gone."""
        self._vhost.remove_owned(self._owner)

    # Exchanges

    def declare_exchange(self, method: ExchangeMethod.Declare) -> Answer:
        """Make an exchange, or see that it is there as described."""
        name = method.exchange
        found = self._vhost.exchanges.find(name)
        answer = None if method.nowait else ExchangeMethod.DeclareOk()
        if method.passive:
            return Answer(answer, is_durable=self._vhost.exchanges.get(name).is_durable)
        if name == DEFAULT:
            raise AmqpError(ReplyCode.ACCESS_REFUSED, "operation not permitted on the default exchange")
        self._check_kind(method.exchange_type)
        self._check_may_configure("exchange", name)
        _refuse_arguments(method.arguments, f"exchange '{name}' in vhost '{self._vhost.name}'", "alternate-exchange")
        if found is not None:
            self._check_same_exchange(method, found)
            return Answer(answer, is_durable=found.is_durable)
        if name.startswith(RESERVED_PREFIX):
            reason = f"exchange name '{name}' contains reserved prefix 'amq.*'"
            raise AmqpError(ReplyCode.ACCESS_REFUSED, reason)
        made = Exchange(
            name,
            method.exchange_type,
            durable=method.durable,
            auto_delete=method.auto_delete,
            internal=method.internal,
        )
        self._vhost.add_exchange(made)
        return Answer(answer, is_durable=made.is_durable)

    @staticmethod
    def _check_kind(kind: str) -> None:
        if kind == HEADERS:
            raise AmqpError(ReplyCode.NOT_IMPLEMENTED, "exchanges of type 'headers' are not supported")
        if kind not in KINDS:
            raise AmqpError(ReplyCode.COMMAND_INVALID, f"unknown exchange type '{kind}'")

    def _check_same_exchange(self, method: ExchangeMethod.Declare, found: Exchange) -> None:
        what = f"exchange '{found.name}' in vhost '{self._vhost.name}'"
        _check_same("type", method.exchange_type, found.kind, what)
        _check_same("durable", method.durable, found.is_durable, what)
        _check_same("auto_delete", method.auto_delete, found.is_auto_delete, what)
        _check_same("internal", method.internal, found.is_internal, what)

    def delete_exchange(self, method: ExchangeMethod.Delete) -> Answer:
        """Remove an exchange; harmless where there is none."""
        name = method.exchange
        answer = None if method.nowait else ExchangeMethod.DeleteOk()
        found = self._vhost.exchanges.find(name)
        if name in PREDECLARED:
            reason = "operation not permitted on the default exchange"
            if name:
                reason = f"exchange name '{name}' contains reserved prefix 'amq.*'"
            raise AmqpError(ReplyCode.ACCESS_REFUSED, reason)
        self._check_may_configure("exchange", name)
        if found is None:
            return Answer(answer, is_durable=False)
        if method.if_unused and found.bindings:
            reason = f"exchange '{name}' in vhost '{self._vhost.name}' in use"
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, reason)
        self._vhost.remove_exchange(found)
        return Answer(answer, is_durable=found.is_durable)

    # Queues

    def get_queue(self, channel: Channel, name: str) -> SharedQueue:
        """Return a queue by name; the empty name is the one declared last on the channel."""
        if not name:
            name = channel.last_queue
            if not name:
                raise AmqpError(ReplyCode.NOT_FOUND, "no previously declared queue")
        return self._vhost.get(name, self._owner)

    def declare_queue(self, channel: Channel, method: QueueMethod.Declare, now_ms: int) -> Answer:
        """Make a queue, or see that it is there as described."""
        if method.passive:
            queue = self.get_queue(channel, method.queue)
            channel.last_queue = queue.name
            self._vhost.use(queue)
            return self._declared(method, queue, now_ms)
        name = method.queue or f"amq.gen-{secrets.token_urlsafe(16)}"
        arguments = self._check_queue_arguments(name, method.arguments)
        self._check_may_configure("queue", name)
        found = self._vhost.find(name)
        if found is not None:
            self._check_same_queue(method, found, arguments)
            self._vhost.use(found)
        elif method.queue.startswith(RESERVED_PREFIX):
            reason = f"queue name '{name}' contains reserved prefix 'amq.*'"
            raise AmqpError(ReplyCode.ACCESS_REFUSED, reason)
        else:
            owner = self._owner if method.exclusive else None
            found = self._vhost.add(
                name, durable=method.durable, auto_delete=method.auto_delete, owner=owner, arguments=arguments
            )
        channel.last_queue = name
        return self._declared(method, found, now_ms)

    @staticmethod
    def _declared(method: QueueMethod.Declare, queue: SharedQueue, now_ms: int) -> Answer:
        is_durable = queue.is_durable and queue.owner is None
        if method.nowait:
            return Answer(None, is_durable=is_durable)
        answer = QueueMethod.DeclareOk(message_count=queue.ready_count(now_ms), consumer_count=len(queue.consumers))
        answer.queue = queue.name
        return Answer(answer, is_durable=is_durable)

    def _check_queue_arguments(self, name: str, arguments: Mapping[str, object] | None) -> dict[str, object]:
        kept = dict(arguments or {})
        kind = kept.pop("x-queue-type", "classic")
        what = f"queue '{name}' in vhost '{self._vhost.name}'"
        if kind != "classic":
            reason = f"invalid arg 'x-queue-type' for {what}: '{kind}' is not supported, only 'classic'"
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, reason)
        mode = kept.pop("x-queue-mode", "default")
        if mode not in {"default", "lazy"}:  # either way messages are on disk
            raise AmqpError(
                ReplyCode.PRECONDITION_FAILED, f"invalid arg 'x-queue-mode' for {what}: '{mode}' is unknown"
            )
        times: dict[str, object] = {}
        for argument, least in ((MESSAGE_TTL, 0), (EXPIRES, 1)):
            if argument in kept:
                times[argument] = _check_time(argument, kept.pop(argument), least, what)
        _refuse_arguments(kept, what)
        return times

    def _check_same_queue(self, method: QueueMethod.Declare, found: SharedQueue, arguments: dict[str, object]) -> None:
        what = f"queue '{found.name}' in vhost '{self._vhost.name}'"
        if found.owner is not None and found.owner is not self._owner:
            raise self._vhost.locked(found.name)
        if method.exclusive != (found.owner is not None):
            raise self._vhost.locked(found.name)
        _check_same("durable", method.durable, found.is_durable, what)
        _check_same("auto_delete", method.auto_delete, found.is_auto_delete, what)
        for name in (MESSAGE_TTL, EXPIRES):
            _check_same(name, arguments.get(name, "none"), found.arguments.get(name, "none"), what)

    def delete_queue(self, channel: Channel, method: QueueMethod.Delete, now_ms: int) -> Answer:
        """Remove a queue, harmless where there is none; its consumers are told."""
        name = method.queue or channel.last_queue
        count = 0
        queue = self._vhost.find(name) if name else self.get_queue(channel, name)
        if queue is not None:
            queue = self.get_queue(channel, name)
            self._check_may_configure("queue", name)
            where = f"queue '{name}' in vhost '{self._vhost.name}'"
            if method.if_unused and queue.consumers:
                raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"{where} in use")
            count = queue.ready_count(now_ms)
            if method.if_empty and count:
                raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"{where} is not empty")
            self._vhost.remove(queue)
        answer = None if method.nowait else QueueMethod.DeleteOk(message_count=count)
        return Answer(answer, is_durable=queue is not None and queue.is_durable)

    def purge_queue(self, channel: Channel, method: QueueMethod.Purge, now_ms: int) -> Answer:
        """Drop all messages that no consumer has."""
        queue = self.get_queue(channel, method.queue)
        queue.drop_expired(now_ms)
        count = queue.pop.purge()
        return Answer(None if method.nowait else QueueMethod.PurgeOk(message_count=count), is_durable=False)

    # Bindings

    def bind_queue(self, channel: Channel, method: QueueMethod.Bind) -> Answer:
        """Bind a queue to an exchange."""
        queue, exchange, key = self._check_binding(channel, method)
        is_durable = self._vhost.bind(exchange, queue, key)
        return Answer(None if method.nowait else QueueMethod.BindOk(), is_durable=is_durable)

    def unbind_queue(self, channel: Channel, method: QueueMethod.Unbind) -> Answer:
        """Take a binding back; harmless where there is none."""
        queue, exchange, key = self._check_binding(channel, method)
        self._vhost.unbind(exchange, queue, key)
        return Answer(QueueMethod.UnbindOk(), is_durable=exchange.is_durable and queue.is_durable)

    def _check_binding(
        self, channel: Channel, method: QueueMethod.Bind | QueueMethod.Unbind
    ) -> tuple[SharedQueue, Exchange, str]:
        queue = self.get_queue(channel, method.queue)
        exchange = self._vhost.exchanges.get(method.exchange)
        if exchange.name == DEFAULT:
            raise AmqpError(ReplyCode.ACCESS_REFUSED, "operation not permitted on the default exchange")
        key = method.routing_key if method.queue or method.routing_key else queue.name
        self._check_may_configure("queue", queue.name)
        if not self._identity.may.may_subscribe(filter_from_binding_key(key.encode()) or queue.name.encode()):
            raise self.refused("exchange", exchange.name)
        return queue, exchange, key

    # Rights

    def _check_may_configure(self, what: str, name: str) -> None:
        if not self._identity.may.may_configure(self._vhost.name.encode(), name.encode()):
            raise self.refused(what, name)

    def check_may_read(self, queue: SharedQueue) -> None:
        """Check that the user may read this queue.

        Raises:
            AmqpError: ACCESS_REFUSED.
        """
        if not self._identity.may.may_subscribe(queue.name.encode()):
            raise self.refused("queue", queue.name)

    def refused(self, what: str, name: str) -> AmqpError:
        """Return the error of a user who may not."""
        reason = f"access to {what} '{name}' in vhost '{self._vhost.name}' refused for user '{self._identity.user}'"
        return AmqpError(ReplyCode.ACCESS_REFUSED, reason, denied=f"{what} '{name}'")


def _refuse_arguments(arguments: Mapping[str, object] | None, what: str, *more: str) -> None:
    for name in arguments or {}:
        if name.startswith("x-") or name in more:
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"invalid arg '{name}' for {what}: not supported")


def _check_time(name: str, value: object, least: int, what: str) -> int:
    """Return the milliseconds that an argument says."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        return min(value, TTL_MS_MAX)
    why = "unacceptable_type"
    if isinstance(value, int) and not isinstance(value, bool):
        why = f"{{value_negative,{value}}}" if value < 0 else f"{{value_zero,{value}}}"
    raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"invalid arg '{name}' for {what}: {why}")


def _check_same(name: str, received: object, current: object, what: str) -> None:
    if received == current:
        return
    texts = [str(value).lower() if isinstance(value, bool) else str(value) for value in (received, current)]
    reason = f"inequivalent arg '{name}' for {what}: received '{texts[0]}' but current is '{texts[1]}'"
    raise AmqpError(ReplyCode.PRECONDITION_FAILED, reason)
