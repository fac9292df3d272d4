"""Dead letters: what a queue rejects or outlives goes on to an exchange.

The dead letter is in the log, as safe as the settings say, before the message that it was is done. A process that is
killed between the two gives the message again, and nothing is lost.

Source: docs/protocols/amqp.md, "Dead letters".
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, Protocol

from core.broker import Broker
from core.errors import LmqError, ReceiptError
from core.lmq.topic_space import routing_key_from_topic, topic_from_routing_key
from core.lmq.waiters import Reader
from core.message import (
    AWAY,
    FLAG_BARE,
    FLAG_EXPIRES,
    FLAG_MARK,
    FLAG_MARK_MASK,
    FLAG_RETAIN,
    PublishBatch,
    Route,
    StoredBatch,
)
from core.properties import CLIENT, EXCHANGE, PROTOCOL, ROUTING_KEY, TOPIC, USER, decode_properties, encode_properties
from gateway.amqp.deaths import Buried, Death, bury, is_cycle
from gateway.amqp.errors import AmqpError
from gateway.amqp.exchanges import AMQ_TOPIC, Exchange, ExchangeTable
from gateway.amqp.property_block import EXTRA_BYTES_MAX, BlockReader
from gateway.amqp.queue_ties import Dying
from gateway.amqp.routing import Way, find_way
from gateway.amqp.stored_properties import StoredProperties
from gateway.amqp.traits import Traits
from gateway.chores import Chores

BATCH_MESSAGES = 16  # written in one step: about half a millisecond
RETRY_MS = 1_000  # what could not be read or stored is tried again after that
_BLOCK_ROOM = 512  # besides five times the properties, and the topic
_OWN_ROOM = 4_096  # of the publisher's names before the block
_ORIGIN = (PROTOCOL, CLIENT, USER)
_SEPARATORS = (b"\x00", b"\x01", b"\x02")


class Surroundings(Protocol):
    """The virtual host, as far as dead letters go through it."""

    exchanges: ExchangeTable
    chores: Chores

    def light_name(self, queue: str) -> bytes:
        """Return the light queue of a queue."""

    def light_names(self, way: Way, key: str) -> list[bytes]:
        """Return the light queues that a way leads to with a routing key."""


class Letter(NamedTuple):
    """What is stored of one message."""

    route: Route
    extra: bytes
    flag: int


class _Again(Reader):
    """Goes on in the next turn."""

    def __init__(self, go_on: Callable[[], None]) -> None:
        self._go_on = go_on

    def on_ready(self, now_ms: int) -> bool:
        """Go on; called by the broker."""
        del now_ms
        self._go_on()
        return False


class LetterDesk:
    """What dead letters are written with; all virtual hosts have the same, each for the time of one step."""

    def __init__(self) -> None:
        self.stored = StoredBatch(BATCH_MESSAGES)
        self.batch = PublishBatch(BATCH_MESSAGES)
        self.properties = StoredProperties()
        self.reader = BlockReader()
        self.room = bytearray(EXTRA_BYTES_MAX + _OWN_ROOM)


class DeadLetters:
    """Stores the dead letters of all queues of a virtual host."""

    def __init__(self, broker: Broker, vhost: Surroundings, desk: LetterDesk) -> None:
        self._broker = broker
        self._vhost = vhost
        self._metrics = broker.metrics.door("amqp")
        self._stored = desk.stored
        self._batch = desk.batch
        self._properties = desk.properties
        self._reader = desk.reader
        self._room = desk.room

    def bury(self, queue: Dying, hidden: array[int], count: int, reason: bytes, now_ms: int) -> None:
        """Let the first `count` of these messages of a queue, which are hidden, go on as dead letters."""
        exchange = self._vhost.exchanges.find(queue.terms.dead_letter_exchange or "")
        offsets = array("q", sorted(hidden[:count]))
        if exchange is None:
            self._metrics.drop("unroutable", count)
            _finish(queue, offsets, None)
            return
        self._vhost.chores.start(self._steps(queue, exchange, offsets, reason, now_ms))

    def _steps(
        self, queue: Dying, exchange: Exchange, offsets: array[int], reason: bytes, now_ms: int
    ) -> Iterator[None]:
        """Let messages go on, some in each step; those that are on their way are asked for in each turn.

        They stay hidden meanwhile: no consumer is to have what was rejected for good.
        """
        while offsets and not queue.is_deleted:
            piece = offsets[:BATCH_MESSAGES]
            used = queue.pop.read_offsets(piece, len(piece), self._stored)
            if used == AWAY:
                steps = self._steps(queue, exchange, offsets, reason, now_ms)
                self._broker.request_run(_Again(partial(self._vhost.chores.start, steps)))
                return
            done = self._store(queue, exchange, piece[:used], reason, now_ms)
            offsets = offsets[done:]
            if done < used:
                queue.pop.nack_many(offsets, len(offsets), now_ms + RETRY_MS)
                return
            yield

    def _store(self, queue: Dying, exchange: Exchange, offsets: array[int], reason: bytes, now_ms: int) -> int:
        """Store the dead letters of what was read; return how many of the messages are dealt with."""
        stored, batch = self._stored, self._batch
        batch.clear()
        bodies: list[bytes] = []
        extras: list[bytes] = []
        sent: list[int] = []
        body_end = extra_end = 0
        for i in range(stored.count):
            letter = self._write(queue, exchange, i, reason, now_ms)
            if letter is None:
                self._metrics.drop("unroutable")
                continue
            k = batch.count
            bodies.append(bytes(stored.buf[stored.body_start[i] : stored.body_end[i]]))
            extras.append(letter.extra)
            sent.append(stored.queue_offset[i])
            batch.route_index[k] = len(batch.routes)
            batch.topics.append(letter.route.topic)
            batch.routes.append(letter.route)
            batch.body_start[k], body_end = body_end, body_end + len(bodies[-1])
            batch.body_end[k] = body_end
            batch.extra_start[k], extra_end = extra_end, extra_end + len(letter.extra)
            batch.extra_end[k] = extra_end
            batch.flag[k], batch.sys_flag[k] = letter.flag, 0
            batch.reconsume_times[k], batch.born_ms[k], batch.tag[k] = 0, stored.born_ms[i], 0
            batch.count = k + 1
        stored.clear()
        batch.buf, batch.extra = b"".join(bodies), b"".join(extras)
        return self._append(queue, offsets, sent, now_ms)

    def _append(self, queue: Dying, offsets: array[int], sent: list[int], now_ms: int) -> int:
        batch = self._batch
        done = len(offsets)
        if batch.count:
            try:
                self._broker.publish_batch(batch, now_ms)
            except LmqError:
                self._metrics.refuse("dead_letter", batch.count - batch.appended)
                done = offsets.index(sent[batch.appended])
        if done:
            then = partial(_finish, queue, offsets[:done])
            if batch.appended:
                self._broker.when_stored(batch.ticket, then)
            else:
                then(None)
        batch.clear()
        return done

    def _write(self, queue: Dying, exchange: Exchange, i: int, reason: bytes, now_ms: int) -> Letter | None:
        """Return the dead letter of message `i` that was read, None where it goes nowhere."""
        stored = self._stored
        said = decode_properties(stored.buf[stored.properties_start[i] : stored.properties_end[i]])
        topic = bytes(stored.buf[stored.topic_start[i] : stored.topic_end[i]])
        key = said[ROUTING_KEY] if ROUTING_KEY in said else routing_key_from_topic(said.get(TOPIC, topic))
        key_said = queue.terms.dead_letter_key
        block = self._block(i)
        death = Death(
            reason,
            queue.name.encode(),
            said.get(EXCHANGE, AMQ_TOPIC.encode()),
            key,
            now_ms // 1000,
            key_said is None,
        )
        buried = bury(block, death)
        keys = buried.keys if key_said is None else [key_said.encode()]
        route = self._route(exchange, keys, buried)
        if route is None:
            return None
        flag = stored.flag[i] if stored.flag[i] & FLAG_MARK_MASK == FLAG_MARK else FLAG_MARK | 1
        flag &= ~(FLAG_RETAIN | FLAG_EXPIRES | FLAG_BARE)
        origin = encode_properties([(name, said[name]) for name in _ORIGIN if name in said])
        return Letter(route, origin + self._extra(buried.block, block), flag)

    def _block(self, i: int) -> bytes:
        """Return the property block of message `i` as a consumer gets it."""
        stored, found = self._stored, self._properties
        start, end = stored.properties_start[i], stored.properties_end[i]
        found.read(stored.buf, start, end)
        block = found.amqp_block(stored.buf)
        if block is not None:
            return block
        room = bytearray(5 * (end - start) + stored.topic_end[i] - stored.topic_start[i] + _BLOCK_ROOM)
        span = (start, end, stored.topic_start[i], stored.topic_start[i])
        size = found.write_block(stored.buf, span, stored.flag[i], stored.born_ms[i], room, 0)
        return bytes(room[:size])

    def _extra(self, block: bytes, before: bytes) -> bytes:
        """Return a block as a record's properties; where it is too large, that of the message as it was."""
        try:
            self._reader.read(block, 0, len(block))
        except AmqpError:
            block = before
            self._reader.read(block, 0, len(block))
        return bytes(self._room[: self._reader.write_extra(block, 0, len(block), self._room, 0)])

    def _route(self, exchange: Exchange, keys: list[bytes], buried: Buried) -> Route | None:
        """Return the way of a dead letter, None where there is none; it does not go round for ever."""
        if any(separator in key for key in keys for separator in _SEPARATORS):
            return None
        names: dict[bytes, None] = {}
        traits = Traits(keys[0].decode(errors="replace"), buried.block)
        for key in keys:
            text = key.decode(errors="replace")
            way = find_way(self._vhost.exchanges, exchange, text, traits)
            names |= dict.fromkeys(self._vhost.light_names(way, text))
        for _, queue in buried.deaths:
            if is_cycle(queue, buried.deaths):
                names.pop(self._vhost.light_name(queue.decode(errors="replace")), None)
        if not names:
            return None
        topic = topic_from_routing_key(keys[0])
        if topic and exchange is self._vhost.exchanges.topic_space:
            prefix = encode_properties([(TOPIC, topic)])
        else:
            items = [(TOPIC, topic)] if topic else []
            prefix = encode_properties([*items, (EXCHANGE, exchange.name.encode()), (ROUTING_KEY, keys[0])])
        return self._broker.route_queues(prefix, list(names))


def _finish(queue: Dying, offsets: array[int], error: Exception | None) -> None:
    """Finish messages whose dead letters are stored, or give them again where these are lost."""
    if queue.is_deleted:
        return
    try:
        if error is None:
            queue.pop.ack_many(offsets, len(offsets))
        else:
            queue.pop.nack_many(offsets, len(offsets))
    except ReceiptError:
        return  # purged or dropped meanwhile
