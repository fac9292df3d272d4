"""Exchanges behind `amq.topic` that look at more than the routing key, asked for each message of every door.

A light queue stands for each in the routes of topics, which caches keep; see `core/queues/crossroads.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from core.broker import Broker
from core.errors import LmqError
from core.lmq.queue_name import amqp_crossing_name
from core.lmq.topic_space import routing_key_from_topic
from core.properties import TOPIC, decode_properties
from gateway.amqp.exchanges import Exchange, ExchangeTable
from gateway.amqp.routing import find_way
from gateway.amqp.stored_properties import StoredProperties
from gateway.amqp.traits import Traits

BYTES_EACH = 5  # of a block, for each of the properties
BYTES_MORE = 512
KEY_BYTES_MAX = 255  # what is longer is told cut, and the topic in a header beside it

LightNames = Callable[[Iterable[str]], list[bytes]]


class Crossing:
    """One such exchange.

    Args:
        exchange: It.
        table: The exchanges that it may lead to.
        light_names: Gives the light queues of queues.
    """

    def __init__(self, exchange: Exchange, table: ExchangeTable, light_names: LightNames) -> None:
        self._exchange = exchange
        self._table = table
        self._light_names = light_names
        self._properties = StoredProperties()

    def lead(self, route_properties: bytes, properties: bytes, flag: int, born_ms: int) -> list[bytes]:
        """Return the light queues that a message goes to from here: none that came by no topic, but by our name."""
        topic = decode_properties(route_properties).get(TOPIC)
        if topic is None:
            return []
        raw_key = routing_key_from_topic(topic)
        key = raw_key.decode(errors="replace")
        told_topic = topic if len(raw_key) > KEY_BYTES_MAX else b""
        traits = Traits(key, self._block_of(properties, told_topic, flag, born_ms))
        return self._light_names(find_way(self._table, self._exchange, key, traits).queues)

    def _block_of(self, properties: bytes, topic: bytes, flag: int, born_ms: int) -> bytes:
        """Return the property block that a consumer of AMQP would be given; `topic` where it is told in a header."""
        found, size = self._properties, len(properties)
        found.read(properties, 0, size)
        block = found.amqp_block(properties)
        if block is not None:
            return block
        out = bytearray(BYTES_EACH * size + len(topic) + BYTES_MORE)
        end = found.write_block(properties + topic, (0, size, size, size + len(topic)), flag, born_ms, out, 0)
        return bytes(out[:end])


class Crossings:
    """The light queues that stand for exchanges of the virtual host that has the topic space.

    Args:
        broker: Where they are.
        vhost: The name of the virtual host.
    """

    def __init__(self, broker: Broker, vhost: str) -> None:
        self._broker = broker
        self._vhost = vhost.encode()

    def stand_for(self, exchange: Exchange, table: ExchangeTable, light_names: LightNames) -> bytes | None:
        """Return the light queue that stands for an exchange from now on, None where there is room for none."""
        name = amqp_crossing_name(self._vhost, exchange.name.encode())
        crossroads = self._broker.detours.crossroads
        queue_ref = self._broker.find_queue(name)
        if queue_ref not in crossroads.asked:
            try:
                queue_ref = self._broker.intern_queue(name)
            except LmqError:
                return None
            crossroads.add(queue_ref, Crossing(exchange, table, light_names))
        return name

    def drop(self, exchange: Exchange) -> None:
        """Stand for an exchange no more; harmless where nothing did."""
        queue_ref = self._broker.find_queue(amqp_crossing_name(self._vhost, exchange.name.encode()))
        self._broker.detours.crossroads.drop(queue_ref)
