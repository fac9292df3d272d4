"""The queues of a virtual host, and the definitions that outlive the process: exchanges, queues, bindings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, Protocol

from pamqp import base

from core.broker import Broker
from core.errors import LmqError
from core.flows import Outflow
from core.lmq.queue_name import AMQP, amqp_queue_name
from core.lmq.topic_space import filter_from_binding_key
from core.parted import OrderedMap
from gateway.amqp.argument_rules import EXPIRES
from gateway.amqp.crossing import Crossings
from gateway.amqp.dead_letters import DeadLetters
from gateway.amqp.definition_rows import (
    BINDING,
    EXCHANGE,
    LINK,
    QUEUE,
    HostRows,
    binding_key,
    exchange_row,
    load_arguments,
    load_exchange,
    load_terms,
    queue_row,
    row_key,
)
from gateway.amqp.errors import AmqpError, locked_queue
from gateway.amqp.exchanges import Binding, Destination, Exchange, ExchangeTable
from gateway.amqp.host_parts import HostParts
from gateway.amqp.host_profile import HostProfile
from gateway.amqp.passing_names import PassingNames
from gateway.amqp.policies import Ruling
from gateway.amqp.queue_arguments import KeptArguments, find_terms, type_of
from gateway.amqp.queue_opening import OF_A_QUEUE, QueueOpening
from gateway.amqp.queue_rows import QueueRows
from gateway.amqp.queue_ties import QueueConsumer
from gateway.amqp.refusals import Refusals
from gateway.amqp.reply_codes import ReplyCode
from gateway.amqp.routing import TopicRelay, Way, names_of_topics
from gateway.amqp.ruled_queues import hold_queue_to
from gateway.amqp.shared_queue import SharedQueue
from gateway.amqp.taken_names import TakenNames, name_of
from gateway.amqp.unkept import Unkept

Bindings = Iterable[tuple[Exchange, Binding]]
"""Bindings, each with the exchange that it leads from."""


class Resident(Protocol):
    """A connection to a virtual host."""

    def turn_out(self, now_ms: int, reason: str = "") -> None:
        """Close for a reason: the virtual host is deleted."""


class VirtualHost:
    """Exchanges and queues of one virtual host, kept equal to what the table says.

    Everything non-durable, and everything exclusive, is forgotten by `load`: it went with its process or connection.

    Args:
        name: Its name.
        parts: What it works with, as all do.
        has_topic_space: Whether its `amq.topic` is the one topic space.
    """

    def __init__(self, name: str, parts: HostParts, *, has_topic_space: bool) -> None:
        broker = parts.broker
        on_changed = broker.router.renew_relays if has_topic_space else _nothing_leads_here
        self.name = name
        self.profile, self.outflow = HostProfile(), Outflow(broker.flows)
        self.connections: set[Resident] = set()
        self.exchanges = ExchangeTable(
            name, self._bind_topic, self._unbind_topic, on_changed, has_topic_space=has_topic_space
        )
        self.stored, self.chores = parts.stored, parts.chores
        self._broker = broker
        self._table = HostRows(parts.table, name)
        self._queues: OrderedMap[str, SharedQueue] = OrderedMap()
        self.rows = QueueRows(broker, self)
        self._owned: dict[object, dict[str, SharedQueue]] = {}  # by connection: its exclusive queues
        self.taken = TakenNames(broker.when_kept)
        self.unkept = Unkept(broker.when_kept, partial(self.chores.start, is_long=True))
        self._passing_names = PassingNames(name.encode())
        self.dead_letters = DeadLetters(broker, self, parts.desk)
        self.delays, self._expiries = parts.delays, parts.expiries
        self.pops = parts.make_pops(lambda queue: self.rows.note_opened(queue))  # noqa: PLW0108 - others take their place
        self._refusals = Refusals(broker, self.stored, self.pops, self.dead_letters, self._expiries)
        self._opening = QueueOpening(broker, name, self.pops, self._refusals)
        self._leases = parts.leases
        self.policies = parts.policies
        self._crossings = Crossings(broker, name, parts.delays.hold)
        self.exchanges.ruled_alternate = partial(parts.policies.find_alternate, name)

    @property
    def broker(self) -> Broker:
        """Where the light queues are."""
        return self._broker

    def load(self, rows: Sequence[tuple[list[Any], bytes]]) -> None:
        """Bring back what is durable of its rows, the parts of each key and its value; forget the rest."""
        for key, value in rows:
            row = json.loads(value) if key[0] in {EXCHANGE, QUEUE} else {}
            if key[0] == EXCHANGE:
                self.exchanges.add(load_exchange(key[1], row))
            elif key[0] == QUEUE and row["durable"]:
                name, auto_delete, told = key[1], row["auto_delete"], load_arguments(row["arguments"])
                self._queues[name] = queue = self._make(
                    name, self.light_name(name), durable=True, auto_delete=auto_delete, owner=None, arguments=told
                )
                queue.first_offset = row.get("first", 0)
                self.use(queue)
                if queue.is_watched or queue.terms.priority_max > 0:
                    self.open(queue)
            elif key[0] == QUEUE:
                light_name = row["light"].encode() if "light" in row else self.light_name(key[1])
                self.pops.drop(light_name, find_terms(load_arguments(row["arguments"])).priority_max)
                self._refusals.forget(light_name)
                self._table.delete(row_key(QUEUE, key[1]))
        bereft = list(filter(None, (self._load_binding(key) for key, _ in rows if key[0] in {BINDING, LINK})))
        for exchange in bereft:
            if exchange.is_auto_delete and not exchange.bindings and self.exchanges.find(exchange.name) is exchange:
                self.remove_exchange(exchange)

    def _load_binding(self, parts: list[Any]) -> Exchange | None:
        """Bring a binding back; return the exchange of one that is no more."""
        exchange = self.exchanges.find(parts[1])
        destination = self.exchanges.find(parts[2]) if parts[0] == LINK else parts[2]
        if exchange is not None and (parts[0] == LINK or destination in self._queues) and destination is not None:
            self.exchanges.bind(exchange, (destination, parts[3], load_terms(parts)))
            return None
        self._table.delete(row_key(*parts))  # a process was killed before all that hung on what was deleted had gone
        return exchange

    def unopened_floors(self) -> Iterator[tuple[int, int]]:
        """Give each queue in which nothing was ever taken, and its first offset."""
        for queue in self:
            if not queue.is_deleted and not self.pops.knows(queue.light_name):
                yield self._broker.intern_queue(queue.light_name), queue.first_offset

    def light_names(self, way: Way, keys: Iterable[str]) -> list[bytes]:
        """Return the light queues that a way leads to with these routing keys, each once."""
        names = self._light_names(way.queues)
        if way.is_topic_space:
            names = [*names_of_topics(self._broker.router.matches, keys), *names]
        return list(dict.fromkeys(names))

    def _light_names(self, queues: Iterable[str]) -> list[bytes]:
        return [self._queues[queue].light_name for queue in queues if queue in self._queues]

    def rule(self) -> Iterator[None]:
        """Have all queues and exchanges hold to the policies as they are now, a queue in each step."""
        self.exchanges.note_change()
        for queue in self:
            ruling = self._rule_queue(queue.name, queue.arguments)
            if not queue.is_deleted and hold_queue_to(queue, ruling, self._refusals):
                self.rows.note_opened(queue)  # nothing is known of it as it is now
                self.use(queue)
            if queue.is_watched and not queue.is_deleted:
                self.open(queue)
            yield

    def _rule_queue(self, name: str, arguments: KeptArguments) -> Ruling:
        return self.policies.rule_queue(self.name, name, type_of(arguments))

    def use(self, queue: SharedQueue) -> None:
        """Begin the lease of a queue that has one again: a client declares, reads or consumes it."""
        self._leases.begin(queue, self.remove)

    def light_name(self, queue: str) -> bytes:
        """Return the light queue of a queue."""
        if (found := self._queues.get(queue)) is not None:
            return found.light_name
        return self.taken.light_name((QUEUE, queue)) or amqp_queue_name(self.name.encode(), queue.encode())

    def __len__(self) -> int:
        """Return how many queues there are."""
        return len(self._queues)

    def __iter__(self) -> Iterator[SharedQueue]:
        """Give all queues, the oldest first; what is made or deleted meanwhile may be among them or not."""
        return self._queues.values()

    def __reversed__(self) -> Iterator[SharedQueue]:
        """Give all queues, the newest first; what is made or deleted meanwhile may be among them or not."""
        return self._queues.newest_values()

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
        return locked_queue(name, self.name)

    def add(
        self, name: str, *, durable: bool, auto_delete: bool, owner: object | None, arguments: KeptArguments
    ) -> SharedQueue:
        """Make a queue; it is empty whatever its light queue holds."""
        is_passing = owner is not None or (not durable and (auto_delete or EXPIRES in arguments))
        light_name = self._passing_names.take() if is_passing else self.light_name(name)
        queue = self._make(name, light_name, durable=durable, auto_delete=auto_delete, owner=owner, arguments=arguments)
        queue.is_passing = is_passing
        self._queues[name] = queue
        if owner is not None:
            self._owned.setdefault(owner, {})[name] = queue
        self.use(queue)
        self.exchanges.note_change()
        self._opening.open(queue, partial(self._begin_new, queue))
        self._opening.check(name)
        return queue

    def _begin_new(self, queue: SharedQueue, error: LmqError | None) -> None:
        """Begin with nothing in a queue, and write it down; one that cannot begin is none."""
        if error is not None:
            self.remove(queue)
            return
        self._refusals.start_empty(queue)
        queue.start_empty()
        self._begin(queue, None)
        self._table.put(row_key(QUEUE, queue.name), queue_row(queue))
        if self._is_durable(queue.name):
            self.unkept.note((QUEUE, queue.name))

    def open(self, queue: SharedQueue) -> None:
        """Have what is taken and done in a queue, and its ends, known: at once or later, `is_open` says it."""
        if not queue.is_open:
            self._opening.open(queue, partial(self._begin, queue))

    def _begin(self, queue: SharedQueue, error: LmqError | None) -> None:
        if error is None:
            queue.watch()
            self._refusals.start(queue)

    def _make(
        self, name: str, light_name: bytes, *, durable: bool, auto_delete: bool, owner: object | None,
        arguments: KeptArguments,
    ) -> SharedQueue:  # fmt: skip
        self._broker.long_names.note(light_name, AMQP, self.name.encode(), name.encode())
        return SharedQueue(
            self._broker,
            name,
            light_name,
            self.stored,
            durable=durable,
            auto_delete=auto_delete,
            owner=owner,
            arguments=arguments,
            pops=self.pops,
            burial=self.dead_letters,
            expiries=self._expiries,
            ruling=self._rule_queue(name, arguments),
        )

    def remove(self, queue: SharedQueue, by: object = None) -> list[QueueConsumer]:
        """Delete a queue, and its bindings in steps; exchanges that delete themselves without bindings go too.

        Its consumers are told, but for those on the channel `by`, which are returned.
        """
        told_later, steps = self.remove_in_steps(queue, by)
        self.chores.start(steps)
        return told_later

    def remove_in_steps(self, queue: SharedQueue, by: object = None) -> tuple[list[QueueConsumer], Iterator[None]]:
        """Delete a queue as `remove` does; return its consumers to be told, and the steps that its bindings go in."""
        self._table.delete(row_key(QUEUE, queue.name))
        self._leases.end(queue)
        del self._queues[queue.name]
        if queue.owner is not None:
            self._owned[queue.owner].pop(queue.name)
        self._refusals.stop(queue)
        self._opening.close(queue)
        told_later = queue.delete(by)
        self.rows.note_gone(queue)
        self.exchanges.note_change()
        bindings = self.exchanges.bindings_to(queue.name)
        self.taken.take((QUEUE, queue.name), queue.light_name)
        return told_later, self._finish_removal(queue, bindings)

    def _finish_removal(self, queue: SharedQueue, bindings: Bindings) -> Iterator[None]:
        """Take back the bindings of a deleted queue; until that is done, and durable, nothing new may have its name."""
        try:
            yield from self._take_back(bindings)
        finally:
            self.taken.give_back((QUEUE, queue.name), is_durable=queue.is_durable and queue.owner is None)
            if queue.is_passing:
                self._passing_names.give_back(queue.light_name)

    def _take_back(self, bindings: Bindings) -> Iterator[None]:
        for exchange, binding in bindings:
            self.unbind(exchange, binding)
            yield

    def must_wait(self, method: base.Frame, last_queue: str) -> bool:
        """Return whether a method is to come again: its queue is being opened, or what had the name is not yet gone."""
        if (name := name_of(method)) is not None and name in self.taken:
            return True
        return isinstance(method, OF_A_QUEUE) and self._must_open(method.queue or last_queue)

    def _must_open(self, name: str) -> bool:
        self._opening.check(name)
        if (queue := self._queues.get(name)) is not None:
            self.open(queue)
        return queue is not None and not queue.is_open

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
            self._table.put(row_key(EXCHANGE, exchange.name), exchange_row(exchange))
            self.unkept.note((EXCHANGE, exchange.name))

    def remove_exchange(self, exchange: Exchange) -> None:
        """Delete an exchange, and the bindings from and to it in steps."""
        self.exchanges.remove(exchange)
        if exchange.is_durable:
            self._table.delete(row_key(EXCHANGE, exchange.name))
            self.unkept.note((EXCHANGE, exchange.name))
        self.taken.take((EXCHANGE, exchange.name))
        leading_on = ((exchange, binding) for binding in exchange.bindings)
        self.chores.start(self._finish_exchange(exchange, chain(leading_on, self.exchanges.bindings_to(exchange))))

    def _finish_exchange(self, exchange: Exchange, bindings: Bindings) -> Iterator[None]:
        try:
            yield from self._take_back(bindings)
        finally:
            self.taken.give_back((EXCHANGE, exchange.name), is_durable=False)

    def bind(self, exchange: Exchange, binding: Binding) -> bool:
        """Bind a queue or an exchange to an exchange; return whether the binding is to be durable, and is not kept yet.

        Raises:
            DiskFullError: It is to be durable, and there is no room.
        """
        if not (exchange.is_durable and self._is_durable(binding[0])):
            self.exchanges.bind(exchange, binding)
            return False
        key = exchange.name, binding
        if binding not in exchange.bindings:
            self._broker.check_room()
            self.exchanges.bind(exchange, binding)
            self._table.put(binding_key(exchange, binding), b"{}")
            self.unkept.note(key)
        return key in self.unkept

    def unbind(self, exchange: Exchange, binding: Binding) -> bool:
        """Take a binding back, harmless where there is none; return whether it was durable."""
        if not self.exchanges.unbind(exchange, binding):
            return False
        if exchange.is_durable:
            self._table.delete(binding_key(exchange, binding))
        is_bare = exchange.is_auto_delete and not exchange.bindings
        if is_bare and self.exchanges.find(exchange.name) is exchange:
            self.remove_exchange(exchange)
        return exchange.is_durable and self._is_durable(binding[0])

    def _is_durable(self, destination: Destination) -> bool:
        if isinstance(destination, Exchange):
            return destination.is_durable
        queue = self._queues.get(destination)
        return queue is not None and queue.is_durable and queue.owner is None

    def _bind_topic(self, key: str, destination: Destination) -> None:
        topic_filter = filter_from_binding_key(key.encode())
        if isinstance(destination, Exchange):
            self._broker.router.bind_relay(topic_filter, self._relay_of(destination))
        else:
            self._broker.bind_filter(topic_filter, self.light_name(destination), hides_dollar=False)

    def _unbind_topic(self, key: str, destination: Destination) -> None:
        topic_filter = filter_from_binding_key(key.encode())
        if isinstance(destination, Exchange):
            self._broker.router.unbind_relay(topic_filter, self._relay_of(destination))
            self._crossings.drop(destination)  # one that is still bound is asked for again
        else:
            self._broker.unbind_filter(topic_filter, self.light_name(destination))

    def _relay_of(self, exchange: Exchange) -> TopicRelay:
        """Return the relay that stands for an exchange in the one topic space; relays of one exchange are equal."""
        stand_in = partial(self._crossings.stand_for, exchange, self.exchanges, self._light_names)
        return TopicRelay(exchange, self.exchanges, self._light_names, stand_in)


def _nothing_leads_here() -> None:
    """From the one topic space, so nothing is to be found out anew there."""
