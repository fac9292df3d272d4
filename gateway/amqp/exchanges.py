"""Exchanges and bindings of a virtual host: where a routing key, or a message's headers, lead from each.

Of one virtual host `amq.topic` is the one topic space: its bindings are the broker's, and so is its routing.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from typing import cast

from core.flows import Flow
from core.lmq.topic_space import binding_key_from_filter, filter_from_binding_key, topic_from_routing_key
from core.lmq.topic_trie import TopicTrie
from core.parted import LongDict, OrderedMap, PartedMap, outgrow
from gateway.amqp.binding_terms import Terms, plain_terms
from gateway.amqp.errors import AmqpError
from gateway.amqp.federation import FEDERATION_UPSTREAM, Downstream
from gateway.amqp.field_table import Field
from gateway.amqp.hash_choice import HashChoice, draw_place
from gateway.amqp.header_match import HeaderIndex, HeaderMatch, parse_match
from gateway.amqp.reply_codes import ReplyCode
from gateway.amqp.traits import HASH_HEADER, HashedBy, Traits

DEFAULT = ""
DEFAULT_RIGHT = "amq.default"
AMQ_TOPIC = "amq.topic"
AMQ_TRACE = "amq.rabbitmq.trace"  # that nothing is published to: there is no firehose
DIRECT = "direct"
FANOUT = "fanout"
TOPIC = "topic"
HEADERS = "headers"
CONSISTENT_HASH = "x-consistent-hash"
RANDOM = "x-random"
MODULUS_HASH = "x-modulus-hash"
LOCAL_RANDOM = "x-local-random"  # of RabbitMQ 4; all queues are on one node
DELAYED = "x-delayed-message"
KINDS = (DIRECT, FANOUT, TOPIC, HEADERS, CONSISTENT_HASH, MODULUS_HASH, RANDOM, LOCAL_RANDOM, FEDERATION_UPSTREAM)
"""The types of exchanges; of those that delay, the types that they may route like."""
PREDECLARED = {
    DEFAULT: DIRECT,
    "amq.direct": DIRECT,
    "amq.fanout": FANOUT,
    "amq.headers": HEADERS,
    "amq.match": HEADERS,
    AMQ_TOPIC: TOPIC,
    AMQ_TRACE: TOPIC,
}


def exchange_right(name: str) -> str:
    """Return the name that rights know an exchange by: the default one has none of its own."""
    return name or DEFAULT_RIGHT


class Exchange:
    """One exchange. Binding twice with the same key and arguments is binding once.

    Args:
        name: Its name.
        kind: Its type.
        durable: Whether it outlives the process.
        auto_delete: Whether it goes with its last binding.
        internal: Whether only other exchanges lead to it.
        alternate: The exchange that takes what no binding here takes.
        hashed_by: What of a message is hashed, where that is not its routing key.
        delayed_type: Of an exchange that delays, the type that it routes like.
        downstream: Of the exchange of a federation, where it leads.
    """

    __slots__ = (
        "_by_hash", "_by_headers", "_by_key", "_picks", "_trie", "alternate", "bindings", "change_count", "downstream",
        "flow", "hashed_by", "is_auto_delete", "is_durable", "is_internal", "kind", "name", "rule",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        kind: str,
        *,
        durable: bool,
        auto_delete: bool,
        internal: bool,
        alternate: str | None = None,
        hashed_by: HashedBy | None = None,
        delayed_type: str | None = None,
        downstream: Downstream | None = None,
    ) -> None:
        self.name = name
        self.kind = kind
        rule = kind if delayed_type is None else delayed_type
        self.rule = RANDOM if rule == LOCAL_RANDOM else rule
        self.is_durable = durable
        self.is_auto_delete = auto_delete
        self.is_internal = internal
        self.alternate = alternate
        self.hashed_by = hashed_by
        self.downstream = downstream
        self.flow = Flow()
        self.bindings: OrderedMap[Binding, Binding] = OrderedMap()
        self.change_count = 0  # of bindings, made and taken back
        self._by_key: PartedMap[str, LongDict[Destination, int]] = PartedMap({})
        self._by_headers: HeaderIndex[Destination] = HeaderIndex()
        self._by_hash: HashChoice[Destination] = HashChoice()
        self._picks: list[Destination] | None = None
        self._trie = TopicTrie()

    @property
    def is_delaying(self) -> bool:
        """Whether messages that say how long wait here before they have their way."""
        return self.kind == DELAYED

    @property
    def asks_headers(self) -> bool:
        """Whether messages of one routing key part here by their headers."""
        if self.downstream is not None:
            return True
        return self.rule == HEADERS or (self.hashed_by is not None and self.hashed_by[0] == HASH_HEADER)

    @property
    def asks_each(self) -> bool:
        """Whether messages of one routing key and the same headers part here, too."""
        return self.rule == RANDOM or (self.hashed_by is not None and self.hashed_by[0] != HASH_HEADER)

    def read_terms(self, arguments: Mapping[str, Field]) -> Terms:
        """Return what a binding that leads from here says by its arguments.

        Raises:
            AmqpError: PRECONDITION_FAILED: They ask for something that headers exchanges do not know, or are too many.
        """
        return parse_match(arguments) if self.rule == HEADERS else plain_terms(arguments)

    def bind(self, binding: Binding) -> bool:
        """Bind a queue or an exchange; return whether that is new."""
        if binding in self.bindings:
            return False
        self.bindings[binding] = binding
        self.change_count += 1
        self._picks = None
        destination, key, terms = binding
        if isinstance(terms, HeaderMatch):
            self._by_headers.add(destination, terms)
        elif self.rule == TOPIC:
            self._trie.insert(filter_from_binding_key(key.encode()), destination)
        elif self.rule == CONSISTENT_HASH:
            self._by_hash.add(destination, _unique_name(destination), key)
        else:
            self._put_by_key(key, destination)
        return True

    def unbind(self, binding: Binding) -> bool:
        """Take a binding back; return whether it was there."""
        if binding not in self.bindings:
            return False
        del self.bindings[binding]
        self.change_count += 1
        self._picks = None
        destination, key, terms = binding
        if isinstance(terms, HeaderMatch):
            self._by_headers.remove(destination, terms)
        elif self.rule == TOPIC:
            self._trie.remove(filter_from_binding_key(key.encode()), destination)
        elif self.rule == CONSISTENT_HASH:
            self._by_hash.remove(destination, key)
        else:
            self._drop_by_key(key, destination)
        return True

    def _put_by_key(self, key: str, destination: Destination) -> None:
        bound = self._by_key[key] = outgrow(self._by_key.get(key, {}))
        bound[destination] = (bound.get(destination) or 0) + 1  # bindings of one key differ by their arguments

    def _drop_by_key(self, key: str, destination: Destination) -> None:
        bound = self._by_key.get(key)
        assert bound is not None
        bound[destination] -= 1
        if not bound[destination]:
            del bound[destination]
        if not bound:
            self._by_key.pop(key)

    def destinations(self, key: str, traits: Traits) -> list[Destination]:
        """Return what a message with this routing key and these traits goes to from here, each once."""
        if self.rule == DIRECT:
            return list(self._by_key.get(key) or ())
        if self._goes_to_all(traits):
            return list(dict.fromkeys(binding[0] for binding in self.bindings))
        if self.rule == HEADERS:
            return list(dict.fromkeys(destination for destination, _ in self._by_headers.find(traits.headers)))
        if self.rule in CHOOSING:
            return self._choose(traits)
        if self.downstream is not None:
            return []
        found: list[object] = []
        self._trie.match(topic_from_routing_key(key.encode()), found)
        return cast("list[Destination]", found)

    def _goes_to_all(self, traits: Traits) -> bool:
        """Return whether every binding takes the message, whatever its key."""
        return self.rule == FANOUT or (self.downstream is not None and self.downstream.takes(traits.headers))

    def _choose(self, traits: Traits) -> list[Destination]:
        """Return the one destination of a message, the same for all of its keys."""
        chosen = traits.chosen.get(self)
        if chosen is not None:
            return cast("list[Destination]", chosen)
        found: list[Destination] = []
        if self.rule == CONSISTENT_HASH:
            one = self._by_hash.find(traits.hashed(self.hashed_by))
            if one is not None:
                found = [one]
        elif self.bindings:
            picks = self._find_picks()
            by_hash = self.rule == MODULUS_HASH
            found = [picks[draw_place(traits.hashed(None), len(picks))] if by_hash else secrets.choice(picks)]
        traits.chosen[self] = cast("list[object]", found)
        return found

    def _find_picks(self) -> list[Destination]:
        """Return what is bound, once for each binding, in an order that a restart does not change."""
        if self._picks is None:
            self._picks = sorted((binding[0] for binding in self.bindings), key=_unique_name)
        return self._picks

    def reaching(self, key: str, traits: Traits) -> list[tuple[Destination, str]]:
        """Return the bindings that lead such a message on, each as where it leads and its key.

        Where more decides than its key and headers, all are returned that may do so, with a word about it.
        """
        if self.rule == DIRECT:
            return [(destination, key) for destination in self._by_key.get(key) or ()]
        if self._goes_to_all(traits):
            return list(dict.fromkeys((destination, bound) for destination, bound, _ in self.bindings))
        if self.rule == HEADERS:
            return [(one, match.kind) for one, match in dict.fromkeys(self._by_headers.find(traits.headers))]
        if self.rule in CHOOSING:
            return self._explain_choice(traits)
        if self.downstream is not None:
            return []
        found = self._trie.explain(topic_from_routing_key(key.encode()))
        return [
            (cast("Destination", one), binding_key_from_filter(name).decode())
            for name, bound in found.items()
            for one in bound
        ]

    def _explain_choice(self, traits: Traits) -> list[tuple[Destination, str]]:
        if self.rule == RANDOM:
            count = len(self.bindings)
            return [(one, f"{key} (one of {count} by chance)".strip()) for one, key, _ in self.bindings]
        if self.rule == MODULUS_HASH:
            return [(one, f"by hash, one of {len(self.bindings)}") for one in self._choose(traits)]
        if self.hashed_by is None:
            return [(one, f"weight {self._by_hash.weight(one)}") for one in self._choose(traits)]
        source, name = self.hashed_by
        said = f"(one of {len(self._by_hash)} by {source.removeprefix('hash-')} {name})"
        bound = dict.fromkeys(binding[0] for binding in self.bindings)
        return [(one, f"weight {self._by_hash.weight(one)} {said}") for one in bound]


CHOOSING = (CONSISTENT_HASH, MODULUS_HASH, RANDOM)
"""The types that give each message to one of their bindings."""
Destination = str | Exchange
"""What a binding leads to: a queue, by its name, or an exchange."""
Binding = tuple[Destination, str, Terms]
"""What it leads to, its key, and what it says besides."""


def _unique_name(destination: Destination) -> bytes:
    return b"q" + destination.encode() if isinstance(destination, str) else b"x" + destination.name.encode()


def _no_alternate(_exchange: str) -> None:
    return


class ExchangeTable:
    """The exchanges of one virtual host.

    Args:
        vhost: Its name, for texts.
        on_topic_bound: Told of each binding of `amq.topic` that is new ...
        on_topic_unbound: ... and of each that is gone.
        on_changed: Told after each change of what leads where.
        has_topic_space: Whether `amq.topic` is the one topic space; else it is an exchange like any other.
    """

    def __init__(
        self,
        vhost: str,
        on_topic_bound: Callable[[str, Destination], None],
        on_topic_unbound: Callable[[str, Destination], None],
        on_changed: Callable[[], None],
        *,
        has_topic_space: bool = True,
    ) -> None:
        self.ruled_alternate: Callable[[str], object] = _no_alternate  # what policies say of an exchange
        self.version = 0  # changes with every binding: what was computed of an older one is stale
        self._vhost = vhost
        self._on_topic_bound = on_topic_bound
        self._on_topic_unbound = on_topic_unbound
        self._on_changed = on_changed
        self._by_destination: PartedMap[Destination, LongDict[tuple[Exchange, str, Terms], bool]]
        self._by_destination = PartedMap({})
        self._exchanges = {
            name: Exchange(name, kind, durable=True, auto_delete=False, internal=name == AMQ_TRACE)
            for name, kind in PREDECLARED.items()
        }
        self.topic_space = self._exchanges[AMQ_TOPIC] if has_topic_space else None
        self.flow = Flow()  # of all exchanges together
        for exchange in self._exchanges.values():
            exchange.flow.whole = self.flow

    def __iter__(self) -> Iterator[Exchange]:
        """Give all exchanges."""
        return iter(list(self._exchanges.values()))

    def __len__(self) -> int:
        """Return how many exchanges there are."""
        return len(self._exchanges)

    def note_change(self) -> None:
        """Have everything found out anew that was computed."""
        self.version += 1
        self._on_changed()

    def find(self, name: str) -> Exchange | None:
        """Return an exchange, or None."""
        return self._exchanges.get(name)

    def get(self, name: str) -> Exchange:
        """Return an exchange.

        Raises:
            AmqpError: NOT_FOUND.
        """
        found = self._exchanges.get(name)
        if found is None:
            raise AmqpError(ReplyCode.NOT_FOUND, f"no exchange '{name}' in vhost '{self._vhost}'")
        return found

    def add(self, exchange: Exchange) -> None:
        """Put in an exchange that was checked."""
        self._exchanges[exchange.name] = exchange
        exchange.flow.whole = self.flow
        self.note_change()

    def remove(self, exchange: Exchange) -> None:
        """Take an exchange out; its bindings are to be taken back too."""
        del self._exchanges[exchange.name]
        self.note_change()

    def bind(self, exchange: Exchange, binding: Binding) -> bool:
        """Bind a queue or an exchange to an exchange; return whether that is new."""
        if not exchange.bind(binding):
            return False
        destination, key, terms = binding
        bound = self._by_destination[destination] = outgrow(self._by_destination.get(destination, {}))
        bound[exchange, key, terms] = True
        if exchange is self.topic_space:
            self._on_topic_bound(key, destination)
        self.note_change()
        return True

    def unbind(self, exchange: Exchange, binding: Binding) -> bool:
        """Take a binding back; return whether it was there."""
        if not exchange.unbind(binding):
            return False
        destination, key, terms = binding
        bound = self._by_destination.get(destination)
        assert bound is not None
        del bound[exchange, key, terms]
        if not bound:
            self._by_destination.pop(destination)
        if exchange is self.topic_space:
            self._on_topic_unbound(key, destination)
        self.note_change()
        return True

    def let_go(self) -> None:
        """Take exchanges off each other, in memory: the collector of cycles looks at no trie, decision 0010.

        Nothing is found out anew for that, which would cost as much for each binding as for all of them.
        """
        for exchange in list(self):
            for source, binding in self.bindings_to(exchange):
                source.unbind(binding)
                if source is self.topic_space:
                    self._on_topic_unbound(binding[1], exchange)
            self._by_destination.pop(exchange)

    def bindings_to(self, destination: Destination) -> Iterator[tuple[Exchange, Binding]]:
        """Give the bindings that lead to a queue or an exchange, each with the exchange that it leads from.

        They may come and go meanwhile.
        """
        bound = self._by_destination.get(destination, {})
        for exchange, key, terms in list(bound) if isinstance(bound, dict) else bound:
            yield exchange, (destination, key, terms)
