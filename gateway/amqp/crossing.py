"""Exchanges behind `amq.topic` that look at more than the routing key, asked for each message of every door.

A light queue stands for each in the routes of topics, which caches keep; see `core/queues/crossroads.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from core.broker import Broker
from core.errors import LmqError
from core.lmq.queue_name import amqp_crossing_name
from core.lmq.topic_space import routing_key_from_topic
from core.message import Route
from core.properties import EXCHANGE, ROUTING_KEY, TOPIC, decode_properties
from core.queues.crossroads import Lead
from gateway.amqp.exchanges import AMQ_TOPIC, Exchange, ExchangeTable
from gateway.amqp.routing import WaitingPlace, find_way
from gateway.amqp.stored_properties import StoredProperties
from gateway.amqp.traits import Traits

BYTES_EACH = 5  # of a block, for each of the properties
BYTES_MORE = 512  # of a block with no properties: the flags, and the headers that a delivery has of its own
KEY_BYTES_MAX = 255  # what is longer is told cut, and the topic in a header beside it

LightNames = Callable[[Iterable[str]], list[bytes]]
Hold = Callable[[WaitingPlace, int, int], list[Route]]
"""Makes routes into the timer for a message that is to go on from a place so many milliseconds after a moment."""


def told_block(found: StoredProperties, properties: bytes, topic: bytes, flag: int, born_ms: int) -> bytes:
    """Return the property block that a consumer of AMQP would be given of a record with these properties.

    Args:
        found: Reads them; used anew.
        properties: The publisher's and the message's own.
        topic: The topic where it is told in a header, else empty.
        flag: Of the record.
        born_ms: When the message came.
    """
    size = len(properties)
    found.read(properties, 0, size)
    block = found.amqp_block(properties)
    if block is not None:
        return block
    out = bytearray(BYTES_EACH * size + len(topic) + BYTES_MORE)
    end = found.write_block(properties + topic, (0, size, size, size + len(topic)), flag, born_ms, out, 0)
    return bytes(out[:end])


class Crossing:
    """One such exchange.

    Args:
        vhost: The name of its virtual host.
        exchange: It.
        table: The exchanges that it may lead to.
        light_names: Gives the light queues of queues.
        hold: Makes the routes of what waits.
    """

    def __init__(
        self, vhost: str, exchange: Exchange, table: ExchangeTable, light_names: LightNames, hold: Hold
    ) -> None:
        self._vhost = vhost
        self._exchange = exchange
        self._table = table
        self._light_names = light_names
        self._hold = hold
        self._properties = StoredProperties()

    def lead(self, route_properties: bytes, properties: bytes, flag: int, born_ms: int) -> Lead:
        """Return where a message goes to from here: nowhere where it came by no topic, but by our name."""
        said = decode_properties(route_properties)
        topic = said.get(TOPIC)
        if topic is None:
            return Lead(())
        raw_key = routing_key_from_topic(topic)
        key = raw_key.decode(errors="replace")
        told_topic = topic if len(raw_key) > KEY_BYTES_MAX else b""
        traits = Traits(key, told_block(self._properties, properties, told_topic, flag, born_ms))
        way = find_way(self._table, self._exchange, (key,), traits)
        names = self._light_names(way.queues)
        if not way.waits:
            return Lead(names)
        published_to = said.get(EXCHANGE, AMQ_TOPIC.encode()).decode()
        keys = [said[ROUTING_KEY].decode() if ROUTING_KEY in said else key]
        place = WaitingPlace(self._vhost, published_to, list(way.waits), keys)
        return Lead(names, place.exchanges, partial(self._wait, place, traits.delay_ms()))

    def _wait(self, place: WaitingPlace, delay_ms: int, exchanges: Sequence[str], now_ms: int) -> list[Route]:
        return self._hold(place._replace(exchanges=list(exchanges)), delay_ms, now_ms)


class Crossings:
    """The light queues that stand for exchanges of the virtual host that has the topic space.

    Args:
        broker: Where they are.
        vhost: The name of the virtual host.
        hold: Makes the routes of what waits.
    """

    def __init__(self, broker: Broker, vhost: str, hold: Hold) -> None:
        self._broker = broker
        self._hold = hold
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
            crossroads.add(queue_ref, Crossing(self._vhost.decode(), exchange, table, light_names, self._hold))
        return name

    def drop(self, exchange: Exchange) -> None:
        """Stand for an exchange no more; harmless where nothing did."""
        queue_ref = self._broker.find_queue(amqp_crossing_name(self._vhost, exchange.name.encode()))
        self._broker.detours.crossroads.drop(queue_ref)
