"""The methods that make and remove bindings.

Source: docs/protocols/amqp.md, "Declarations".
"""

from __future__ import annotations

from pamqp.commands import Exchange as ExchangeMethod, Queue as QueueMethod

from gateway.amqp.access import EXCHANGE, QUEUE, Access
from gateway.amqp.binding_terms import Terms
from gateway.amqp.channel import Channel
from gateway.amqp.definition_rows import EXCHANGE as EXCHANGE_ROW, QUEUE as QUEUE_ROW
from gateway.amqp.errors import AmqpError
from gateway.amqp.exchanges import CONSISTENT_HASH, TOPIC, Binding, Destination, Exchange
from gateway.amqp.hash_choice import parse_weight
from gateway.amqp.method_answer import Answer
from gateway.amqp.methods import arguments_of
from gateway.amqp.queues import VirtualHost
from gateway.amqp.reply_codes import ReplyCode
from gateway.events import Actor, Kind


class Binder:
    """Bindings that one connection makes and takes back.

    Args:
        vhost: What is changed.
        owner: The connection, as owner of exclusive queues.
        access: May it?
        actor: Tells what it did.
    """

    def __init__(self, vhost: VirtualHost, owner: object, access: Access, actor: Actor) -> None:
        self._vhost = vhost
        self._owner = owner
        self._access = access
        self._actor = actor

    def bind_queue(self, channel: Channel, method: QueueMethod.Bind) -> Answer:
        """Bind a queue to an exchange."""
        name, key = self._check_binding(channel, method)
        exchange = self._vhost.exchanges.get(method.exchange)
        is_there = self._vhost.find(name) is not None
        terms = _terms_of(exchange, method) if is_there else None  # before the lock: RabbitMQ tells of them first
        queue = self._vhost.get(name, self._owner)
        is_durable = self._bind(exchange, (queue.name, key, terms), QUEUE, queue.name)
        return Answer(None if method.nowait else QueueMethod.BindOk(), is_durable=is_durable)

    def unbind_queue(self, channel: Channel, method: QueueMethod.Unbind) -> Answer:
        """Take a binding back; harmless where there is none, nor a queue or an exchange."""
        name, key = self._check_binding(channel, method)
        exchange, queue = self._vhost.exchanges.find(method.exchange), self._vhost.find(name)
        if exchange is None or queue is None:
            is_going = (QUEUE_ROW, name) in self._vhost.taken or self._is_unkept(method.exchange)
            return Answer(QueueMethod.UnbindOk(), is_durable=is_going)
        binding = (name, key, _terms_of(exchange, method))
        if binding in exchange.bindings:
            self._vhost.get(name, self._owner)
        return Answer(QueueMethod.UnbindOk(), is_durable=self._unbind(exchange, binding, QUEUE, name))

    def _bind(self, exchange: Exchange, binding: Binding, what: str, name: str) -> bool:
        """Bind; return whether the answer waits until that is kept."""
        if exchange.rule == CONSISTENT_HASH:
            parse_weight(binding[1])
        is_new = binding not in exchange.bindings
        is_durable = self._vhost.bind(exchange, binding)
        if is_new:
            self._tell(Kind.BINDING_CREATED, exchange.name, what, name, binding[1])
        return is_durable

    def _unbind(self, exchange: Exchange, binding: Binding, what: str, name: str) -> bool:
        """Take a binding back; return whether the answer waits until that is kept, also where it was gone before."""
        if binding in exchange.bindings:
            if exchange.is_durable:
                self._vhost.broker.check_commits()
            self._tell(Kind.BINDING_DELETED, exchange.name, what, name, binding[1])
            if self._vhost.unbind(exchange, binding):
                self._vhost.unkept.note((exchange.name, binding))
        return (exchange.name, binding) in self._vhost.unkept

    def _check_binding(self, channel: Channel, method: QueueMethod.Bind | QueueMethod.Unbind) -> tuple[str, str]:
        """Return the names of queue and key that a binding may have."""
        name = find_name(channel, method.queue)
        key = method.routing_key if method.queue or method.routing_key else name
        self._access.check_bind(QUEUE, name, method.exchange, key, is_keyed=self._is_keyed(method.exchange))
        return name, key

    def _check_exchange_binding(self, method: ExchangeMethod.Bind | ExchangeMethod.Unbind) -> None:
        is_keyed = self._is_keyed(method.source)
        self._access.check_bind(EXCHANGE, method.destination, method.source, method.routing_key, is_keyed=is_keyed)

    def _is_keyed(self, exchange: str) -> bool:
        found = self._vhost.exchanges.find(exchange)
        return found is not None and found.rule == TOPIC

    def bind_exchange(self, method: ExchangeMethod.Bind) -> Answer:
        """Let an exchange lead to another one."""
        self._check_exchange_binding(method)
        source = self._vhost.exchanges.get(method.source)
        destination = self._vhost.exchanges.get(method.destination)
        binding = destination, method.routing_key, _terms_of(source, method)
        is_durable = self._bind(source, binding, EXCHANGE, destination.name)
        return Answer(None if method.nowait else ExchangeMethod.BindOk(), is_durable=is_durable)

    def unbind_exchange(self, method: ExchangeMethod.Unbind) -> Answer:
        """Take such a binding back; harmless where there is none."""
        self._check_exchange_binding(method)
        source = self._vhost.exchanges.find(method.source)
        destination: Destination | None = self._vhost.exchanges.find(method.destination)
        is_durable = self._is_unkept(method.source) or self._is_unkept(method.destination)
        if source is not None and destination is not None:
            binding = (destination, method.routing_key, _terms_of(source, method))
            is_durable = self._unbind(source, binding, EXCHANGE, method.destination)
        return Answer(None if method.nowait else ExchangeMethod.UnbindOk(), is_durable=is_durable)

    def _tell(self, kind: Kind, source: str, what: str, name: str, key: str) -> None:
        of = {"source": source, "destination_type": what, "destination": name, "routing_key": key}
        self._actor.tell(kind, vhost=self._vhost.name, **of)

    def _is_unkept(self, exchange: str) -> bool:
        return (EXCHANGE_ROW, exchange) in self._vhost.unkept


def find_name(channel: Channel, name: str) -> str:
    """Return the name of the queue that a method means: the empty one is that of the last declared on the channel.

    Raises:
        AmqpError: NOT_FOUND.
    """
    if not name and not channel.last_queue:
        raise AmqpError(ReplyCode.NOT_FOUND, "no previously declared queue")
    return name or channel.last_queue


def _terms_of(
    exchange: Exchange, method: QueueMethod.Bind | QueueMethod.Unbind | ExchangeMethod.Bind | ExchangeMethod.Unbind
) -> Terms:
    return exchange.read_terms(arguments_of(method.arguments))
