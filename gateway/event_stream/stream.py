"""Publishes events: what is told in a turn waits in memory, bounded, and is stored at the end of the turn.

Only what is asked for is published: an event whose topic no filter matches, or whose key no binding takes, is in no
log.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import NamedTuple

from core.broker import Broker
from core.errors import LmqError
from core.lmq.topic_space import topic_from_routing_key
from core.lmq.waiters import Reader
from core.message import FLAG_MARK, PublishBatch, Route
from core.properties import EXCHANGE, PROTOCOL, ROUTING_KEY, TOPIC, encode_properties
from gateway.amqp.definition_rows import DEFAULT_VHOST
from gateway.amqp.exchanges import TOPIC as BY_KEY, Exchange
from gateway.amqp.property_block import EXTRA_BYTES_MAX, BlockReader
from gateway.amqp.routing import find_way
from gateway.amqp.traits import Traits
from gateway.amqp.virtual_hosts import VirtualHosts
from gateway.event_stream.exchange import EVENT_EXCHANGE, block_of
from gateway.event_stream.topics import Who, body_of, topic_of
from gateway.events import Actor, Event, Events, Kind
from gateway.runtime.loop import Clock
from gateway.settings.observing import EventsSettings

LOGGER = logging.getLogger(__name__)

WAITING_MAX = 10_000  # events that wait: some megabytes
AT_ONCE = 64  # events published in one go: a millisecond or two
DROPS_INTERVAL_MS = 1_000  # one event a second for each reason, however many messages are dropped
NAME = "events"  # of the counters
_ORIGIN = encode_properties([(PROTOCOL, b"lmq")])


class Told(NamedTuple):
    """An event, with the moment, and the client that was on its connection."""

    event: Event
    who: Who | None
    at_ms: int


class EventStream(Reader):
    """Listens to the gateway's events while the settings ask for it, and publishes them.

    Args:
        broker: Stores them.
        vhosts: Has the exchange.
        events: What is listened to.
        clock: Tells when they happened.
    """

    def __init__(self, broker: Broker, vhosts: VirtualHosts, events: Events, clock: Clock) -> None:
        self._broker = broker
        self._vhosts = vhosts
        self._events = events
        self._clock = clock
        self._settings = EventsSettings()
        self._metrics = broker.metrics.door(NAME)
        self._waiting: deque[Told] = deque()
        self._known: dict[int, Who] = {}  # by connection
        self._drops: dict[tuple[str, str], int] = {}  # by door and reason, that were told
        self._batch = PublishBatch(2 * AT_ONCE)
        self._bodies: list[bytes] = []
        self._extras: list[bytes] = []
        self._block = BlockReader()
        self._room = bytearray(EXTRA_BYTES_MAX + 64)

    def use(self, settings: EventsSettings) -> None:
        """Publish as the settings say from now on."""
        was_on = self._settings.is_on
        self._settings = settings
        if settings.amqp:
            self._declare()
        if settings.is_on and not was_on:
            self._drops = self._count_drops()
            self._events.listen(self.take)
        elif was_on and not settings.is_on:
            self._events.ignore(self.take)
            self._known.clear()
            self._waiting.clear()

    def _declare(self) -> None:
        """Make the exchange, where it is not there yet; it stays, with its bindings."""
        vhost = self._vhosts.find(DEFAULT_VHOST)
        if vhost is not None and vhost.exchanges.find(EVENT_EXCHANGE) is None:
            vhost.add_exchange(Exchange(EVENT_EXCHANGE, BY_KEY, durable=True, auto_delete=False, internal=True))

    def take(self, event: Event) -> None:
        """Have an event published at the end of this turn."""
        conn_id = event.actor.conn_id
        who = self._known.get(conn_id)
        if event.kind is Kind.LOGIN:
            self._known[conn_id] = Who(str(event.fields.get("client", "")), event.actor.user)
        elif event.kind is Kind.CONNECTION_CLOSED:
            self._known.pop(conn_id, None)
        if len(self._waiting) >= WAITING_MAX:
            self._metrics.drop("too_many")
            return
        self._waiting.append(Told(event, who, self._clock.now_ms()))
        self._broker.request_run(self)

    def note_drops(self, now_ms: int) -> None:
        """Tell how many messages doors dropped since the last call; work for an interval."""
        del now_ms
        if not self._settings.is_on:
            return
        for (door, reason), count in self._count_drops().items():
            more = count - self._drops.get((door, reason), 0)
            if more and door != NAME:
                Actor(self._events, door, 0, "").tell(Kind.MESSAGE_DROPPED, reason=reason, count=more)
            self._drops[door, reason] = count

    def _count_drops(self) -> dict[tuple[str, str], int]:
        doors = self._broker.metrics.doors.values()
        return {(door.name, reason): count for door in doors for reason, count in door.dropped.items()}

    def on_ready(self, now_ms: int) -> bool:
        """Publish some of what waits; called by the broker."""
        for _ in range(min(AT_ONCE, len(self._waiting))):
            told = self._waiting.popleft()
            if self._settings.mqtt:
                self._add_topic(told)
            if self._settings.amqp:
                self._add_key(told)
        self._publish(now_ms)
        return bool(self._waiting)

    def _add_topic(self, told: Told) -> None:
        topic = topic_of(told.event)
        route = self._broker.route_topic(topic)
        if route.dispatch.count:
            self._add(route, topic, body_of(told.event, told.who, told.at_ms), b"", told.at_ms)

    def _add_key(self, told: Told) -> None:
        vhost = self._vhosts.find(DEFAULT_VHOST)
        exchange = vhost.exchanges.find(EVENT_EXCHANGE) if vhost is not None else None
        if vhost is None or exchange is None or not exchange.bindings:
            return
        key = told.event.kind.value
        block = block_of(told.event, told.who, told.at_ms)
        names = vhost.light_names(find_way(vhost.exchanges, exchange, (key,), Traits(key, block)), (key,))
        if not names:
            return
        topic = topic_from_routing_key(key.encode())
        prefix = encode_properties([(TOPIC, topic), (EXCHANGE, EVENT_EXCHANGE.encode()), (ROUTING_KEY, key.encode())])
        self._block.read(block, 0, len(block))
        extra = bytes(self._room[: self._block.write_extra(block, 0, len(block), self._room, 0)])
        self._add(self._broker.route_queues(prefix, names), topic, b"", extra, told.at_ms)

    def _add(self, route: Route, topic: bytes, body: bytes, extra: bytes, at_ms: int) -> None:
        batch = self._batch
        k = batch.count
        batch.route_index[k] = k
        batch.routes.append(route)
        batch.topics.append(topic)
        batch.body_start[k] = batch.body_end[k - 1] if k else 0
        batch.body_end[k] = batch.body_start[k] + len(body)
        batch.extra_start[k] = batch.extra_end[k - 1] if k else 0
        batch.extra_end[k] = batch.extra_start[k] + len(extra)
        batch.flag[k] = FLAG_MARK | 1
        batch.sys_flag[k] = batch.reconsume_times[k] = batch.tag[k] = 0
        batch.born_ms[k] = at_ms
        batch.count = k + 1
        self._bodies.append(body)
        self._extras.append(extra)

    def _publish(self, now_ms: int) -> None:
        batch = self._batch
        if not batch.count:
            return
        batch.buf, batch.extra, batch.origin = b"".join(self._bodies), b"".join(self._extras), _ORIGIN
        count = batch.count
        try:
            self._broker.publish_batch(batch, now_ms)
        except LmqError as error:
            LOGGER.warning("events are not told, they cannot be stored reason=%s", error)
            self._metrics.drop("not_stored", count - batch.appended)
        self._metrics.messages_in += batch.appended
        batch.clear()
        self._bodies.clear()
        self._extras.clear()
