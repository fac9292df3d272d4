"""Properties of PUBLISH packets on the data path: checked, into a record's properties, and back.

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
    is_plain,
    is_text,
    read_decimal,
    write_escaped,
    write_escaped_field,
    write_field,
    write_unescaped,
)
from core.properties import (
    CONTENT_TYPE,
    CORRELATION,
    ESCAPED_CONTENT_TYPE,
    PAIR,
    PAYLOAD_FORMAT,
    RESPONSE_TOPIC,
    TTL_MS,
)

SOUND = 0
MALFORMED = 1  # cut off, unknown, or not of a PUBLISH
VIOLATION = 2  # there twice, or of a value that may not be
NO_ALIAS = 3  # the alias 0
TOO_LARGE = 4
PROPERTIES_BYTES_MAX = 16_384  # of one PUBLISH: a record's properties, with the topic and all else, have 32,767 bytes
_SOUND = SOUND
_MALFORMED = MALFORMED
_VIOLATION = VIOLATION
_NO_ALIAS = NO_ALIAS
_TOO_LARGE = TOO_LARGE
_BYTES_MAX = PROPERTIES_BYTES_MAX
_OTHER = FIELD_OTHER
_HIDDEN = FIELD_HIDDEN
_CONTENT_TYPE = FIELD_CONTENT_TYPE
_TTL_MS = FIELD_TTL_MS
_FORMAT = FIELD_FORMAT
_RESPONSE_TOPIC = FIELD_RESPONSE_TOPIC
_CORRELATION = FIELD_CORRELATION
_ESCAPED_CONTENT_TYPE = FIELD_ESCAPED_CONTENT_TYPE
_PAIR = FIELD_PAIR
_CONTENT_TYPE_NAME = CONTENT_TYPE
_ESCAPED_NAME = ESCAPED_CONTENT_TYPE
_CORRELATION_NAME = CORRELATION
_PAIR_NAME = PAIR
_FORMAT_NAME = PAYLOAD_FORMAT
_RESPONSE_TOPIC_NAME = RESPONSE_TOPIC
_TTL_NAME = TTL_MS
_EXTRA_RATIO = 4  # of a record's properties to those of a packet: escaped, and a name for each
_EXTRA_BYTES = 128
_SECONDS_MAX = 0xFFFFFFFF
_LENGTH_MAX = 0xFFFF


class PublishProperties:
    """What one PUBLISH carries; positions lie in the buffer that was read, -1 where a property is absent."""

    def __init__(self) -> None:
        self.alias = 0
        self.expiry_s = -1
        self.format = -1
        self._content_start = -1
        self._content_end = -1
        self._response_start = -1
        self._response_end = -1
        self._correlation_start = -1
        self._correlation_end = -1
        self._users_start = -1  # before the first user property
        self._seen = 0

    def _forget(self) -> None:
        self.alias = 0
        self.expiry_s = -1
        self.format = -1
        self._content_start = -1
        self._response_start = -1
        self._correlation_start = -1
        self._users_start = -1
        self._seen = 0

    def read(self, buf: bytes | bytearray | memoryview, pos: int, end: int) -> int:
        """Check the properties in [pos, end); return SOUND or which fault they have."""
        self._forget()
        if end - pos > _BYTES_MAX:
            return _TOO_LARGE
        while pos < end:
            name = buf[pos]
            if name == 0x26:
                if self._users_start < 0:
                    self._users_start = pos
                pos = _skip_user(buf, pos + 1, end)
                if pos < 0:
                    return _MALFORMED
                continue
            if name > 0x23:
                return _MALFORMED
            bit = 1
            bit <<= name
            if self._seen & bit:
                return _VIOLATION
            self._seen |= bit
            after = self._read_one(buf, name, pos + 1, end)
            if after <= 0:
                return -after
            pos = after
        return _SOUND

    def _read_one(self, buf: bytes | bytearray | memoryview, name: int, pos: int, end: int) -> int:
        """Read one property; return the position after it, or a fault, negative."""
        if name in (0x03, 0x08, 0x09):
            after = pos + 2 + octets.read_u16(buf, pos) if pos + 2 <= end else end + 1
            if after > end or (name != 0x09 and not is_text(buf, pos + 2, after)):
                return -_MALFORMED
            return self._keep_text(buf, name, pos + 2, after)
        if name == 0x01:
            if pos >= end:
                return -_MALFORMED
            self.format = buf[pos]
            return pos + 1 if self.format <= 1 else -_VIOLATION
        if name == 0x02:
            if pos + 4 > end:
                return -_MALFORMED
            self.expiry_s = octets.read_u32(buf, pos)
            return pos + 4
        if name == 0x23:
            if pos + 2 > end:
                return -_MALFORMED
            self.alias = octets.read_u16(buf, pos)
            return pos + 2 if self.alias else -_NO_ALIAS
        return -_VIOLATION if name == 0x0B else -_MALFORMED  # MQTT-3.3.4-6: no subscription identifier

    def _keep_text(self, buf: bytes | bytearray | memoryview, name: int, start: int, end: int) -> int:
        if name == 0x03:
            self._content_start = start
            self._content_end = end
        elif name == 0x09:
            self._correlation_start = start
            self._correlation_end = end
        else:
            self._response_start = start
            self._response_end = end
            if not _is_topic(buf, start, end):
                return -_VIOLATION
        return end

    @staticmethod
    def extra_bytes_max(size: int) -> int:
        """Return how many bytes `write_extra` writes at most for properties of `size` bytes."""
        return size * _EXTRA_RATIO + _EXTRA_BYTES

    def write_extra(self, buf: bytes | bytearray | memoryview, end: int, out: bytearray | memoryview, pos: int) -> int:
        """Write what was read last, up to `end`, as a record's properties; return the position after them.

        A topic alias is none of the message's, and not written.
        """
        if self.expiry_s >= 0:
            pos = octets.put_bytes(out, pos, _TTL_NAME)
            octets.write_u8(out, pos, 1)
            pos = octets.write_decimal(out, pos + 1, self.expiry_s * 1000)
            octets.write_u8(out, pos, 2)
            pos += 1
        if self._content_start >= 0:
            if is_plain(buf, self._content_start, self._content_end):
                pos = write_field(_CONTENT_TYPE_NAME, buf, self._content_start, self._content_end, out, pos)
            else:
                pos = write_escaped_field(_ESCAPED_NAME, buf, self._content_start, self._content_end, out, pos)
        if self._response_start >= 0:
            pos = write_field(_RESPONSE_TOPIC_NAME, buf, self._response_start, self._response_end, out, pos)
        if self._correlation_start >= 0:
            pos = write_escaped_field(_CORRELATION_NAME, buf, self._correlation_start, self._correlation_end, out, pos)
        if self.format >= 0:
            pos = octets.put_bytes(out, pos, _FORMAT_NAME)
            octets.write_u8(out, pos, 1)
            octets.write_u8(out, pos + 1, 0x30 + self.format)
            octets.write_u8(out, pos + 2, 2)
            pos += 3
        if self._users_start >= 0:
            pos = _write_users(buf, self._users_start, end, out, pos)
        return pos


def _is_topic(buf: bytes | bytearray | memoryview, start: int, end: int) -> bool:
    """Return whether answers can go to the topic [start, end)."""
    for pos in range(start, end):
        if buf[pos] < 0x20 or buf[pos] in (0x23, 0x2B):  # MQTT-3.3.2-14
            return False
    return end > start


def _skip_user(buf: bytes | bytearray | memoryview, pos: int, end: int) -> int:
    """Return the position after a user property at `pos`, or -1 where it is none."""
    for _ in range(2):
        after = pos + 2 + octets.read_u16(buf, pos) if pos + 2 <= end else end + 1
        if after > end or not is_text(buf, pos + 2, after):
            return -1
        pos = after
    return pos


def _is_own_name(buf: bytes | bytearray | memoryview, start: int, end: int) -> bool:
    """Return whether a user property can stand in a record under its own name."""
    return end > start and field_code(buf, start, end) == _OTHER and is_plain(buf, start, end)


def _write_users(
    buf: bytes | bytearray | memoryview, pos: int, end: int, out: bytearray | memoryview, out_pos: int
) -> int:
    """Write the user properties among the checked properties in [pos, end); return the position after them."""
    while pos < end:
        name = buf[pos]
        pos += 1
        if name == 0x26:
            name_start = pos + 2
            name_end = name_start + octets.read_u16(buf, pos)
            value_start = name_end + 2
            pos = value_start + octets.read_u16(buf, name_end)
            if _is_own_name(buf, name_start, name_end) and is_plain(buf, value_start, pos):
                octets.copy_bytes(out, out_pos, buf, name_start, name_end - name_start)
                out_pos += name_end - name_start
                octets.write_u8(out, out_pos, 1)
                octets.copy_bytes(out, out_pos + 1, buf, value_start, pos - value_start)
                out_pos += 1 + pos - value_start
            else:
                out_pos = octets.put_bytes(out, out_pos, _PAIR_NAME)
                octets.write_u8(out, out_pos, 1)
                out_pos = write_escaped(buf, name_start, name_end, 0x100, out, out_pos + 1)
                octets.write_u8(out, out_pos, 0x3D)
                out_pos = write_escaped(buf, value_start, pos, 0x100, out, out_pos + 1)
            octets.write_u8(out, out_pos, 2)
            out_pos += 1
        elif name == 0x01:
            pos += 1
        elif name == 0x02:
            pos += 4
        elif name == 0x23:
            pos += 2
        else:
            pos += 2 + octets.read_u16(buf, pos)
    return out_pos


class BlockWriter:
    """Writes the properties of a PUBLISH for a stored message, with their length before them."""

    def __init__(self) -> None:
        self._block = bytearray(1024)

    @staticmethod
    def block_bytes_max(size: int) -> int:
        """Return how many bytes `write` writes at most for a record's properties of `size` bytes."""
        return 3 * size + _EXTRA_BYTES

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
        """
        if self.block_bytes_max(end - pos) > len(self._block):
            self._block = bytearray(self.block_bytes_max(end - pos))
        size = self._write_fields(buf, pos, end, age_ms, self._block)
        if identifier:
            self._block[size] = 0x0B
            size = _write_varint(self._block, size + 1, identifier)
        if alias:
            self._block[size] = 0x23
            octets.write_u16(self._block, size + 1, alias)
            size += 3
        out_pos = _write_varint(out, out_pos, size)
        octets.copy_bytes(out, out_pos, self._block, 0, size)
        return out_pos + size

    def _write_fields(
        self, buf: bytes | bytearray | memoryview, pos: int, end: int, age_ms: int, out: bytearray | memoryview
    ) -> int:
        size = 0
        seen = 0  # a producer of RocketMQ may say things twice, and no packet may
        while pos < end:
            after = octets.find_byte(buf, 2, pos, end)
            if after < 0:
                after = end
            name_end = octets.find_byte(buf, 1, pos, after)
            if name_end >= 0:
                code = field_code(buf, pos, name_end)
                if code == _OTHER:
                    size = _write_user(buf, pos, name_end, after, out, size)
                elif code == _PAIR:
                    size = _write_pair(buf, name_end + 1, after, out, size)
                elif code != _HIDDEN:
                    bit = 1
                    bit <<= _CONTENT_TYPE if code == _ESCAPED_CONTENT_TYPE else code
                    if seen & bit == 0:
                        before = size
                        size = _write_known(buf, code, name_end + 1, after, age_ms, out, size)
                        if size > before:
                            seen |= bit
            pos = after + 1
        return size


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
    if not is_text(buf, start, end) or (code == _RESPONSE_TOPIC and not _is_topic(buf, start, end)):
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


def _write_varint(out: bytearray | memoryview, pos: int, value: int) -> int:
    while value >= 0x80:
        octets.write_u8(out, pos, value & 0x7F | 0x80)
        value >>= 7
        pos += 1
    octets.write_u8(out, pos, value)
    return pos + 1
