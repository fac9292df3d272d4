"""Where a message goes from an exchange, through all exchanges that are bound to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from core.lmq.topic_space import routing_key_from_topic, topic_from_routing_key
from gateway.amqp.exchanges import DEFAULT, Destination, Exchange, ExchangeTable
from gateway.amqp.traits import Traits


class WaitingPlace(NamedTuple):
    """Where a message waits before it goes on.

    Args:
        vhost: The name of the virtual host.
        published_to: The exchange that the message was published to, which consumers are told.
        exchanges: The names of those at which it waits.
        keys: Its routing keys, the one that consumers are told first.
    """

    vhost: str
    published_to: str
    exchanges: list[str]
    keys: list[str]


class Way:
    """What a walk through the exchanges found.

    `queues` are their names, each once; `waits` the names of exchanges at which it waits before it goes on.
    `is_topic_space`: the message also goes to all that the one topic space leads to. `asks_headers`: another message
    with this key may go elsewhere. `asks_each`: also one with the same headers.
    """

    __slots__ = ("asks_each", "asks_headers", "is_topic_space", "queues", "waits")

    def __init__(self) -> None:
        self.queues: dict[str, None] = {}
        self.waits: dict[str, None] = {}
        self.is_topic_space = False
        self.asks_headers = False
        self.asks_each = False


def find_way(table: ExchangeTable, start: Exchange, keys: Sequence[str], traits: Traits) -> Way:
    """Return where a message with these routing keys, one or more, goes that is published to `start`.

    Each exchange is passed once, however they are bound in circles, with all the keys. What no binding of an exchange
    takes by any of them goes to its alternate, if that is there. An exchange that delays holds a message that says how
    long.
    """
    way = Way()
    passed = {start: None}
    is_topic = any(topic_from_routing_key(key.encode()) for key in keys)
    todo = [start]
    for exchange in todo:
        if is_topic and exchange is table.topic_space:
            way.is_topic_space = True
            continue
        way.asks_headers = way.asks_headers or exchange.asks_headers or exchange.is_delaying
        if exchange.is_delaying and traits.delay_ms():
            way.waits[exchange.name] = None
            continue
        way.asks_each = way.asks_each or exchange.asks_each
        found: list[Destination] = []
        for key in keys:
            found += [key] if exchange.name == DEFAULT else exchange.destinations(key, traits)
        for destination in found or alternate_of(table, exchange):
            if isinstance(destination, str):
                way.queues[destination] = None
            elif destination not in passed:
                passed[destination] = None
                todo.append(destination)
    return way


def alternate_of(table: ExchangeTable, exchange: Exchange) -> list[Destination]:
    """Return the exchange that takes what no binding takes, if there is one."""
    name = alternate_name(table, exchange)
    found = None if name is None else table.find(name)
    return [] if found is None else [found]


def alternate_name(table: ExchangeTable, exchange: Exchange) -> str | None:
    """Return the name of that exchange, which need not be there; None where nothing is said."""
    name = table.ruled_alternate(exchange.name) if exchange.alternate is None else exchange.alternate
    return name if isinstance(name, str) else None


def names_of_topics(matches: Callable[[bytes], Iterable[bytes]], keys: Iterable[str]) -> list[bytes]:
    """Return the light queues that the topics of routing keys lead to, as `matches` says; a key may have no topic."""
    topics = [topic for key in keys if (topic := topic_from_routing_key(key.encode()))]
    return [name for topic in topics for name in matches(topic)]


class TopicRelay:
    """An exchange that is bound to `amq.topic`: what it leads to is led to by topics of every door.

    Args:
        exchange: It.
        table: The exchanges it may lead to.
        light_names: Gives the light queues of queues.
        stand_in: Gives the light queue that stands for the exchange where more than a topic decides, None for none.
    """

    __slots__ = ("_exchange", "_light_names", "_stand_in", "_table")

    def __init__(
        self,
        exchange: Exchange,
        table: ExchangeTable,
        light_names: Callable[[Iterable[str]], list[bytes]],
        stand_in: Callable[[], bytes | None],
    ) -> None:
        self._exchange = exchange
        self._table = table
        self._light_names = light_names
        self._stand_in = stand_in

    def __eq__(self, other: object) -> bool:
        """Whether both stand for the same exchange."""
        return isinstance(other, TopicRelay) and other._exchange is self._exchange

    def __hash__(self) -> int:
        """Return the same for the same exchange."""
        return hash(self._exchange)

    def names(self, topic: bytes) -> list[bytes]:
        """Return the light queues that a topic leads to here."""
        key = routing_key_from_topic(topic).decode(errors="replace")
        way = find_way(self._table, self._exchange, (key,), Traits(key))
        if way.asks_headers or way.asks_each:
            stand_in = self._stand_in()
            if stand_in is not None:
                return [stand_in]
        return self._light_names(way.queues)
