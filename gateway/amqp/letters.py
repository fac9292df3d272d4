"""Dead letters as they are written: what a message says of its deaths, and where it goes.

Source: docs/protocols/amqp.md, "Dead letters".
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Protocol
from urllib.parse import quote, unquote

from core import octets
from core.broker import Broker
from core.lmq.topic_space import routing_key_from_topic, topic_from_routing_key
from core.message import (
    FLAG_BARE,
    FLAG_EXPIRES,
    FLAG_MARK,
    FLAG_MARK_MASK,
    FLAG_RETAIN,
    PublishBatch,
    Route,
    StoredBatch,
)
from core.properties import (
    CLIENT,
    DIED_IN,
    EXCHANGE,
    LETTER_OF,
    PROTOCOL,
    ROUTING_KEY,
    TOPIC,
    USER,
    encode_properties,
)
from gateway.amqp.deaths import Buried, Death, bury, is_cycle
from gateway.amqp.errors import AmqpError
from gateway.amqp.exchanges import AMQ_TOPIC, Exchange, ExchangeTable
from gateway.amqp.open_letters import encode_message
from gateway.amqp.property_block import EXTRA_BYTES_MAX, BlockReader
from gateway.amqp.queue_ties import Dying
from gateway.amqp.routing import WaitingPlace, Way, find_way
from gateway.amqp.stored_properties import StoredProperties
from gateway.amqp.traits import Traits

_BLOCK_ROOM = 512  # besides five times the properties, and the topic
_NAMED_MAX = EXTRA_BYTES_MAX - 96  # of what a letter says; one that says more does not name its message
_OWN_ROOM = 4_096  # of the publisher's names before the block
_SEPARATORS = (b"\x00", b"\x01", b"\x02")
_NOWHERE = -1

Ways = dict[tuple[object, object], int]
"""Where letters go, by their routing keys and deaths: the index of a batch's route, or `_NOWHERE`."""


class Holder(Protocol):
    """Where messages wait."""

    def hold(self, place: WaitingPlace, delay_ms: int, now_ms: int) -> list[Route]:
        """Return the routes into the timer of a message that is to go on so much later."""


class Surroundings(Protocol):
    """The virtual host, as far as dead letters go through it."""

    name: str
    exchanges: ExchangeTable
    delays: Holder

    def light_name(self, queue: str) -> bytes:
        """Return the light queue of a queue."""

    def light_names(self, way: Way, keys: Sequence[str]) -> list[bytes]:
        """Return the light queues that a way leads to with these routing keys."""


class Burial:
    """Messages of one queue that die together: all are hidden, `offsets` of them are left.

    Args:
        queue: Where they are.
        exchange: Where they go.
        offsets: They, ascending.
        reason: Why.
        at_s: When, in seconds.
    """

    __slots__ = ("at_s", "exchange", "offsets", "queue", "reason")

    def __init__(self, queue: Dying, exchange: Exchange, offsets: array[int], reason: bytes, at_s: int) -> None:
        self.queue = queue
        self.exchange = exchange
        self.offsets = offsets
        self.reason = reason
        self.at_s = at_s


class LetterWriter:
    """Puts dead letters into a batch; all virtual hosts have the same one, each for the time of one batch."""

    def __init__(self, broker: Broker, batch: PublishBatch) -> None:
        self._broker = broker
        self._batch = batch
        self._found = StoredProperties()
        self._reader = BlockReader()
        self._room = bytearray(EXTRA_BYTES_MAX + _OWN_ROOM)
        self._bodies: list[bytes] = []
        self._extras: list[bytes] = []
        self._ways: Ways = {}
        self._same = b""  # the last message's properties, up to its block: one with equal ones goes the same way
        self._same_flag = 0
        self._same_way = _NOWHERE
        self._waits: list[Route] = []  # of the letter before: where a copy waits
        self._now_ms = 0
        self._extra = b""  # of the letter before
        self.body_bytes = 0
        self._extra_bytes = 0

    def begin(self, now_ms: int) -> None:
        """Begin with an empty batch, of letters that are published now."""
        self._now_ms = now_ms
        self._batch.clear()
        self._bodies.clear()
        self._extras.clear()
        self.body_bytes = self._extra_bytes = 0

    def end(self) -> None:
        """Give the batch its bytes."""
        self._batch.buf, self._batch.extra = b"".join(self._bodies), b"".join(self._extras)

    def begin_burial(self) -> None:
        """Begin with messages of another queue, or that die for another reason."""
        self._ways.clear()
        self._same = b""

    def write(self, burial: Burial, vhost: Surroundings, stored: StoredBatch, i: int) -> bool:
        """Write the letter of message `i` that was read; return False where it goes nowhere."""
        buf = stored.buf
        start, flag = stored.properties_start[i], stored.flag[i]
        size = len(self._same)
        if not size or flag != self._same_flag or not octets.equal_bytes(buf, start, self._same, 0, size):
            self._found.read(buf, start, stored.properties_end[i])
            self._same_way = self._write_extra(burial, vhost, stored, i)
            self._same = b""
            if self._found.amqp_start >= 0:
                self._same = octets.read_bytes(buf, start, self._found.amqp_end + 1)
                self._same_flag = flag
        if self._same_way == _NOWHERE:
            return False
        extra = self._extra
        if len(extra) <= _NAMED_MAX:
            identity = burial.queue.pop.identify(stored.queue_offset[i])
            extra += b"%b\x01%b\x02" % (LETTER_OF, encode_message(stored.physical_offset[i], identity))
        body = octets.read_bytes(buf, stored.body_start[i], stored.body_end[i])
        self._add(body, extra, flag, stored.born_ms[i])
        return True

    def _add(self, body: bytes, extra: bytes, flag: int, born_ms: int) -> None:
        batch = self._batch
        k = batch.count
        batch.route_index[k] = self._same_way
        batch.waits.extend((k, each) for each in self._waits)
        self._bodies.append(body)
        batch.body_start[k] = self.body_bytes
        self.body_bytes += len(body)
        batch.body_end[k] = self.body_bytes
        self._extras.append(extra)
        batch.extra_start[k] = self._extra_bytes
        self._extra_bytes += len(extra)
        batch.extra_end[k] = self._extra_bytes
        flag = flag if flag & FLAG_MARK_MASK == FLAG_MARK else FLAG_MARK | 1
        batch.flag[k] = flag & ~(FLAG_RETAIN | FLAG_EXPIRES | FLAG_BARE)
        batch.sys_flag[k] = batch.reconsume_times[k] = batch.tag[k] = 0
        batch.born_ms[k] = born_ms
        batch.count = k + 1

    def _write_extra(self, burial: Burial, vhost: Surroundings, stored: StoredBatch, i: int) -> int:
        """Note the properties of the letter of message `i`; return where it goes."""
        found, buf = self._found, stored.buf
        exchange, key = AMQ_TOPIC.encode(), b""
        if found.exchange_start >= 0:
            exchange = octets.read_bytes(buf, found.exchange_start, found.exchange_end)
        if found.key_start >= 0:
            key = octets.read_bytes(buf, found.key_start, found.key_end)
        else:
            key = routing_key_from_topic(octets.read_bytes(buf, stored.topic_start[i], stored.topic_end[i]))
        key_said = burial.queue.terms.dead_letter_key
        block = self._block(stored, i)
        death = Death(burial.reason, burial.queue.name.encode(), exchange, key, burial.at_s, key_said is None)
        buried = bury(block, death)
        way = self._find_way(burial, vhost, buried, buried.keys if key_said is None else (key_said.encode(),))
        if way != _NOWHERE:
            said = self._encode(buried.block, block)
            place = encode_place(vhost.name, burial.queue.name)
            self._extra = self._origin(buf, place, EXTRA_BYTES_MAX - len(said)) + said
        return way

    def _origin(self, buf: bytes | bytearray | memoryview, place: bytes, room: int) -> bytes:
        """Return the properties that say where the message came from; it died in `place` now, perhaps again.

        Where it died first is left out where `room` has not enough for it.
        """
        found = self._found
        if found.died_start >= 0:
            place = octets.read_bytes(buf, found.died_start, found.died_end)
        said: list[tuple[bytes, bytes]] = []
        if found.protocol_start >= 0:
            said.append((PROTOCOL, octets.read_bytes(buf, found.protocol_start, found.protocol_end)))
        if found.client_start >= 0:
            said.append((CLIENT, octets.read_bytes(buf, found.client_start, found.client_end)))
        if found.user_start >= 0:
            said.append((USER, octets.read_bytes(buf, found.user_start, found.user_end)))
        if len(DIED_IN) + len(place) + 2 <= room:
            said.append((DIED_IN, place))
        return encode_properties(said)

    def _block(self, stored: StoredBatch, i: int) -> bytes:
        """Return the property block of message `i` as a consumer gets it."""
        found = self._found
        block = found.amqp_block(stored.buf)
        if block is not None:
            return block
        start, end = stored.properties_start[i], stored.properties_end[i]
        room = bytearray(5 * (end - start) + stored.topic_end[i] - stored.topic_start[i] + _BLOCK_ROOM)
        span = (start, end, stored.topic_start[i], stored.topic_start[i])
        size = found.write_block(stored.buf, span, stored.flag[i], stored.born_ms[i], room, 0)
        return bytes(room[:size])

    def _encode(self, block: bytes, before: bytes) -> bytes:
        """Return a block as a record's properties; where it is too large, that of the message as it was."""
        try:
            self._reader.read(block, 0, len(block))
        except AmqpError:
            block = before
            self._reader.read(block, 0, len(block))
        return octets.read_bytes(self._room, 0, self._reader.write_extra(block, 0, len(block), self._room, 0))

    def _find_way(self, burial: Burial, vhost: Surroundings, buried: Buried, keys: tuple[bytes, ...]) -> int:
        """Return the index of the route of a letter, made where no letter of the burial had the same."""
        known = self._ways.get((keys, buried.deaths))
        self._waits = []
        if known is not None:
            return known
        texts = [key.decode(errors="replace") for key in keys]
        traits = Traits(texts[0], buried.block)
        way = find_way(vhost.exchanges, burial.exchange, texts, traits)
        names = dict.fromkeys(vhost.light_names(way, texts))
        held = way.waits
        for _, queue in buried.deaths:
            if is_cycle(queue, buried.deaths):
                names.pop(vhost.light_name(queue.decode(errors="replace")), None)
        index = _NOWHERE
        if (names or held) and not any(separator in key for key in keys for separator in _SEPARATORS):
            index = len(self._batch.routes)
            if held:
                self._waits = self._hold(burial.exchange, vhost, list(held), keys, traits.delay_ms())
            route = self._route(burial.exchange, vhost, keys[0], list(names)) if names else self._waits.pop(0)
            self._batch.routes.append(route)
            self._batch.topics.append(route.topic)
        if not (way.asks_headers or way.asks_each):
            self._ways[keys, buried.deaths] = index
        return index

    def _hold(
        self, exchange: Exchange, vhost: Surroundings, held: list[str], keys: tuple[bytes, ...], delay_ms: int
    ) -> list[Route]:
        texts = [key.decode(errors="replace") for key in keys]
        return vhost.delays.hold(WaitingPlace(vhost.name, exchange.name, held, texts), delay_ms, self._now_ms)

    def _route(self, exchange: Exchange, vhost: Surroundings, key: bytes, names: list[bytes]) -> Route:
        topic = topic_from_routing_key(key)
        if topic and exchange is vhost.exchanges.topic_space:
            prefix = encode_properties([(TOPIC, topic)])
        else:
            items = [(TOPIC, topic)] if topic else []
            prefix = encode_properties([*items, (EXCHANGE, exchange.name.encode()), (ROUTING_KEY, key)])
        return self._broker.route_queues(prefix, names)


def encode_place(vhost: str, queue: str) -> bytes:
    """Return where a message died, as its letter says it in `LMQ_DIED`."""
    return f"{quote(vhost, safe='')}/{quote(queue, safe='')}".encode()


def decode_place(said: bytes) -> tuple[str, str]:
    """Return the virtual host and the queue that `LMQ_DIED` names; both are empty where it names none."""
    vhost, _, queue = said.decode(errors="replace").partition("/")
    return unquote(vhost), unquote(queue)
