"""Exchanges and bindings of a virtual host: which queues a routing key reaches.

`amq.topic` is the one topic space: its bindings are the broker's, and so is its routing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from core.lmq.topic_space import binding_key_from_filter, filter_from_binding_key, topic_from_routing_key
from core.lmq.topic_trie import TopicTrie
from gateway.amqp.errors import AmqpError
from gateway.amqp.reply_codes import ReplyCode

DEFAULT = ""
AMQ_TOPIC = "amq.topic"
DIRECT = "direct"
FANOUT = "fanout"
TOPIC = "topic"
PREDECLARED = {DEFAULT: DIRECT, "amq.direct": DIRECT, "amq.fanout": FANOUT, AMQ_TOPIC: TOPIC}


class Exchange:
    """One exchange. Bindings are pairs of queue and key; binding twice is binding once."""

    __slots__ = ("_by_key", "_trie", "bindings", "is_auto_delete", "is_durable", "is_internal", "kind", "name")

    def __init__(self, name: str, kind: str, *, durable: bool, auto_delete: bool, internal: bool) -> None:
        self.name = name
        self.kind = kind
        self.is_durable = durable
        self.is_auto_delete = auto_delete
        self.is_internal = internal
        self.bindings: dict[tuple[str, str], None] = {}
        self._by_key: dict[str, dict[str, None]] = {}
        self._trie = TopicTrie()

    def bind(self, queue: str, key: str) -> bool:
        """Bind a queue; return whether that is new."""
        if (queue, key) in self.bindings:
            return False
        self.bindings[queue, key] = None
        if self.kind == TOPIC:
            self._trie.insert(filter_from_binding_key(key.encode()), queue)
        else:
            self._by_key.setdefault(key, {})[queue] = None
        return True

    def unbind(self, queue: str, key: str) -> bool:
        """Take a binding back; return whether it was there."""
        if (queue, key) not in self.bindings:
            return False
        del self.bindings[queue, key]
        if self.kind == TOPIC:
            self._trie.remove(filter_from_binding_key(key.encode()), queue)
        else:
            del self._by_key[key][queue]
            if not self._by_key[key]:
                del self._by_key[key]
        return True

    def queues(self, key: str) -> list[str]:
        """Return the queues that a message with this routing key goes to, each once."""
        if self.kind == DIRECT:
            return list(self._by_key.get(key, ()))
        if self.kind == FANOUT:
            return list(dict.fromkeys(queue for queue, _ in self.bindings))
        found: list[object] = []
        self._trie.match(topic_from_routing_key(key.encode()), found)
        return [str(queue) for queue in found]

    def reaching(self, key: str) -> list[tuple[str, str]]:
        """Return the bindings, pairs of queue and key, that lead a message with this routing key to a queue."""
        if self.kind == DIRECT:
            return [(queue, key) for queue in self._by_key.get(key, ())]
        if self.kind == FANOUT:
            return list(self.bindings)
        found = self._trie.explain(topic_from_routing_key(key.encode()))
        bindings = [
            (queue, binding_key_from_filter(name).decode()) for name, queues in found.items() for queue in queues
        ]
        return [(str(queue), binding_key) for queue, binding_key in bindings]


class ExchangeTable:
    """The exchanges of one virtual host.

    Args:
        vhost: Its name, for texts.
        on_topic_bound: Told of each binding of `amq.topic` that is new (key, queue) ...
        on_topic_unbound: ... and of each that is gone.
    """

    def __init__(
        self, vhost: str, on_topic_bound: Callable[[str, str], None], on_topic_unbound: Callable[[str, str], None]
    ) -> None:
        self.version = 0  # changes with every binding: what was computed of an older one is stale
        self._vhost = vhost
        self._on_topic_bound = on_topic_bound
        self._on_topic_unbound = on_topic_unbound
        self._by_queue: dict[str, dict[tuple[Exchange, str], None]] = {}  # the bindings of each queue
        self._exchanges = {
            name: Exchange(name, kind, durable=True, auto_delete=False, internal=False)
            for name, kind in PREDECLARED.items()
        }

    def __iter__(self) -> Iterator[Exchange]:
        """Give all exchanges."""
        return iter(list(self._exchanges.values()))

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
        self.version += 1

    def remove(self, exchange: Exchange) -> None:
        """Take an exchange out; its bindings are to be taken back too."""
        del self._exchanges[exchange.name]
        self.version += 1

    def bind(self, exchange: Exchange, queue: str, key: str) -> bool:
        """Bind a queue to an exchange; return whether that is new."""
        if not exchange.bind(queue, key):
            return False
        self._by_queue.setdefault(queue, {})[exchange, key] = None
        if exchange.name == AMQ_TOPIC:
            self._on_topic_bound(key, queue)
        self.version += 1
        return True

    def unbind(self, exchange: Exchange, queue: str, key: str) -> bool:
        """Take a binding back; return whether it was there."""
        self.version += 1
        if not exchange.unbind(queue, key):
            return False
        bound = self._by_queue[queue]
        del bound[exchange, key]
        if not bound:
            del self._by_queue[queue]
        if exchange.name == AMQ_TOPIC:
            self._on_topic_unbound(key, queue)
        return True

    def bindings_of(self, queue: str) -> list[tuple[Exchange, str]]:
        """Return exchange and key of each binding of a queue."""
        return list(self._by_queue.get(queue, ()))
