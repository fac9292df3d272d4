"""Properties of the PUBLISH packets that clients are sent, made of those of a record.

Source: section 3.3.2.3 of MQTT 5; docs/protocols/crossing.md.
"""

from __future__ import annotations

from core import octets
from core.envelope import (
    FIELD_CONTENT_TYPE,
    FIELD_CORRELATION,
    FIELD_ESCAPED_CONTENT_TYPE,
    FIELD_FORMAT,
    FIELD_HIDDEN,
    FIELD_OTHER,
    FIELD_PAIR,
    FIELD_RESPONSE_TOPIC,
    FIELD_TTL_MS,
    field_code,
    is_text,
    read_decimal,
    write_unescaped,
)
from core.properties import INNER_MULTI_DISPATCH
from gateway.mqtt import varint
from gateway.mqtt.publish_properties import is_topic

_OTHER = FIELD_OTHER
_HIDDEN = FIELD_HIDDEN
_CONTENT_TYPE = FIELD_CONTENT_TYPE
_TTL_MS = FIELD_TTL_MS
_FORMAT = FIELD_FORMAT
_RESPONSE_TOPIC = FIELD_RESPONSE_TOPIC
_CORRELATION = FIELD_CORRELATION
_ESCAPED_CONTENT_TYPE = FIELD_ESCAPED_CONTENT_TYPE
_PAIR = FIELD_PAIR
_DISPATCH_START = INNER_MULTI_DISPATCH + b"\x01"
_EXTRA_BYTES = 128  # length, identifier, alias and numbers, which may be longer than what the record has of them
_SECONDS_MAX = 0xFFFFFFFF  # an expiry has four bytes
_LENGTH_MAX = 0xFFFF  # a text has two bytes for its length
_KNOWN_BYTES = 1024  # of the properties of a message that the next one's are held against; chosen: one page has four


def block_bytes_max(size: int) -> int:
    """Return how many bytes `BlockWriter.write` writes at most for a record's properties of `size` bytes."""
    return 3 * size + _EXTRA_BYTES


class BlockWriter:
    """Writes the properties of a PUBLISH for a stored message, with their length before them.

    Many a client says the same of each message: properties that stand in the record as those of the message before did
    are not made again.
    """

    def __init__(self) -> None:
        self._block = bytearray(1024)
        self._known = bytearray(_KNOWN_BYTES)  # of the record before: up to the last property that is told
        self._known_size = 0  # 0 where the beginning of `_block` is not what was made of them
        self._known_start = 0  # of the first that is told
        self._known_block_size = 0
        self._known_age_ms = 0
        self._expires = False  # they say how long the message lives, and so what is made of them changes
        self._seen = 0  # fields: a producer of RocketMQ may say things twice, and no packet may

    def write(
        self,
        buf: bytes | bytearray | memoryview,
        pos: int,
        end: int,
        age_ms: int,
        identifier: int,
        out: bytearray | memoryview,
        out_pos: int,
        alias: int = 0,
        is_own: bool = False,  # noqa: FBT001, FBT002  # a C function
    ) -> int:
        """Write the block for a record with properties in [pos, end); return the position after it.

        Args:
            buf: Where the record lies.
            pos: Where its properties begin.
            end: Where they end.
            age_ms: How many milliseconds the message has lived in the log, -1 where that does not count.
            identifier: Of the subscription, 0 for none.
            out: Has room for `block_bytes_max` bytes.
            out_pos: Where the block goes.
            alias: Of the topic, 0 for none.
            is_own: Whether a door of the gateway wrote the message: what the log adds stands behind all that is told.
        """
        if block_bytes_max(end - pos) > len(self._block):
            self._block = bytearray(block_bytes_max(end - pos))
            self._known_size = 0
        size = self._write_fields(buf, pos, end, age_ms, is_own, self._block)
        if identifier:
            self._block[size] = 0x0B
            size = varint.put(self._block, size + 1, identifier)
        if alias:
            self._block[size] = 0x23
            octets.write_u16(self._block, size + 1, alias)
            size += 3
        out_pos = varint.put(out, out_pos, size)
        octets.copy_bytes(out, out_pos, self._block, 0, size)
        return out_pos + size

    def _write_fields(
        self,
        buf: bytes | bytearray | memoryview,
        pos: int,
        end: int,
        age_ms: int,
        is_own: bool,  # noqa: FBT001  # a C function
        out: bytearray | memoryview,
    ) -> int:
        first = pos
        start = -1  # of the first property that is told
        told_end = -1  # of the last
        noted_end = -1
        size = 0
        if self._holds(buf, pos, end, 0, age_ms):
            start = pos + self._known_start
            noted_end = pos + self._known_size
        elif self._has_same_start(buf, pos, end):
            pos += self._known_start
        while pos < end and not (is_own and buf[pos] == 0x49 and octets.starts_with(buf, pos, _DISPATCH_START)):
            if start < 0 and buf[pos] == self._known[self._known_start]:
                start = pos if self._holds(buf, pos, end, self._known_start, age_ms) else -1
            if told_end < 0 <= start:
                pos = told_end = start + self._known_size - self._known_start
                size = self._known_block_size
                continue
            after = octets.find_byte(buf, 2, pos, end)
            if after < 0:
                after = end
            name_end = octets.find_byte(buf, 1, pos, after)
            code = _OTHER if 0x61 <= buf[pos] <= 0x7A else field_code(buf, pos, name_end)  # a call less for most
            if name_end < 0:
                code = _HIDDEN
            if code != _HIDDEN:
                if start < 0:
                    start = pos
                    self._known_size = self._seen = 0
                    self._expires = False
                size = self._write_told(buf, code, pos, name_end, after, age_ms, out, size)
                told_end = after + 1
            pos = after + 1
        if told_end != noted_end or told_end < 0:  # where nothing is told, `_block` may begin with something else
            self._note(buf, first, start, told_end, end)
            self._known_age_ms = age_ms
            self._known_block_size = size
        return size

    def _holds(self, buf: bytes | bytearray | memoryview, pos: int, end: int, known_pos: int, age_ms: int) -> bool:
        """Return whether `_known` from `known_pos` on stands at `pos`, and makes what `_block` begins with."""
        size = self._known_size - known_pos
        if size <= 0 or size > end - pos or (self._expires and age_ms != self._known_age_ms):
            return False
        return octets.equal_bytes(buf, pos, self._known, known_pos, size)

    def _has_same_start(self, buf: bytes | bytearray | memoryview, pos: int, end: int) -> bool:
        """Return whether the properties before the first that is told are those of the record before."""
        size = self._known_start
        return 0 < size <= end - pos and self._known_size > 0 and octets.equal_bytes(buf, pos, self._known, 0, size)

    def _note(self, buf: bytes | bytearray | memoryview, first: int, start: int, told_end: int, end: int) -> None:
        """Note that `_block` begins with what [start, told_end) makes, where that is whole properties and not long."""
        size = told_end - first
        if start < 0 or told_end > end or size > _KNOWN_BYTES:
            self._known_size = 0
            return
        octets.copy_bytes(self._known, 0, buf, first, size)
        self._known_size = size
        self._known_start = start - first

    def _write_told(
        self,
        buf: bytes | bytearray | memoryview,
        code: int,
        pos: int,
        name_end: int,
        end: int,
        age_ms: int,
        out: bytearray | memoryview,
        size: int,
    ) -> int:
        """Write a property that clients are told; return the position after it."""
        if code == _OTHER:
            return _write_user(buf, pos, name_end, end, out, size)
        if code == _PAIR:
            return _write_pair(buf, name_end + 1, end, out, size)
        self._expires = self._expires or code == _TTL_MS
        bit = 1
        bit <<= _CONTENT_TYPE if code == _ESCAPED_CONTENT_TYPE else code
        if self._seen & bit:
            return size
        after = _write_known(buf, code, name_end + 1, end, age_ms, out, size)
        if after > size:
            self._seen |= bit
        return after


def _write_known(
    buf: bytes | bytearray | memoryview,
    code: int,
    start: int,
    end: int,
    age_ms: int,
    out: bytearray | memoryview,
    pos: int,
) -> int:
    """Write one of the envelope's fields; return the position after it."""
    if code == _TTL_MS:
        left_ms = read_decimal(buf, start, end) - age_ms
        if age_ms < 0 or left_ms < 0:
            return pos
        octets.write_u8(out, pos, 0x02)
        octets.write_u32(out, pos + 1, min((left_ms + 999) // 1000, _SECONDS_MAX))  # MQTT-3.3.2-6
        return pos + 5
    if code == _FORMAT:
        octets.write_u8(out, pos, 0x01)
        octets.write_u8(out, pos + 1, 1 if end > start and buf[start] == 0x31 else 0)
        return pos + 2
    if code in (_CORRELATION, _ESCAPED_CONTENT_TYPE):
        after = write_unescaped(buf, start, end, out, pos + 3)
        if after < 0 or after - pos - 3 > _LENGTH_MAX:
            return pos
        if code != _CORRELATION and not is_text(out, pos + 3, after):
            return pos
        octets.write_u8(out, pos, 0x09 if code == _CORRELATION else 0x03)
        octets.write_u16(out, pos + 1, after - pos - 3)
        return after
    if not is_text(buf, start, end) or (code == _RESPONSE_TOPIC and not is_topic(buf, start, end)):
        return pos
    octets.write_u8(out, pos, 0x08 if code == _RESPONSE_TOPIC else 0x03)
    octets.write_u16(out, pos + 1, end - start)
    octets.copy_bytes(out, pos + 3, buf, start, end - start)
    return pos + 3 + end - start


def _write_user(
    buf: bytes | bytearray | memoryview, start: int, name_end: int, end: int, out: bytearray | memoryview, pos: int
) -> int:
    """Write a user property; what no client of MQTT may be sent is left out."""
    if not is_text(buf, start, end):
        return pos
    size = name_end - start
    octets.write_u8(out, pos, 0x26)
    octets.write_u16(out, pos + 1, size)
    octets.copy_bytes(out, pos + 3, buf, start, size)
    pos += 3 + size
    size = end - name_end - 1
    octets.write_u16(out, pos, size)
    octets.copy_bytes(out, pos + 2, buf, name_end + 1, size)
    return pos + 2 + size


def _write_pair(
    buf: bytes | bytearray | memoryview, start: int, end: int, out: bytearray | memoryview, pos: int
) -> int:
    middle = octets.find_byte(buf, 0x3D, start, end)
    if middle < 0:
        return pos
    name_end = write_unescaped(buf, start, middle, out, pos + 3)
    value_end = write_unescaped(buf, middle + 1, end, out, name_end + 2) if name_end >= 0 else -1
    if value_end < 0:
        return pos
    octets.write_u8(out, pos, 0x26)
    octets.write_u16(out, pos + 1, name_end - pos - 3)
    octets.write_u16(out, name_end, value_end - name_end - 2)
    return value_end if is_text(out, pos + 3, name_end) and is_text(out, name_end + 2, value_end) else pos
