"""Properties of PUBLISH packets that clients send: checked, and made the properties of a record.

Source: section 3.3.2.3 of MQTT 5; docs/protocols/crossing.md.
"""

from __future__ import annotations

from core import octets
from core.envelope import (
    FIELD_OTHER,
    field_code,
    is_plain,
    is_text,
    write_escaped,
    write_escaped_field,
    write_field,
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
_CONTENT_TYPE_NAME = CONTENT_TYPE
_ESCAPED_NAME = ESCAPED_CONTENT_TYPE
_CORRELATION_NAME = CORRELATION
_PAIR_NAME = PAIR
_FORMAT_NAME = PAYLOAD_FORMAT
_RESPONSE_TOPIC_NAME = RESPONSE_TOPIC
_TTL_NAME = TTL_MS
_EXTRA_RATIO = 4  # of a record's properties to those of a packet: escaped, and a name for each
_EXTRA_BYTES = 128  # of numbers, whose texts are longer than their bytes, and their names
_HAS_SEPARATOR = octets.HAS_SEPARATOR
_NOT_ASCII_TEXT = octets.HAS_ZERO | octets.HAS_HIGH


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
        self._users_kinds = 0  # of their bytes, as `octets.kinds_of` has them
        self._seen = 0

    def _forget(self) -> None:
        self.alias = 0
        self.expiry_s = -1
        self.format = -1
        self._content_start = -1
        self._response_start = -1
        self._correlation_start = -1
        self._users_start = -1
        self._users_kinds = 0
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
                pos += 1
                for _ in range(2):
                    after = pos + 2 + octets.read_u16(buf, pos) if pos + 2 <= end else end + 1
                    if after > end:
                        return _MALFORMED
                    kinds = octets.kinds_of(buf, pos + 2, after)
                    if kinds & _NOT_ASCII_TEXT and not is_text(buf, pos + 2, after):
                        return _MALFORMED
                    self._users_kinds |= kinds
                    pos = after
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
            if not is_topic(buf, start, end):
                return -_VIOLATION
        return end

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
            pos = _write_users(buf, self._users_start, end, self._users_kinds & _HAS_SEPARATOR == 0, out, pos)
        return pos


def extra_bytes_max(size: int) -> int:
    """Return how many bytes `write_extra` writes at most for properties of `size` bytes."""
    return size * _EXTRA_RATIO + _EXTRA_BYTES


def is_topic(buf: bytes | bytearray | memoryview, start: int, end: int) -> bool:
    """Return whether answers can go to the topic [start, end)."""
    for pos in range(start, end):
        if buf[pos] < 0x20 or buf[pos] in (0x23, 0x2B):  # MQTT-3.3.2-14
            return False
    return end > start


def _are_own(buf: bytes | bytearray | memoryview, start: int, name_end: int, value_start: int, end: int) -> bool:
    """Return whether neither name nor value of a user property has a separator, so that both can stand in a record."""
    return is_plain(buf, start, name_end) and is_plain(buf, value_start, end)


def _write_users(
    buf: bytes | bytearray | memoryview,
    pos: int,
    end: int,
    are_plain: bool,  # noqa: FBT001  # a C function
    out: bytearray | memoryview,
    out_pos: int,
) -> int:
    """Write the user properties among the checked properties in [pos, end); return the position after them.

    `are_plain` says that none of them has a separator.
    """
    while pos < end:
        name = buf[pos]
        pos += 1
        if name == 0x26:
            name_start = pos + 2
            name_end = name_start + octets.read_u16(buf, pos)
            value_start = name_end + 2
            pos = value_start + octets.read_u16(buf, name_end)
            is_own = name_end > name_start and (  # as `field_code` has it, without a call for most
                0x61 <= buf[name_start] <= 0x7A or field_code(buf, name_start, name_end) == _OTHER
            )
            if is_own and (are_plain or _are_own(buf, name_start, name_end, value_start, pos)):
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
