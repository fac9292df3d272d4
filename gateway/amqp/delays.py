"""Messages that wait at an exchange of type `x-delayed-message`, on the broker's timer, and where they go then.

Source: docs/protocols/amqp.md, "Delayed messages".
"""

from __future__ import annotations

import json
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Sequence
from typing import Protocol

from core.broker import Broker
from core.lmq.topic_space import topic_from_routing_key
from core.message import Route
from core.properties import (
    AMQP,
    CLIENT,
    EXCHANGE,
    PROTOCOL,
    ROUTING_KEY,
    TOPIC,
    USER,
    WAITING_AT,
    decode_properties,
    encode_properties,
)
from core.schedule.hand_on import Destination
from core.schedule.slots import encode_due
from gateway.amqp.deaths import add_number
from gateway.amqp.definition_rows import DEFAULT_VHOST
from gateway.amqp.errors import AmqpError
from gateway.amqp.exchanges import Exchange, ExchangeTable
from gateway.amqp.property_block import EXTRA_BYTES_MAX, BlockReader
from gateway.amqp.routing import Way, find_way
from gateway.amqp.traits import DELAY, Traits

_ORIGIN = (PROTOCOL, CLIENT, USER)


class Surroundings(Protocol):
    """The virtual host, as far as messages go on through it."""

    exchanges: ExchangeTable

    def light_names(self, way: Way, key: str) -> list[bytes]:
        """Return the light queues that a way leads to with a routing key."""


class Delays:
    """Puts messages of all virtual hosts into the timer, and routes them when it hands them on.

    Args:
        broker: Has the timer.
        find_vhost: Gives a virtual host by its name, None where it is gone.
    """

    def __init__(self, broker: Broker, find_vhost: Callable[[str], Surroundings | None]) -> None:
        self._broker = broker
        self._find_vhost = find_vhost
        self._metrics = broker.metrics.door("amqp")
        self._reader = BlockReader()
        self._room = bytearray(EXTRA_BYTES_MAX)
        broker.timer.resolve(WAITING_AT, self._resolve)

    def route(self, vhost: str, exchange: str, keys: Sequence[str], delay_ms: int, now_ms: int) -> Route:
        """Return the route of a message that is to come to an exchange so much later, by these routing keys."""
        due_ms, queue_id = self._broker.timer.admit(now_ms + delay_ms, now_ms)
        where: list[object] = [] if vhost == DEFAULT_VHOST else [[vhost]]
        text = json.dumps([*where, exchange, *keys], ensure_ascii=False).encode()
        waiting = encode_properties([(WAITING_AT, b2a_base64(text, newline=False))])
        return self._broker.timer.route(queue_id, waiting + encode_due(due_ms))

    def _resolve(self, text: bytes, flag: int) -> Destination | None:
        """Return where a message goes that is due; None where nothing is bound, or its exchange is gone."""
        end = text.find(b"\x02")
        parts = json.loads(a2b_base64(text[len(WAITING_AT) + 1 : end]))
        vhost_name = parts.pop(0)[0] if isinstance(parts[0], list) else DEFAULT_VHOST
        name, *keys = parts
        said = decode_properties(text[end + 1 :])
        block = a2b_base64(said[AMQP])
        delayed = add_number(block, DELAY.encode(), -Traits("", block).delay_said())
        vhost = self._find_vhost(vhost_name)
        exchange = None if vhost is None else vhost.exchanges.find(name)
        route = None
        if vhost is not None and exchange is not None:
            route = self._route(vhost, exchange, keys, Traits(keys[0], delayed))
        if route is None:
            self._metrics.drop("unroutable")
            return None
        origin = encode_properties([(one, said[one]) for one in _ORIGIN if one in said])
        return Destination(route, route.topic, origin + self._extra(delayed, block), flag)

    def _route(self, vhost: Surroundings, exchange: Exchange, keys: Sequence[str], traits: Traits) -> Route | None:
        names: dict[bytes, None] = {}
        for key in keys:
            way = find_way(vhost.exchanges, exchange, key, traits)
            names |= dict.fromkeys(vhost.light_names(way, key))
        if not names:
            return None
        topic = topic_from_routing_key(keys[0].encode())
        items = [(TOPIC, topic)] if topic else []
        prefix = encode_properties([*items, (EXCHANGE, exchange.name.encode()), (ROUTING_KEY, keys[0].encode())])
        return self._broker.route_queues(prefix, list(names))

    def _extra(self, block: bytes, before: bytes) -> bytes:
        """Return a block as a record's properties; where it is too large now, that of the message as it was."""
        try:
            self._reader.read(block, 0, len(block))
        except AmqpError:
            block = before
            self._reader.read(block, 0, len(block))
        return bytes(self._room[: self._reader.write_extra(block, 0, len(block), self._room, 0)])
