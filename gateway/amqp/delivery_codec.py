"""Stored messages to deliveries: method, content header and body frames, a whole batch into one piece of bytes.

A message with the same properties as the one before takes its names and its block from there. One that came in by
another door gets a block made of what its record says.

Source: docs/protocols/amqp.md, "Frames" and "Properties".
"""

from __future__ import annotations

from collections.abc import Callable

from core import octets
from core.message import StoredBatch
from gateway.amqp.deaths import DELIVERY_COUNT, STREAM_OFFSET, add_number
from gateway.amqp.stored_properties import StoredProperties

_FRAME_METHOD = 1
_FRAME_HEADER = 2
_FRAME_BODY = 3
_FRAME_END = 0xCE
_DELIVER = 0x003C003C
_GET_OK = 0x003C0047
_CONTENT_CLASS = 0x003C0000  # basic, weight 0
_KEY_BYTES_MAX = 255  # a short string
_AMQ_TOPIC = b"\x09amq.topic"
_ROOM_AT_FIRST = 262_144  # it grows to the largest batch
_MESSAGE_ROOM = 1_600  # frames, method, two names and own headers of one delivery, with something to spare


class DeliveryEncoder:
    """Writes stored messages as deliveries: method, content header and body frames.

    Args:
        key_from_topic: Gives the routing key of a topic that has escapes in it; the plain ones are turned here.
    """

    def __init__(self, key_from_topic: Callable[[bytes], bytes]) -> None:
        self.body_bytes = 0  # of what was encoded last
        self.tells_offsets = False  # whether headers say where in its queue a message lies
        self.counts_deliveries = False  # whether headers say how often a message was delivered before
        self._key_from_topic = key_from_topic
        self._properties = StoredProperties()
        self._amq_topic = _AMQ_TOPIC
        self._out = bytearray(_ROOM_AT_FIRST)
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
        self.body_bytes = 0
        for i in range(stored.count):
            body_size = stored.body_end[i] - stored.body_start[i]
            self.body_bytes += body_size
            room += body_size + 8 * (body_size // payload_max) + _MESSAGE_ROOM
            room += 5 * (stored.properties_end[i] - stored.properties_start[i])
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
            end = found.write_block(buf, span, stored.flag[i], stored.born_ms[i], self._room, pos)
            if not self.tells_offsets and (not self.counts_deliveries or stored.attempt[i] <= 1):
                return end
            block = octets.read_bytes(self._room, pos, end)
        if self.tells_offsets:
            block = add_number(block, STREAM_OFFSET, stored.queue_offset[i])
            octets.copy_bytes(self._room, pos, block, 0, len(block))
            return pos + len(block)
        if self.counts_deliveries and stored.attempt[i] > 1:
            block = add_number(block, DELIVERY_COUNT, stored.attempt[i] - 1)
            octets.copy_bytes(self._room, pos, block, 0, len(block))
            return pos + len(block)
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
