"""Bytes to frames and back: one frame at a time where it is rare, runs of publishes and deliveries where it is not.

A publish is three frames or more: method, content header, body. Runs whose bodies have one frame each are cut into one
`PublishBatch` without copying; whatever does not look like that is left to the connection, a frame at a time.

Source: docs/protocols/amqp.md, "Frames".
"""

from __future__ import annotations

from collections.abc import Callable

from core import octets
from core.message import FLAG_MARK, PublishBatch, StoredBatch
from gateway.amqp.errors import AmqpError, frame_error
from gateway.amqp.property_block import EXTRA_BYTES_MAX, BlockReader, StoredProperties

FRAME_METHOD = 1
FRAME_HEADER = 2
FRAME_BODY = 3
FRAME_HEARTBEAT = 8
FRAME_OVERHEAD = 8  # type, channel, size, end
_FRAME_METHOD = FRAME_METHOD
_FRAME_HEADER = FRAME_HEADER
_FRAME_BODY = FRAME_BODY
_FRAME_HEARTBEAT = FRAME_HEARTBEAT
_FRAME_END = 0xCE

PUBLISH = 0x003C0028
_PUBLISH = PUBLISH
_DELIVER = 0x003C003C
_GET_OK = 0x003C0047
_CONTENT_CLASS = 0x003C0000  # basic, weight 0

MANDATORY = 1
_EXTRA_BYTES_MAX = EXTRA_BYTES_MAX
_FLAG_MARK = FLAG_MARK
_KEY_BYTES_MAX = 255  # a short string
_EXTRA_ROOM = 262_144
_AMQ_TOPIC = b"\x09amq.topic"
_MESSAGE_ROOM = 1_600  # frames, method, two names and own headers of one delivery, with something to spare


def cut_frame(buf: bytes | bytearray | memoryview, pos: int, end: int, payload_max: int) -> int:
    """Return what frame is at `pos`: payload size << 24 | channel << 8 | type; 0 where it is not all there yet.

    Raises:
        AmqpError: FRAME_ERROR: no frame of this protocol, or larger than was agreed; said before it is all there.
    """
    if pos >= end:
        return 0
    kind = buf[pos]
    if kind not in (_FRAME_METHOD, _FRAME_HEADER, _FRAME_BODY, _FRAME_HEARTBEAT):
        raise frame_error(f"unknown frame type {kind}")
    if pos + 7 > end:
        return 0
    channel = octets.read_u16(buf, pos + 1)
    size = octets.read_u32(buf, pos + 3)
    if size > payload_max:
        raise frame_error(f"type {kind}: frame_too_large: {size} bytes, at most {payload_max}")
    if pos + size + 8 > end:
        return 0
    if buf[pos + size + 7] != _FRAME_END:
        raise frame_error(f"type {kind}: invalid frame end marker")
    return (size << 24) | (channel << 8) | kind


def frame_size(
    buf: bytes | bytearray | memoryview, pos: int, end: int, kind: int, channel: int, payload_max: int
) -> int:
    """Return the payload size of a frame of this type and channel at `pos`, or -1 if that is not what is there."""
    if pos + 8 > end or buf[pos] != kind or octets.read_u16(buf, pos + 1) != channel:
        return -1
    size = octets.read_u32(buf, pos + 3)
    if size > payload_max or pos + 8 + size > end or buf[pos + 7 + size] != _FRAME_END:
        return -1
    return size


class PublishCutter:
    """Turns publishes into the one batch that it owns; good until the next call.

    Of each message, `topics` has exchange and routing key as they came (two short strings), `tag` the mandatory bit,
    `extra` the property block as a record's properties. Routes are the caller's to fill.
    """

    def __init__(self, capacity: int) -> None:
        self.batch = PublishBatch(capacity)
        self.mandatory_count = 0
        self._reader = BlockReader()
        self._extra = bytearray(_EXTRA_ROOM)
        self._room = memoryview(self._extra)
        self._extra_first = 0  # where the newest message's properties start
        self._extra_used = 0  # and end
        self._index: dict[bytes, int] = {}
        self._raw_start = 0
        self._raw_size = -1
        self._route = 0
        self._block_start = 0
        self._block_size = -1
        self._flag = 0

    def cut(self, src: bytes, pos: int, end: int, channel: int, payload_max: int, body_max: int, user: bytes) -> int:
        """Cut the run of publishes on `channel` at `pos` into the batch; return the position after it.

        The run ends before the first frame that is not all there, is wrong in any way, or goes on in a further body
        frame; then the batch may be empty.
        """
        buf = src
        batch = self.batch
        self._begin(src)
        while batch.count < batch.capacity and self._extra_used + _EXTRA_BYTES_MAX <= _EXTRA_ROOM:
            after = self._cut_one(buf, pos, end, channel, payload_max, body_max, user)
            if after < 0:
                break
            pos = after
        return pos

    def add(self, raw: bytes, bits: int, block: bytes, body: bytes | bytearray, user: bytes) -> None:
        """Make the batch of the one message whose frames were put together elsewhere.

        Raises:
            AmqpError: The block is malformed, too large, or names another user.
        """
        self._begin(body)
        self._take_block(block, 0, len(block), user)
        self._take_raw(raw, 0, len(raw))
        self._append(bits, 0, len(body))

    def _begin(self, src: bytes | bytearray) -> None:
        self.batch.clear()
        self.batch.buf = src
        self.batch.extra = self._extra
        self.mandatory_count = 0
        self._extra_used = 0
        self._index.clear()
        self._raw_size = -1
        self._block_size = -1

    def _cut_one(
        self,
        buf: bytes,
        pos: int,
        end: int,
        channel: int,
        payload_max: int,
        body_max: int,
        user: bytes,
    ) -> int:
        size = frame_size(buf, pos, end, _FRAME_METHOD, channel, payload_max)
        if size < 9 or octets.read_u32(buf, pos + 7) != _PUBLISH:
            return -1
        header = pos + 8 + size
        raw = pos + 13
        key = raw + 1 + buf[raw]
        if key >= header - 2:
            return -1
        bits = key + 1 + buf[key]
        if bits + 2 != header or buf[bits] > 1:
            return -1
        size = frame_size(buf, header, end, _FRAME_HEADER, channel, payload_max)
        if size < 14 or octets.read_u32(buf, header + 7) != _CONTENT_CLASS or octets.read_u32(buf, header + 11):
            return -1
        body_size = octets.read_u32(buf, header + 15)
        body = header + 8 + size
        after = body
        if body_size:
            if body_size > body_max:
                return -1
            if frame_size(buf, body, end, _FRAME_BODY, channel, payload_max) != body_size:
                return -1
            after = body + 8 + body_size
            body += 7
        try:
            self._take_block(buf, header + 19, header + 7 + size, user)
        except AmqpError:
            return -1
        self._take_raw(buf, raw, bits)
        self._append(buf[bits], body, body + body_size)
        return after

    def _take_raw(self, buf: bytes, start: int, end: int) -> None:
        size = end - start
        if size == self._raw_size and octets.equal_bytes(buf, start, buf, self._raw_start, size):
            return
        raw = octets.read_bytes(buf, start, end)
        found = self._index.get(raw)
        if found is None:
            found = len(self._index)
            self._index[raw] = found
            self.batch.topics.append(raw)
        self._route = found
        self._raw_start = start
        self._raw_size = size

    def _take_block(self, buf: bytes, start: int, end: int, user: bytes) -> None:
        size = end - start
        if size == self._block_size and octets.equal_bytes(buf, start, buf, self._block_start, size):
            return
        reader = self._reader
        reader.read(buf, start, end)
        reader.check_user(buf, user)
        self._extra_first = self._extra_used
        self._extra_used = reader.write_extra(buf, start, end, self._room, self._extra_first)
        self._flag = _FLAG_MARK | (1 if reader.delivery_mode == 2 else 0)
        self._block_start = start
        self._block_size = size

    def _append(self, bits: int, body_start: int, body_end: int) -> None:
        batch = self.batch
        i = batch.count
        batch.route_index[i] = self._route
        batch.extra_start[i] = self._extra_first
        batch.extra_end[i] = self._extra_used
        batch.body_start[i] = body_start
        batch.body_end[i] = body_end
        batch.flag[i] = self._flag
        batch.sys_flag[i] = 0
        batch.reconsume_times[i] = 0
        batch.born_ms[i] = 0
        batch.tag[i] = bits
        self.mandatory_count += bits & 1
        batch.count = i + 1


class DeliveryEncoder:
    """Writes stored messages as deliveries: method, content header and body frames.

    Args:
        key_from_topic: Gives the routing key of a topic that has escapes in it; the plain ones are turned here.
    """

    def __init__(self, key_from_topic: Callable[[bytes], bytes]) -> None:
        self._key_from_topic = key_from_topic
        self._properties = StoredProperties()
        self._amq_topic = _AMQ_TOPIC
        self._out = bytearray(_EXTRA_ROOM)
        self._room = memoryview(self._out)
        self._same_start = 0  # the properties of the message before, up to its block, in the stored buffer
        self._same_size = 0
        self._names_start = 0  # its exchange and routing key as written
        self._names_size = 0
        self._block_start = 0  # its property block as written
        self._block_size = 0
        self._is_cut = False

    def encode_deliveries(
        self, stored: StoredBatch, channel: int, consumer: bytes, first_tag: int, payload_max: int
    ) -> bytes:
        """Return `basic.deliver` with content for all of `stored`, tags from `first_tag` up.

        `consumer` is the consumer tag as a short string, its length first.
        """
        return self._encode(stored, channel, consumer, first_tag, payload_max, -1)

    def encode_get_ok(self, stored: StoredBatch, channel: int, tag: int, payload_max: int, message_count: int) -> bytes:
        """Return `basic.get-ok` with content for the one message in `stored`."""
        return self._encode(stored, channel, b"", tag, payload_max, message_count)

    def _encode(
        self,
        stored: StoredBatch,
        channel: int,
        consumer: bytes,
        first_tag: int,
        payload_max: int,
        message_count: int,
    ) -> bytes:
        buf = stored.buf
        tag_text = consumer
        self._ensure_room(stored, payload_max)
        self._same_size = 0
        pos = 0
        for i in range(stored.count):
            pos = self._write_method(buf, stored, i, channel, tag_text, first_tag + i, message_count, pos)
            pos = self._write_header(buf, stored, i, channel, pos)
            pos = self._write_body(buf, stored.body_start[i], stored.body_end[i], channel, payload_max, pos)
        return octets.read_bytes(self._room, 0, pos)

    def _ensure_room(self, stored: StoredBatch, payload_max: int) -> None:
        room = 0
        for i in range(stored.count):
            body_size = stored.body_end[i] - stored.body_start[i]
            room += body_size + 8 * (body_size // payload_max) + _MESSAGE_ROOM
            room += 3 * (stored.properties_end[i] - stored.properties_start[i])
        if room > len(self._out):
            self._out = bytearray(room + room // 4)
            self._room = memoryview(self._out)

    def _write_method(
        self,
        buf: bytes | bytearray | memoryview,
        stored: StoredBatch,
        i: int,
        channel: int,
        tag_text: bytes,
        tag: int,
        message_count: int,
        pos: int,
    ) -> int:
        out = self._room
        frame = pos
        octets.write_u8(out, pos, _FRAME_METHOD)
        octets.write_u16(out, pos + 1, channel)
        octets.write_u32(out, pos + 7, _DELIVER if message_count < 0 else _GET_OK)
        size = len(tag_text)
        octets.copy_bytes(out, pos + 11, tag_text, 0, size)
        pos += 11 + size
        octets.write_u64(out, pos, tag)
        octets.write_u8(out, pos + 8, 1 if stored.attempt[i] > 1 else 0)
        pos = self._write_names(buf, stored, i, pos + 9)
        if message_count >= 0:
            octets.write_u32(out, pos, message_count)
            pos += 4
        octets.write_u32(out, frame + 3, pos - frame - 7)
        octets.write_u8(out, pos, _FRAME_END)
        return pos + 1

    def _write_names(
        self,
        buf: bytes | bytearray | memoryview,
        stored: StoredBatch,
        i: int,
        pos: int,
    ) -> int:
        out = self._room
        start = stored.properties_start[i]
        end = stored.properties_end[i]
        if self._same_size:
            if start + self._same_size <= end and octets.equal_bytes(
                buf, start, buf, self._same_start, self._same_size
            ):
                octets.copy_bytes(out, pos, out, self._names_start, self._names_size)
                self._names_start = pos
                return pos + self._names_size
            self._same_size = 0
        found = self._properties
        found.read(buf, start, end)
        self._names_start = pos
        self._is_cut = False
        if found.exchange_start >= 0 and found.exchange_end - found.exchange_start <= _KEY_BYTES_MAX:
            pos = _write_short(buf, found.exchange_start, found.exchange_end, out, pos)
        else:
            octets.copy_bytes(out, pos, self._amq_topic, 0, 10)
            pos += 10
        if found.key_start >= 0 and found.key_end - found.key_start <= _KEY_BYTES_MAX:
            pos = _write_short(buf, found.key_start, found.key_end, out, pos)
        else:
            pos = self._write_topic_key(buf, stored.topic_start[i], stored.topic_end[i], pos)
        self._names_size = pos - self._names_start
        return pos

    def _write_topic_key(self, buf: bytes | bytearray | memoryview, start: int, end: int, pos: int) -> int:
        out = self._room
        size = end - start
        if size > _KEY_BYTES_MAX:
            return self._write_odd_key(buf, start, end, pos)
        octets.write_u8(out, pos, size)
        for k in range(size):
            letter = buf[start + k]
            if letter == 0x2F:  # slash
                letter = 0x2E  # dot
            elif letter in (0x2E, 0x25, 0x2A):  # dot, percent, star
                return self._write_odd_key(buf, start, end, pos)
            out[pos + 1 + k] = letter
        return pos + 1 + size

    def _write_odd_key(self, buf: bytes | bytearray | memoryview, start: int, end: int, pos: int) -> int:
        key = self._key_from_topic(octets.read_bytes(buf, start, end))
        if len(key) > _KEY_BYTES_MAX:
            key = key[:_KEY_BYTES_MAX].decode("utf-8", "ignore").encode()
            self._is_cut = True
        return _write_short(key, 0, len(key), self._room, pos)

    def _write_header(
        self,
        buf: bytes | bytearray | memoryview,
        stored: StoredBatch,
        i: int,
        channel: int,
        pos: int,
    ) -> int:
        out = self._room
        frame = pos
        octets.write_u8(out, pos, _FRAME_HEADER)
        octets.write_u16(out, pos + 1, channel)
        octets.write_u32(out, pos + 7, _CONTENT_CLASS)
        octets.write_u64(out, pos + 11, stored.body_end[i] - stored.body_start[i])
        pos += 19
        if self._same_size:
            octets.copy_bytes(out, pos, out, self._block_start, self._block_size)
            self._block_start = pos
            pos += self._block_size
        else:
            pos = self._write_block(buf, stored, i, pos)
        octets.write_u32(out, frame + 3, pos - frame - 7)
        octets.write_u8(out, pos, _FRAME_END)
        return pos + 1

    def _write_block(
        self,
        buf: bytes | bytearray | memoryview,
        stored: StoredBatch,
        i: int,
        pos: int,
    ) -> int:
        found = self._properties
        block = found.amqp_block(buf)
        if block is None:
            topic_end = stored.topic_end[i] if self._is_cut else stored.topic_start[i]
            span = (stored.properties_start[i], stored.properties_end[i], stored.topic_start[i], topic_end)
            return found.write_block(buf, span, stored.flag[i], stored.born_ms[i], self._room, pos)
        size = len(block)
        octets.copy_bytes(self._room, pos, block, 0, size)
        self._same_start = stored.properties_start[i]
        self._same_size = found.amqp_end + 1 - self._same_start
        self._block_start = pos
        self._block_size = size
        return pos + size

    def _write_body(
        self, buf: bytes | bytearray | memoryview, start: int, end: int, channel: int, payload_max: int, pos: int
    ) -> int:
        out = self._room
        while start < end:
            size = end - start
            if size > payload_max:
                size = payload_max
            octets.write_u8(out, pos, _FRAME_BODY)
            octets.write_u16(out, pos + 1, channel)
            octets.write_u32(out, pos + 3, size)
            octets.copy_bytes(out, pos + 7, buf, start, size)
            octets.write_u8(out, pos + 7 + size, _FRAME_END)
            pos += 8 + size
            start += size
        return pos


def _write_short(
    buf: bytes | bytearray | memoryview, start: int, end: int, out: bytearray | memoryview, pos: int
) -> int:
    octets.write_u8(out, pos, end - start)
    octets.copy_bytes(out, pos + 1, buf, start, end - start)
    return pos + 1 + end - start
