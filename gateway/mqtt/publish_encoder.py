"""Stored messages to PUBLISH packets, by the batch."""

from __future__ import annotations

from array import array

from core import octets
from core.message import FLAG_MARK, FLAG_MARK_MASK, FLAG_QOS_MASK, StoredBatch

BATCH_COUNT_MAX = 1024  # messages in a batch: enough to make the cost of a batch vanish
_SCRATCH_BYTES = 65_536
_ID_MAX = 65_535
_FLAG_MARK = FLAG_MARK
_FLAG_MARK_MASK = FLAG_MARK_MASK
_FLAG_QOS_MASK = FLAG_QOS_MASK


class PublishEncoder:
    """Writes PUBLISH packets for stored messages, many at a time; one serves a whole door.

    A message goes out at the lower of its own QoS and the granted one; one without the mark of the gateway's doors
    came from a RocketMQ producer and counts as QoS 1. After `encode`, `id_count` is how many packet identifiers were
    written and `body_bytes` the size of all bodies.
    """

    def __init__(self, capacity: int = BATCH_COUNT_MAX) -> None:
        self.id_count = 0
        self.body_bytes = 0
        self._id_positions = array("i", bytes(4 * capacity))
        self._out = bytearray(_SCRATCH_BYTES)
        self._size = 0
        self._of: StoredBatch | None = None  # what `_out` holds, for the same messages in the queue of another filter
        self._fill_number = 0
        self._count = 0
        self._granted_qos = 0
        self._data = b""  # the packets, where they have no identifiers

    def encode(self, batch: StoredBatch, granted_qos: int, first_id: int, dup_until: int = 0, retain: int = 0) -> bytes:
        """Return the packets of all messages of `batch`.

        Args:
            batch: What was read.
            granted_qos: 0 or 1.
            first_id: Packet identifier of the first message at QoS 1; the next ones count on, from 65,535 to 1.
            dup_until: Messages with a queue offset below this may have been sent before: those at QoS 1 are marked as
                sent again, those at QoS 0 left out.
            retain: The retain flag of all packets, 0 or 1.
        """
        is_first = dup_until == 0 and retain == 0
        if is_first and self._holds(batch, granted_qos):
            return self.renumber(first_id) if self.id_count else self._data
        size = self._measure(batch, granted_qos)
        if size > len(self._out):
            self._out = bytearray(size)
        self._size = self._write(batch, batch.buf, self._out, granted_qos, first_id, dup_until, retain)
        data = octets.read_bytes(self._out, 0, self._size)
        self._data = b"" if self.id_count else data
        self._of = batch if is_first and batch.fill_number > 0 else None
        self._fill_number = batch.fill_number
        self._count = batch.count
        self._granted_qos = granted_qos
        return data

    def _holds(self, batch: StoredBatch, granted_qos: int) -> bool:
        """Return whether the last result was of the messages of `batch`, none of them sent again."""
        if self._of is not batch or self._fill_number != batch.fill_number:
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
            length += 2 * _effective_qos(batch.flag[i], granted_qos)
            size += 1 + _length_size(length) + length
        self.body_bytes = bodies
        return size

    def _write(  # noqa: PLR0917 - a C function, which takes no keywords
        self,
        batch: StoredBatch,
        buf: bytes | bytearray | memoryview,
        out: bytearray,
        granted_qos: int,
        next_id: int,
        dup_until: int,
        retain: int,
    ) -> int:
        pos = 0
        ids = 0
        for i in range(batch.count):
            qos = _effective_qos(batch.flag[i], granted_qos)
            dup = 8 if batch.queue_offset[i] < dup_until else 0
            if dup and not qos:
                continue
            topic_size = batch.topic_end[i] - batch.topic_start[i]
            body_size = batch.body_end[i] - batch.body_start[i]
            pos = _write_header(out, pos, 0x30 | dup | qos << 1 | retain, 2 + topic_size + 2 * qos + body_size)
            octets.write_u16(out, pos, topic_size)
            octets.copy_bytes(out, pos + 2, buf, batch.topic_start[i], topic_size)
            pos += 2 + topic_size
            if qos:
                octets.write_u16(out, pos, next_id)
                self._id_positions[ids] = pos
                ids += 1
                next_id = next_id + 1 if next_id < _ID_MAX else 1
                pos += 2
            octets.copy_bytes(out, pos, buf, batch.body_start[i], body_size)
            pos += body_size
        self.id_count = ids
        return pos

    def _patch(self, out: bytearray, next_id: int) -> int:
        for i in range(self.id_count):
            octets.write_u16(out, self._id_positions[i], next_id)
            next_id = next_id + 1 if next_id < _ID_MAX else 1
        return next_id


def _effective_qos(flag: int, granted_qos: int) -> int:
    if granted_qos == 0 or (flag & _FLAG_MARK_MASK == _FLAG_MARK and flag & _FLAG_QOS_MASK == 0):
        return 0
    return 1


def _length_size(length: int) -> int:
    if length < 0x80:
        return 1
    if length < 0x4000:
        return 2
    return 3 if length < 0x20_0000 else 4


def _write_header(out: bytearray, pos: int, first: int, length: int) -> int:
    """Write a fixed header; return the position after it."""
    octets.write_u8(out, pos, first)
    pos += 1
    while length >= 0x80:
        octets.write_u8(out, pos, length & 0x7F | 0x80)
        length >>= 7
        pos += 1
    octets.write_u8(out, pos, length)
    return pos + 1
