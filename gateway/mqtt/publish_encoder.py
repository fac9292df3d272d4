"""Stored messages to PUBLISH packets, by the batch."""

from __future__ import annotations

from array import array

from core import octets
from core.message import FLAG_BARE, FLAG_EXPIRES, FLAG_MARK, FLAG_MARK_MASK, FLAG_QOS_MASK, FLAG_RETAIN, StoredBatch
from gateway.mqtt import varint
from gateway.mqtt.publish_block import BlockWriter, block_bytes_max
from gateway.mqtt.topic_aliases import TopicAliases

READ_BYTES_MAX = 512 * 1024  # what one read takes from the log: a batch of messages of the usual sizes
BATCH_COUNT_MAX = 1024  # messages in a batch: enough to make the cost of a batch vanish
_SCRATCH_BYTES = 65_536  # to begin with; it grows
_ID_MAX = 65_535  # packet identifiers have two bytes
_FLAG_MARK = FLAG_MARK
_FLAG_MARK_MASK = FLAG_MARK_MASK
_FLAG_QOS_MASK = FLAG_QOS_MASK
_FLAG_RETAIN = FLAG_RETAIN
_FLAG_EXPIRES = FLAG_EXPIRES
_BARE_MASK = FLAG_MARK_MASK | FLAG_BARE
_BARE = FLAG_MARK | FLAG_BARE
_LEVEL_5 = 5
_LENGTH_BYTES_MAX = 4  # MQTT-5 1.5.5
_ALIAS_BYTES = 3  # of the property


class Form:
    """How one subscriber is written to.

    Args:
        level: Of the protocol.
        now_ms: The time, which stored messages age by.
        identifier: The subscription's, 0 for none.
        keeps_retain: Whether messages keep their retain flag.
        aliases: Of topics, where its connection has some; what is encoded is to be sent then.
        packet_bytes_max: The largest packet that it takes, 0 where it did not say.
    """

    def __init__(
        self,
        level: int,
        now_ms: int,
        identifier: int = 0,
        *,
        keeps_retain: bool = False,
        aliases: TopicAliases | None = None,
        packet_bytes_max: int = 0,
    ) -> None:
        self.level = level
        self.now_ms = now_ms
        self.identifier = identifier
        self.keeps_retain = keeps_retain
        self.aliases = aliases
        self.packet_bytes_max = packet_bytes_max
        self.is_common = identifier == 0 and not keeps_retain and aliases is None


OLD_FORM = Form(4, 0)
_OLD_FORM = OLD_FORM


class PublishEncoder:
    """Writes PUBLISH packets for stored messages, many at a time; one serves a whole door.

    A message goes out at the lower of its own QoS and the granted one; one without the mark of the gateway's doors
    came from a RocketMQ producer and counts as QoS 1. Properties are written in MQTT 5 alone. After `encode`,
    `id_count` is how many packet identifiers were written and `body_bytes` the size of all bodies; where `dup_until`
    was given, `dup_count` is how many were marked as sent again.
    """

    def __init__(self, capacity: int = BATCH_COUNT_MAX) -> None:
        self.id_count = 0
        self.body_bytes = 0
        self.dup_count = 0
        self._id_positions = array("i", bytes(4 * capacity))
        self._out = bytearray(_SCRATCH_BYTES)
        self._size = 0
        self._of: StoredBatch | None = None  # what `_out` holds, for the same messages in the queue of another filter
        self._fill_number = 0
        self._count = 0
        self._granted_qos = 0
        self._level = 0
        self._now_ms = 0  # what their expiry was counted down to, where they have one
        self._expires = False
        self._blocks = BlockWriter()
        self._block = bytearray(256)
        self._data = b""  # the packets, where they have no identifiers

    def encode(
        self,
        batch: StoredBatch,
        granted_qos: int,
        first_id: int,
        dup_until: int = 0,
        retain: int = 0,
        form: Form = OLD_FORM,
    ) -> bytes:
        """Return the packets of all messages of `batch`.

        Args:
            batch: What was read.
            granted_qos: 0, 1 or 2.
            first_id: Packet identifier of the first message at QoS 1 or 2; the next ones count on, from 65,535 to 1.
            dup_until: Messages with a queue offset below this may have been sent before: those at QoS 1 and 2 are
                marked as sent again, those at QoS 0 left out.
            retain: The retain flag of all packets, 0 or 1.
            form: How the subscriber is written to.
        """
        is_first = dup_until == 0 and retain == 0 and form.is_common
        if is_first and self._holds(batch, granted_qos, form):
            return self.renumber(first_id) if self.id_count else self._data
        size = self._measure(batch, granted_qos)
        self._expires = False
        if form.level == _LEVEL_5:
            size += self._measure_blocks(batch, is_bare=form.identifier == 0 and form.aliases is None)
        if size > len(self._out):
            self._out = bytearray(size)
        self._size = self._write(batch, batch.buf, self._out, granted_qos, first_id, dup_until, retain, form)
        data = octets.read_bytes(self._out, 0, self._size)
        self._data = b"" if self.id_count else data
        self._of = batch if is_first and batch.fill_number > 0 else None
        self._fill_number = batch.fill_number
        self._count = batch.count
        self._granted_qos = granted_qos
        self._level = form.level
        self._now_ms = form.now_ms
        return data

    def _holds(self, batch: StoredBatch, granted_qos: int, form: Form) -> bool:
        """Return whether the last result was of the messages of `batch`, none of them sent again."""
        if self._of is not batch or self._fill_number != batch.fill_number:
            return False
        if (self._level == _LEVEL_5) != (form.level == _LEVEL_5) or (self._expires and self._now_ms != form.now_ms):
            return False
        return self._count == batch.count and self._granted_qos == granted_qos

    def renumber(self, first_id: int) -> bytes:
        """Return what the last `encode` returned, with packet identifiers from `first_id` on."""
        self._patch(self._out, first_id)
        return octets.read_bytes(self._out, 0, self._size)

    def _measure(self, batch: StoredBatch, granted_qos: int) -> int:
        size = 0
        bodies = 0
        for i in range(batch.count):
            body_size = batch.body_end[i] - batch.body_start[i]
            bodies += body_size
            length = 2 + batch.topic_end[i] - batch.topic_start[i] + body_size
            length += 2 if _effective_qos(batch.flag[i], granted_qos) else 0
            size += 1 + varint.size_of(length) + length
        self.body_bytes = bodies
        return size

    def _measure_blocks(self, batch: StoredBatch, is_bare: bool) -> int:  # noqa: FBT001  # a C function
        """Return how many bytes properties take at most, and have room for the largest."""
        size = 0
        largest = 0
        for i in range(batch.count):
            if batch.flag[i] & _BARE_MASK == _BARE and is_bare:
                size += 1 + _LENGTH_BYTES_MAX
                continue
            if batch.flag[i] & _FLAG_EXPIRES:
                self._expires = True
            bytes_max = block_bytes_max(batch.properties_end[i] - batch.properties_start[i])
            size += bytes_max + 2 * _LENGTH_BYTES_MAX
            if bytes_max > largest:
                largest = bytes_max
        if largest + _LENGTH_BYTES_MAX > len(self._block):
            self._block = bytearray(2 * largest)
        return size

    def _find_alias(self, batch: StoredBatch, buf: bytes | bytearray | memoryview, i: int, form: Form) -> int:
        """Return the alias of a message's topic, as `TopicAliases.find`."""
        if form.aliases is None:
            return 0
        topic_size = batch.topic_end[i] - batch.topic_start[i]
        if form.packet_bytes_max:  # an alias that is told must not make a packet larger than the client takes
            size = topic_size + batch.body_end[i] - batch.body_start[i] + 4 + 2 * _LENGTH_BYTES_MAX
            size += block_bytes_max(batch.properties_end[i] - batch.properties_start[i])
            if size > form.packet_bytes_max:
                return 0
        return form.aliases.find(octets.read_bytes(buf, batch.topic_start[i], batch.topic_end[i]))

    def _write_block(
        self, batch: StoredBatch, buf: bytes | bytearray | memoryview, i: int, form: Form, alias: int, out: bytearray
    ) -> int:
        """Write the properties of a message to `out`; return how many bytes they take."""
        if batch.flag[i] & _BARE_MASK == _BARE and form.identifier == 0:
            if not alias:
                octets.write_u8(out, 0, 0)
                return 1
            octets.write_u8(out, 0, _ALIAS_BYTES)
            octets.write_u8(out, 1, 0x23)
            octets.write_u16(out, 2, alias)
            return 1 + _ALIAS_BYTES
        age_ms = form.now_ms - batch.store_ms[i]
        if age_ms < 0:
            age_ms = 0
        start = batch.properties_start[i]
        end = batch.properties_end[i]
        is_own = batch.flag[i] & _FLAG_MARK_MASK == _FLAG_MARK
        return self._blocks.write(buf, start, end, age_ms, form.identifier, out, 0, alias, is_own)

    def _write(
        self,
        batch: StoredBatch,
        buf: bytes | bytearray | memoryview,
        out: bytearray,
        granted_qos: int,
        next_id: int,
        dup_until: int,
        retain: int,
        form: Form,
    ) -> int:
        pos = 0
        ids = 0
        dups = 0
        block_size = 0
        is_5 = form.level == _LEVEL_5
        keeps_retain = form.keeps_retain
        block = self._block
        for i in range(batch.count):
            qos = _effective_qos(batch.flag[i], granted_qos)
            dup = 8 if batch.queue_offset[i] < dup_until else 0
            if dup:
                if not qos:
                    continue
                dups += 1
            topic_size = batch.topic_end[i] - batch.topic_start[i]
            body_size = batch.body_end[i] - batch.body_start[i]
            if is_5:
                alias = self._find_alias(batch, buf, i, form)
                block_size = self._write_block(batch, buf, i, form, alias if alias >= 0 else -alias, block)
                if alias > 0:
                    topic_size = 0
            first = 0x30 | dup | qos << 1 | retain
            if keeps_retain and batch.flag[i] & _FLAG_RETAIN:
                first |= 1
            pos = _write_header(out, pos, first, 2 + topic_size + (2 if qos else 0) + block_size + body_size)
            octets.write_u16(out, pos, topic_size)
            octets.copy_bytes(out, pos + 2, buf, batch.topic_start[i], topic_size)
            pos += 2 + topic_size
            if qos:
                octets.write_u16(out, pos, next_id)
                self._id_positions[ids] = pos
                ids += 1
                next_id = next_id + 1 if next_id < _ID_MAX else 1
                pos += 2
            if is_5:
                octets.copy_bytes(out, pos, block, 0, block_size)
                pos += block_size
            octets.copy_bytes(out, pos, buf, batch.body_start[i], body_size)
            pos += body_size
        self.id_count = ids
        self.dup_count = dups
        return pos

    def _patch(self, out: bytearray, next_id: int) -> int:
        for i in range(self.id_count):
            octets.write_u16(out, self._id_positions[i], next_id)
            next_id = next_id + 1 if next_id < _ID_MAX else 1
        return next_id


def _effective_qos(flag: int, granted_qos: int) -> int:
    qos = flag & _FLAG_QOS_MASK if flag & _FLAG_MARK_MASK == _FLAG_MARK else 1
    return qos if qos < granted_qos else granted_qos


def _write_header(out: bytearray, pos: int, first: int, length: int) -> int:
    """Write a fixed header; return the position after it."""
    octets.write_u8(out, pos, first)
    return varint.put(out, pos + 1, length)
