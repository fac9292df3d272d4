"""The methods that make and remove exchanges and queues; binding.py has those of bindings.

Source: docs/protocols/amqp.md, "Declarations".
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Protocol

from pamqp.commands import Exchange as ExchangeMethod, Queue as QueueMethod

from gateway.amqp.access import EXCHANGE, QUEUE, Access, check_not_default
from gateway.amqp.argument_rules import DEAD_LETTER_EXCHANGE, DEAD_LETTER_KEY
from gateway.amqp.binding import Binder, find_name
from gateway.amqp.channel import Channel
from gateway.amqp.definition_rows import EXCHANGE as EXCHANGE_ROW, QUEUE as QUEUE_ROW
from gateway.amqp.direct_reply import REPLY_TO, is_reply_name
from gateway.amqp.errors import AmqpError, not_of_streams
from gateway.amqp.exchange_arguments import check_exchange_arguments, find_alternate, find_delayed_type, find_hashed_by
from gateway.amqp.exchanges import DELAYED, KINDS, Exchange
from gateway.amqp.federation import find_downstream
from gateway.amqp.field_table import Field
from gateway.amqp.method_answer import Answer
from gateway.amqp.methods import arguments_of
from gateway.amqp.queue_arguments import (
    check_arguments,
    check_properties,
    check_same_arguments,
    inequivalent,
    with_queue_type,
)
from gateway.amqp.queue_ties import QueueConsumer
from gateway.amqp.queues import VirtualHost
from gateway.amqp.reply_codes import ReplyCode
from gateway.amqp.shared_queue import SharedQueue
from gateway.auth.credentials import Identity
from gateway.events import Actor, Kind

RESERVED_PREFIX = "amq."
RELEASED_A_STEP = 16_384  # deliveries that are given back in one step, of some 40 ns each


class Declarer:
    """Declarations of one connection.

    Args:
        vhost: What is changed.
        owner: The connection, as owner of exclusive queues.
        identity: May it?
        actor: Tells what it did.
    """

    def __init__(self, vhost: VirtualHost, owner: object, identity: Identity, actor: Actor) -> None:
        self._vhost = vhost
        self._owner = owner
        self._actor = actor
        self._access = Access(vhost.name, identity, has_topic_space=vhost.exchanges.topic_space is not None)
        self.binder = Binder(vhost, owner, self._access, actor)

    def remove_owned(self) -> Iterator[None]:
        """Delete the exclusive queues, one in each step: their connection is gone."""
        return self._vhost.remove_owned(self._owner)

    def _tell(self, kind: Kind, **fields: object) -> None:
        self._actor.tell(kind, vhost=self._vhost.name, **fields)

    # Exchanges

    def declare_exchange(self, method: ExchangeMethod.Declare) -> Answer:
        """Make an exchange, or see that it is there as described."""
        name = method.exchange
        answer = None if method.nowait else ExchangeMethod.DeclareOk()
        if not method.passive:
            self._check_kind(method.exchange_type)
        check_not_default(name)
        if method.passive:
            return Answer(answer, is_durable=self._is_unkept(self._vhost.exchanges.get(name).name))
        self._access.check_configure(EXCHANGE, name)
        found = self._vhost.exchanges.find(name)
        if found is not None:
            self._check_same_exchange(method, found)
            return Answer(answer, is_durable=self._is_unkept(name))
        if name.startswith(RESERVED_PREFIX):
            reason = f"exchange name '{name}' contains reserved prefix 'amq.*'"
            raise AmqpError(ReplyCode.ACCESS_REFUSED, reason)
        arguments = arguments_of(method.arguments)
        what = self._describe_exchange(name)
        delayed_type = find_delayed_type(arguments, method.exchange_type, KINDS)
        alternate = find_alternate(arguments, what)
        if alternate is not None:
            self._access.check_lead(EXCHANGE, name, alternate)
        made = Exchange(
            name,
            method.exchange_type,
            durable=method.durable,
            auto_delete=method.auto_delete,
            internal=method.internal,
            alternate=alternate,
            hashed_by=find_hashed_by(arguments, delayed_type or method.exchange_type, what),
            delayed_type=delayed_type,
            downstream=find_downstream(arguments, delayed_type or method.exchange_type),
        )
        if made.is_durable:
            self._vhost.broker.check_room()
        self._vhost.add_exchange(made)
        self._tell(Kind.EXCHANGE_CREATED, name=name, type=made.kind)
        return Answer(answer, is_durable=made.is_durable)

    def _is_unkept(self, exchange: str) -> bool:
        return (EXCHANGE_ROW, exchange) in self._vhost.unkept

    @staticmethod
    def _check_kind(kind: str) -> None:
        if kind not in KINDS and kind != DELAYED:
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"unknown exchange type '{kind}'")

    def _describe_exchange(self, name: str) -> str:
        return f"exchange '{name}' in vhost '{self._vhost.name}'"

    def _check_same_exchange(self, method: ExchangeMethod.Declare, found: Exchange) -> None:
        what = self._describe_exchange(found.name)
        _check_same("type", method.exchange_type, found.kind, what)
        _check_same("durable", method.durable, found.is_durable, what)
        _check_same("auto_delete", method.auto_delete, found.is_auto_delete, what)
        _check_same("internal", method.internal, found.is_internal, what)
        check_exchange_arguments(arguments_of(method.arguments), found, what)

    def delete_exchange(self, method: ExchangeMethod.Delete) -> Answer:
        """Remove an exchange; harmless where there is none."""
        name = method.exchange
        answer = None if method.nowait else ExchangeMethod.DeleteOk()
        check_not_default(name)
        if name.startswith(RESERVED_PREFIX):
            reason = f"deletion of system exchange '{name}' in vhost '{self._vhost.name}' not allowed"
            raise AmqpError(ReplyCode.ACCESS_REFUSED, reason)
        self._access.check_configure(EXCHANGE, name)
        found = self._vhost.exchanges.find(name)
        if found is None:
            return Answer(answer, is_durable=self._is_unkept(name))
        if method.if_unused and found.bindings:
            reason = f"exchange '{name}' in vhost '{self._vhost.name}' in use"
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, reason)
        if found.is_durable:
            self._vhost.broker.check_commits()
        self._vhost.remove_exchange(found)
        self._tell(Kind.EXCHANGE_DELETED, name=name)
        return Answer(answer, is_durable=found.is_durable)

    # Queues

    def declare_queue(self, channel: Channel, method: QueueMethod.Declare, now_ms: int) -> Answer:
        """Make a queue, or see that it is there as described."""
        if is_reply_name(method.queue):
            return self._find_replies(method)
        if method.passive:
            queue = self._vhost.get(method.queue, self._owner)
            channel.last_queue = queue.name
            self._vhost.use(queue)
            return self._declared(method, queue, now_ms)
        if method.queue.startswith(RESERVED_PREFIX):
            reason = f"queue name '{method.queue}' contains reserved prefix 'amq.*'"
            raise AmqpError(ReplyCode.ACCESS_REFUSED, reason)
        name = method.queue or f"amq.gen-{secrets.token_urlsafe(16)}"
        self._access.check_configure(QUEUE, name)
        found = self._vhost.find(name)
        if found is not None:
            self._check_same_queue(method, found, self._arguments_of(method))
            self._vhost.use(found)
        else:
            found = self._add_queue(name, method, self._arguments_of(method))
            self._tell(Kind.QUEUE_CREATED, name=name, durable=found.is_durable, exclusive=found.owner is not None)
        channel.last_queue = name
        if not found.is_open:
            again = QueueMethod.Declare(passive=True, nowait=method.nowait)
            again.queue = name  # any one, and pamqp's constructor takes some
            return Answer(None, is_durable=False, again=again)
        return self._declared(method, found, now_ms)

    def _find_replies(self, method: QueueMethod.Declare) -> Answer:
        """Say whether answers by a name would reach a client; whatever else is asked of such a queue means nothing."""
        if method.queue != REPLY_TO and self._vhost.find(method.queue) is None:
            raise AmqpError(ReplyCode.NOT_FOUND, f"no queue '{method.queue}' in vhost '{self._vhost.name}'")
        answer = QueueMethod.DeclareOk(message_count=0, consumer_count=1)
        answer.queue = method.queue
        return Answer(None if method.nowait else answer, is_durable=False)

    def _declared(self, method: QueueMethod.Declare, queue: SharedQueue, now_ms: int) -> Answer:
        is_durable = (QUEUE_ROW, queue.name) in self._vhost.unkept
        if method.nowait:
            return Answer(None, is_durable=is_durable)
        answer = QueueMethod.DeclareOk(message_count=queue.ready_count(now_ms), consumer_count=queue.reader_count())
        answer.queue = queue.name
        queue.rest()
        return Answer(answer, is_durable=is_durable)

    def _arguments_of(self, method: QueueMethod.Declare) -> Mapping[str, Field]:
        return with_queue_type(
            arguments_of(method.arguments),
            self._vhost.profile.queue_type,
            durable=method.durable,
            exclusive=method.exclusive,
            auto_delete=method.auto_delete,
        )

    def _add_queue(self, name: str, method: QueueMethod.Declare, said: Mapping[str, Field]) -> SharedQueue:
        self._vhost.profile.check_room(self._vhost.name, len(self._vhost), name)
        owner = self._owner if method.exclusive else None
        what = self._describe_queue(name)
        arguments = check_arguments(said, what)
        wrong = {
            "auto-delete": method.auto_delete,
            "exclusive-owner": method.exclusive,
            "non-durable": not method.durable,
        }
        check_properties(arguments, wrong, what)
        dead_letters = arguments.get(DEAD_LETTER_EXCHANGE)
        if dead_letters is not None and dead_letters.text is not None:
            dead_key = arguments.get(DEAD_LETTER_KEY)
            self._access.check_lead(QUEUE, name, dead_letters.text, None if dead_key is None else dead_key.text)
        if method.durable and not method.exclusive:
            self._vhost.broker.check_room()
        is_durable = method.durable and not method.exclusive  # which ends with its connection whatever is said
        return self._vhost.add(
            name, durable=is_durable, auto_delete=method.auto_delete, owner=owner, arguments=arguments
        )

    def _describe_queue(self, name: str) -> str:
        return f"queue '{name}' in vhost '{self._vhost.name}'"

    def _check_same_queue(self, method: QueueMethod.Declare, found: SharedQueue, said: Mapping[str, Field]) -> None:
        what = self._describe_queue(found.name)
        if found.owner is not None and found.owner is not self._owner:
            raise self._vhost.locked(found.name)
        if method.exclusive != (found.owner is not None):
            raise self._vhost.locked(found.name)
        if found.owner is None:  # else it is not durable whatever is said
            _check_same("durable", method.durable, found.is_durable, what)
        _check_same("auto_delete", method.auto_delete, found.is_auto_delete, what)
        check_same_arguments(said, found.arguments, what)

    def delete_queue(self, channel: Channel, method: QueueMethod.Delete, now_ms: int) -> Answer:
        """Remove a queue, harmless where there is none; its consumers are told."""
        name = find_name(channel, method.queue)
        self._access.check_configure(QUEUE, name)
        count = 0
        tell = None
        queue = self._vhost.find(name)
        if queue is not None:
            queue = self._vhost.get(name, self._owner)
            where = self._describe_queue(name)
            if method.if_unused and queue.reader_count():
                raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"{where} in use")
            count = queue.ready_count(now_ms)
            if method.if_empty and count:
                raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"{where} not empty")
            if queue.is_durable:
                self._vhost.broker.check_commits()
            tell = partial(_tell, self._vhost.remove(queue, channel))
            self._tell(Kind.QUEUE_DELETED, name=name)
        answer = None if method.nowait else QueueMethod.DeleteOk(message_count=count)
        is_durable = (QUEUE_ROW, name) in self._vhost.taken if queue is None else queue.is_durable
        return Answer(answer, is_durable=is_durable, then=tell)

    def purge_queue(self, channel: Channel, method: QueueMethod.Purge, now_ms: int) -> Answer:
        """Drop all messages that no consumer has."""
        queue = self.get_readable(channel, method.queue)
        if queue.is_stream:
            raise not_of_streams("queue.purge", self._describe_queue(queue.name))
        queue.drop_expired(now_ms)
        count = queue.pop.purge(now_ms)
        self._tell(Kind.QUEUE_PURGED, name=queue.name, messages=count)
        return Answer(None if method.nowait else QueueMethod.PurgeOk(message_count=count), is_durable=False)

    def get_readable(self, channel: Channel, name: str) -> SharedQueue:
        """Return a queue by name that the user may read; the empty name is the one declared last on the channel.

        Raises:
            AmqpError: ACCESS_REFUSED.
        """
        name = find_name(channel, name)
        self._access.check_read(QUEUE, name)
        return self._vhost.get(name, self._owner)


class Released(Protocol):
    """What a connection read, which gives back what its channels have."""

    def give_back(self, channel: Channel, now_ms: int) -> bool:
        """Give back some of what a channel has; return whether there is more."""

    def release(self, channel: Channel, now_ms: int) -> None:
        """Stop all consumers of a channel, and give back what it has left."""


def hold_much(channels: Iterable[Channel]) -> bool:
    """Return whether channels have more deliveries than are given back at once."""
    return sum(channel.unacked.live for channel in channels) > RELEASED_A_STEP


def release_all(channels: Iterable[Channel], reading: Released, owned: Iterator[None], now_ms: int) -> Iterator[None]:
    """Give back what a connection had that is gone, in steps: its channels and exclusive queues.

    Channels that have very much come last, and their consumers, which take nothing more, keep their places until all
    of that is back: one that follows, alone as well, is to have the oldest messages first.
    """
    long = []
    for channel in channels:
        if hold_much((channel,)):
            long.append(channel)
        else:
            reading.release(channel, now_ms)
            yield
    yield from owned
    for channel in long:
        while reading.give_back(channel, now_ms):
            yield
        reading.release(channel, now_ms)
        yield


def _tell(consumers: list[QueueConsumer]) -> None:
    for consumer in consumers:
        consumer.tell_deleted()


def _check_same(name: str, received: object, current: object, what: str) -> None:
    if received != current:
        raise inequivalent(name, f"'{str(received).lower()}'", f"'{str(current).lower()}'", what)
