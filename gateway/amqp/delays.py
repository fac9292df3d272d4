"""Messages that wait at an exchange of type `x-delayed-message`, on the broker's timer, and where they go then.

Source: docs/protocols/amqp.md, "Delayed messages".
"""

from __future__ import annotations

import json
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from core.broker import Broker
from core.lmq.topic_space import topic_from_routing_key
from core.message import Route
from core.properties import (
    AMQP,
    CLIENT,
    DIED_IN,
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
from gateway.amqp.crossing import KEY_BYTES_MAX, told_block
from gateway.amqp.deaths import add_number
from gateway.amqp.definition_rows import DEFAULT_VHOST
from gateway.amqp.errors import AmqpError
from gateway.amqp.exchanges import ExchangeTable
from gateway.amqp.property_block import EXTRA_BYTES_MAX, BlockReader
from gateway.amqp.routing import WaitingPlace, Way, find_way
from gateway.amqp.stored_properties import StoredProperties
from gateway.amqp.traits import DELAY, Traits

_ORIGIN = (PROTOCOL, CLIENT, USER, DIED_IN)
NAMES_BYTES_MAX = 2_048  # of exchanges that one waiting record names: the rest of its properties is the message's


def read_place(said: bytes) -> WaitingPlace:
    """Return what the property `WAITING_AT` says.

    Raises:
        ValueError: It is not ours.
    """
    parts = json.loads(a2b_base64(said))
    head = parts.pop(0) if isinstance(parts[0], list) else [DEFAULT_VHOST]
    first, *keys = parts
    return WaitingPlace(head[0], head[1] if len(head) > 1 else first, [first, *head[2:]], keys)


class Surroundings(Protocol):
    """The virtual host, as far as messages go on through it."""

    exchanges: ExchangeTable

    def light_names(self, way: Way, keys: Sequence[str]) -> list[bytes]:
        """Return the light queues that a way leads to with these routing keys."""


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
        self._found = StoredProperties()
        self._room = bytearray(EXTRA_BYTES_MAX)
        broker.timer.resolve(WAITING_AT, self._resolve)

    def hold(self, place: WaitingPlace, delay_ms: int, now_ms: int) -> list[Route]:
        """Return the routes into the timer of a message that is to go on so much later.

        It is one route where the names of the exchanges are not very many: a message that waits at several waits once.
        """
        due_ms, queue_id = self._broker.timer.admit(now_ms + delay_ms, now_ms)
        routes = []
        for first, *others in _share_out(place.exchanges):
            where: list[object] = []
            if others or place.published_to != first:
                where = [[place.vhost, place.published_to, *others]]
            elif place.vhost != DEFAULT_VHOST:
                where = [[place.vhost]]
            text = json.dumps([*where, first, *place.keys], ensure_ascii=False).encode()
            waiting = encode_properties([(WAITING_AT, b2a_base64(text, newline=False))])
            routes.append(self._broker.timer.route(queue_id, waiting + encode_due(due_ms)))
        return routes

    def _resolve(self, text: bytes, flag: int) -> Destination | None:
        """Return where a message goes that is due; None where nothing is bound, or its exchanges are gone."""
        end = text.find(b"\x02")
        place = read_place(text[len(WAITING_AT) + 1 : end])
        properties = text[end + 1 :]
        said = decode_properties(properties)
        if AMQP in said:
            block = a2b_base64(said[AMQP])
            delayed = add_number(block, DELAY.encode(), -Traits("", block).delay_said())
            origin = encode_properties([(one, said[one]) for one in _ORIGIN if one in said])
            properties = origin + self._extra(delayed, block)
        else:  # of another door: it stays as it came
            properties = _negate(properties, Traits("", told_block(self._found, properties, b"", flag, 0)).delay_said())
            delayed = told_block(self._found, properties, b"", flag, 0)
        route = self._route(place, Traits(place.keys[0], delayed))
        if route is None:
            self._metrics.drop("unroutable")
            return None
        return Destination(route, route.topic, properties, flag)

    def _route(self, place: WaitingPlace, traits: Traits) -> Route | None:
        vhost = self._find_vhost(place.vhost)
        if vhost is None:
            return None
        names: dict[bytes, None] = {}
        there = [found for name in place.exchanges if (found := vhost.exchanges.find(name)) is not None]
        for exchange in there:
            way = find_way(vhost.exchanges, exchange, place.keys, traits)
            names |= dict.fromkeys(vhost.light_names(way, place.keys))
        if not names:
            return None
        raw_key = place.keys[0].encode()
        topic = topic_from_routing_key(raw_key)
        items = [(TOPIC, topic)] if topic else []
        items.append((EXCHANGE, place.published_to.encode()))
        if len(raw_key) <= KEY_BYTES_MAX:  # else the topic says it
            items.append((ROUTING_KEY, raw_key))
        return self._broker.route_queues(encode_properties(items), list(names))

    def _extra(self, block: bytes, before: bytes) -> bytes:
        """Return a block as a record's properties; where it is too large now, that of the message as it was."""
        try:
            self._reader.read(block, 0, len(block))
        except AmqpError:
            block = before
            self._reader.read(block, 0, len(block))
        return bytes(self._room[: self._reader.write_extra(block, 0, len(block), self._room, 0)])


def _share_out(exchanges: Sequence[str]) -> Iterator[list[str]]:
    """Give the names in parts that fit a record, each of them not empty."""
    part: list[str] = []
    size = 0
    for name in exchanges:
        size += len(name.encode())
        if part and size > NAMES_BYTES_MAX:
            yield part
            part, size = [], len(name.encode())
        part.append(name)
    yield part


def _negate(properties: bytes, delay_ms: int) -> bytes:
    """Return the properties of another door's message with its `x-delay` negated."""
    name = DELAY.encode()
    delay = b"%d" % -delay_ms
    parts = [part for part in properties.split(b"\x02") if part and not part.startswith(name + b"\x01")]
    return b"".join(part + b"\x02" for part in parts) + encode_properties([(name, delay)])
