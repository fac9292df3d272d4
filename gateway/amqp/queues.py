"""The queues of a virtual host, and the definitions that outlive the process: exchanges, queues, bindings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pamqp import base
from pamqp.commands import Exchange as ExchangeMethod, Queue as QueueMethod

from core.broker import Broker
from core.errors import QueueLimitError
from core.lmq.expiry import is_expired
from core.lmq.queue_name import amqp_queue_name
from core.lmq.topic_space import filter_from_binding_key, topic_from_routing_key
from core.message import AWAY, StoredBatch
from gateway.amqp.dead_letters import DeadLetters
from gateway.amqp.errors import AmqpError
from gateway.amqp.exchanges import AMQ_TOPIC, Exchange, ExchangeTable
from gateway.amqp.field_table import Field
from gateway.amqp.head_expiries import HeadExpiries
from gateway.amqp.passing_names import PassingNames
from gateway.amqp.queue_arguments import EXPIRES, KeptArguments
from gateway.amqp.refusals import Refusals
from gateway.amqp.reply_codes import ReplyCode
from gateway.amqp.shared_queue import GROUP, TAKE_COUNT_MAX, QueueConsumer, SharedQueue
from gateway.chores import Chores

TABLE = "amqp"
QUEUE = "q"
EXCHANGE = "x"
BINDING = "b"
IN_USE = -1

Binding = tuple[Exchange, str, str]
"""An exchange, a queue's name and a key."""


class VirtualHost:
    """Exchanges and queues of one virtual host, kept equal to what the table says.

    Everything non-durable, and everything exclusive, is forgotten by `load`: it went with its process or connection.
    """

    def __init__(self, broker: Broker, name: str) -> None:
        self.name = name
        self.exchanges = ExchangeTable(name, self._bind_topic, self._unbind_topic)
        self.stored = StoredBatch(TAKE_COUNT_MAX)
        self._broker = broker
        self._table = broker.table(TABLE)
        self._queues: dict[str, SharedQueue] = {}
        self._owned: dict[object, dict[str, SharedQueue]] = {}  # by connection: its exclusive queues
        self._going: dict[tuple[str, str], bytes] = {}  # queues (their light ones) and exchanges with bindings left
        self.chores = Chores(broker)
        self._passing_names = PassingNames(name.encode())
        self._dead_letters = DeadLetters(broker, self)
        self._expiries = HeadExpiries()
        self._refusals = Refusals(broker, self.stored, self._dead_letters, self._expiries)
        self._leases: dict[str, int] = {}  # of queues that go when unused: since when that is seen, or IN_USE

    def load(self) -> None:
        """Bring back what is durable, forget the rest."""
        rows = [(json.loads(key), json.loads(value)) for key, value in list(self._table.items())]
        for key, row in rows:
            if key[0] == EXCHANGE:
                self.exchanges.add(Exchange(key[1], row["kind"], durable=True, auto_delete=row["auto_delete"],
                                            internal=row["internal"]))  # fmt: skip
            elif key[0] == QUEUE and row["durable"]:
                self._queues[key[1]] = self._make(
                    key[1],
                    self.light_name(key[1]),
                    durable=True,
                    auto_delete=row["auto_delete"],
                    owner=None,
                    arguments=_load_arguments(row["arguments"]),
                )
                self.use(self._queues[key[1]])
                self._queues[key[1]].watch()
                self._refusals.start(self._queues[key[1]])
            elif key[0] == QUEUE:
                light_name = row["light"].encode() if "light" in row else self.light_name(key[1])
                self._broker.pop.drop(light_name, GROUP)
                self._refusals.forget(light_name)
                self._table.delete(_key(QUEUE, key[1]))
        for key, _ in rows:
            if key[0] == BINDING:
                exchange = self.exchanges.find(key[1])
                if exchange is not None and key[2] in self._queues:
                    self.exchanges.bind(exchange, key[2], key[3])
                else:  # a process was killed before all bindings of what was deleted were forgotten
                    self._table.delete(_key(*key))

    def floors(self) -> Iterator[tuple[int, int]]:
        """Give each queue and its first offset that is still needed: what retention must keep."""
        for light_name, offset in self._broker.pop.floors(GROUP):
            yield self._broker.open_queue(light_name), offset

    def drop_expired(self, now_ms: int) -> None:
        """Finish the expired messages that stand first in their queues."""
        floors = dict(self._broker.pop.floors(GROUP))
        for queue in self._queues.values():
            offset = floors.get(queue.light_name)
            if offset is not None and self._may_be_expired(queue, offset, now_ms):
                queue.drop_expired(now_ms)

    def expire_first(self, now_ms: int) -> None:
        """Let dead letters go whose time is over; called a few times a second."""
        self._expiries.run(now_ms)

    def light_names(self, exchange: Exchange, key: str) -> list[bytes]:
        """Return the light queues that a routing key leads to from an exchange, each once."""
        topic = topic_from_routing_key(key.encode())
        if exchange.name == AMQ_TOPIC and topic:
            return self._broker.router.matches(topic)
        names = exchange.queues(key) if exchange.name else [key] if self.find(key) else []
        return [self.light_name(queue) for queue in names]

    def _may_be_expired(self, queue: SharedQueue, offset: int, now_ms: int) -> bool:
        """Return whether the message there is expired, or on its way."""
        queue_ref = self._broker.open_queue(queue.light_name)
        if offset >= self._broker.max_offset(queue_ref):
            return False
        found = self._broker.read(queue_ref, offset, self.stored, 1, 1)
        is_due = found == AWAY or (found > 0 and is_expired(self.stored, 0, now_ms, queue.limit_ms))
        self.stored.clear()
        return is_due

    def use(self, queue: SharedQueue) -> None:
        """Begin the lease of a queue that has one again: somebody declares, reads or consumes it."""
        if queue.lease_ms >= 0:
            self._leases[queue.name] = IN_USE

    def remove_unused(self, now_ms: int) -> None:
        """Delete the queues whose lease is over; called about once a second, by which they may stay longer."""
        for name, since_ms in list(self._leases.items()):
            queue = self._queues.get(name)
            if queue is None or queue.lease_ms < 0:
                del self._leases[name]
            elif queue.consumers:
                self._leases[name] = IN_USE
            elif since_ms == IN_USE:
                self._leases[name] = now_ms
            elif now_ms - since_ms >= queue.lease_ms:
                self.remove(queue)

    def light_name(self, queue: str) -> bytes:
        """Return the light queue of a queue."""
        found = self._queues.get(queue)
        if found is not None:
            return found.light_name
        return self._going.get((QUEUE, queue)) or amqp_queue_name(self.name.encode(), queue.encode())

    def __len__(self) -> int:
        """Return how many queues there are."""
        return len(self._queues)

    def __iter__(self) -> Iterator[SharedQueue]:
        """Give all queues."""
        return iter(list(self._queues.values()))

    # Queues

    def find(self, name: str) -> SharedQueue | None:
        """Return a queue, or None."""
        return self._queues.get(name)

    def get(self, name: str, owner: object) -> SharedQueue:
        """Return a queue that the connection `owner` may use.

        Raises:
            AmqpError: NOT_FOUND; RESOURCE_LOCKED: another connection has it to itself.
        """
        found = self._queues.get(name)
        if found is None:
            raise AmqpError(ReplyCode.NOT_FOUND, f"no queue '{name}' in vhost '{self.name}'")
        if found.owner is not None and found.owner is not owner:
            raise self.locked(name)
        return found

    def locked(self, name: str) -> AmqpError:
        """Return the error of a queue that another connection has to itself."""
        reason = (
            f"cannot obtain exclusive access to locked queue '{name}' in vhost '{self.name}'. It could be originally "
            "declared on another connection or the exclusive property value does not match that of the original "
            "declaration."
        )
        return AmqpError(ReplyCode.RESOURCE_LOCKED, reason)

    def add(
        self, name: str, *, durable: bool, auto_delete: bool, owner: object | None, arguments: KeptArguments
    ) -> SharedQueue:
        """Make a queue; it is empty whatever its light queue holds."""
        is_passing = owner is not None or (not durable and (auto_delete or EXPIRES in arguments))
        light_name = self._passing_names.take() if is_passing else self.light_name(name)
        queue = self._make(name, light_name, durable=durable, auto_delete=auto_delete, owner=owner, arguments=arguments)
        queue.is_passing = is_passing
        try:
            self._refusals.start_empty(queue)
            queue.start_empty()
        except QueueLimitError:
            self._refusals.stop(queue)
            if is_passing:
                self._passing_names.give_back(light_name)
            raise
        self._queues[name] = queue
        queue.watch()
        self._refusals.start(queue)
        if owner is not None:
            self._owned.setdefault(owner, {})[name] = queue
        self.use(queue)
        self.exchanges.version += 1
        row: dict[str, object] = {
            "durable": durable and owner is None,
            "auto_delete": auto_delete,
            "arguments": {argument: [field.kind, _to_row(field.value)] for argument, field in arguments.items()},
        }
        if is_passing:
            row["light"] = light_name.decode()
        self._table.put(_key(QUEUE, name), json.dumps(row).encode())
        return queue

    def _make(
        self,
        name: str,
        light_name: bytes,
        *,
        durable: bool,
        auto_delete: bool,
        owner: object | None,
        arguments: KeptArguments,
    ) -> SharedQueue:
        return SharedQueue(
            self._broker,
            name,
            light_name,
            self.stored,
            durable=durable,
            auto_delete=auto_delete,
            owner=owner,
            arguments=arguments,
            burial=self._dead_letters,
            expiries=self._expiries,
        )

    def remove(self, queue: SharedQueue, by: object = None) -> list[QueueConsumer]:
        """Delete a queue, and its bindings in steps; exchanges that delete themselves without bindings go too.

        Its consumers are told, but for those on the channel `by`, which are returned.
        """
        self._table.delete(_key(QUEUE, queue.name))
        self._leases.pop(queue.name, None)
        del self._queues[queue.name]
        if queue.owner is not None:
            self._owned[queue.owner].pop(queue.name)
        self._refusals.stop(queue)
        told_later = queue.delete(by)
        self.exchanges.version += 1
        bindings = [(exchange, queue.name, key) for exchange, key in self.exchanges.bindings_of(queue.name)]
        self._going[QUEUE, queue.name] = queue.light_name
        self.chores.start(self._finish_removal(queue, bindings))
        return told_later

    def _finish_removal(self, queue: SharedQueue, bindings: list[Binding]) -> Iterator[None]:
        """Take back the bindings of a deleted queue; until that is done nothing new may have its name."""
        try:
            yield from self._take_back(bindings)
        finally:
            del self._going[QUEUE, queue.name]
            if queue.is_passing:
                self._passing_names.give_back(queue.light_name)

    def _take_back(self, bindings: list[Binding]) -> Iterator[None]:
        for exchange, queue, key in bindings:
            self.exchanges.unbind(exchange, queue, key)
            if exchange.is_durable:
                self._table.delete(_key(BINDING, exchange.name, queue, key))
            self._maybe_remove_exchange(exchange)
            yield

    def is_going(self, method: base.Frame) -> bool:
        """Return whether a method declares something while bindings of what had its name are still to be forgotten."""
        if isinstance(method, QueueMethod.Declare):
            return (QUEUE, method.queue) in self._going
        return isinstance(method, ExchangeMethod.Declare) and (EXCHANGE, method.exchange) in self._going

    def remove_owned(self, owner: object) -> Iterator[None]:
        """Delete the exclusive queues of a connection that is gone, one in each step."""
        owned = self._owned.get(owner, {})
        while owned:
            self.remove(next(iter(owned.values())))
            yield
        self._owned.pop(owner, None)

    # Exchanges and bindings

    def add_exchange(self, exchange: Exchange) -> None:
        """Put in an exchange that was checked."""
        self.exchanges.add(exchange)
        if exchange.is_durable:
            row = {"kind": exchange.kind, "auto_delete": exchange.is_auto_delete, "internal": exchange.is_internal}
            self._table.put(_key(EXCHANGE, exchange.name), json.dumps(row).encode())

    def remove_exchange(self, exchange: Exchange) -> None:
        """Delete an exchange, and its bindings in steps."""
        self.exchanges.remove(exchange)
        if exchange.is_durable:
            self._table.delete(_key(EXCHANGE, exchange.name))
        self._going[EXCHANGE, exchange.name] = b""
        bindings = [(exchange, queue, key) for queue, key in exchange.bindings]
        self.chores.start(self._finish_exchange(exchange, bindings))

    def _finish_exchange(self, exchange: Exchange, bindings: list[Binding]) -> Iterator[None]:
        try:
            yield from self._take_back(bindings)
        finally:
            del self._going[EXCHANGE, exchange.name]

    def bind(self, exchange: Exchange, queue: SharedQueue, key: str) -> bool:
        """Bind a queue; return whether the binding is to be durable."""
        is_durable = exchange.is_durable and queue.is_durable and queue.owner is None
        if self.exchanges.bind(exchange, queue.name, key) and is_durable:
            self._table.put(_key(BINDING, exchange.name, queue.name, key), b"{}")
        return is_durable

    def unbind(self, exchange: Exchange, queue: SharedQueue, key: str) -> None:
        """Take a binding back; harmless where there is none."""
        if self.exchanges.unbind(exchange, queue.name, key):
            if exchange.is_durable and queue.is_durable and queue.owner is None:
                self._table.delete(_key(BINDING, exchange.name, queue.name, key))
            self._maybe_remove_exchange(exchange)

    def _maybe_remove_exchange(self, exchange: Exchange) -> None:
        if exchange.is_auto_delete and not exchange.bindings and self.exchanges.find(exchange.name) is exchange:
            self.remove_exchange(exchange)

    def _bind_topic(self, key: str, queue: str) -> None:
        self._broker.bind_filter(filter_from_binding_key(key.encode()), self.light_name(queue), hides_dollar=False)

    def _unbind_topic(self, key: str, queue: str) -> None:
        self._broker.unbind_filter(filter_from_binding_key(key.encode()), self.light_name(queue))


def _key(*parts: str) -> bytes:
    return json.dumps(parts).encode()


def _load_arguments(row: dict[str, Any]) -> KeptArguments:
    """Return arguments as they were kept: pairs of type and value, or numbers alone in a table of an older gateway."""
    pairs = {name: found if isinstance(found, list) else ["long", found] for name, found in row.items()}
    return {name: Field(kind, _from_row(value)) for name, (kind, value) in pairs.items()}


def _to_row(value: object) -> object:
    return value.decode(errors="surrogateescape") if isinstance(value, bytes) else value


def _from_row(value: float | str | None) -> float | bytes | None:
    return value.encode(errors="surrogateescape") if isinstance(value, str) else value
