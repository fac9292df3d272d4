"""The envelope of a message: the fields beside topic and body in which no protocol loses anything, as properties.

| field | property | value |
|---|---|---|
| content type | `CONTENT_TYPE`, or `LMQ_CONTENT_TYPE` where that cannot be | text; escaped |
| time to live | `LMQ_TTL_MS`, and FLAG_EXPIRES | milliseconds from the store time on, decimal |
| payload format | `LMQ_FORMAT` | 0 bytes, 1 UTF-8 |
| where answers go | `LMQ_RESPONSE_TOPIC` | a topic in MQTT's form |
| what answers carry | `LMQ_CORRELATION` | bytes, escaped |
| user properties, in order, equal names too | under their own names, else `LMQ_PAIR` | text; name=value, escaped |
| publisher | `LMQ_PROTOCOL`, `LMQ_CLIENT`, `LMQ_USER` | text |
| QoS, retain | the record's flag | |
| AMQP's property block | `LMQ_AMQP` | base64, byte for byte |

Escaped: a control character, `%`, `=`, and in bytes everything from 0x80 on, is `%` and two hexadecimal digits.

Source: docs/protocols/crossing.md.
"""

from __future__ import annotations

from core import octets
from core.properties import RESERVED, TTL_MS_MAX

FIELD_OTHER = 0  # a user property
FIELD_HIDDEN = 1  # the log's own
FIELD_CONTENT_TYPE = 2
FIELD_TTL_MS = 3  # a time to live
FIELD_FORMAT = 4
FIELD_RESPONSE_TOPIC = 5
FIELD_CORRELATION = 6
FIELD_PAIR = 7
FIELD_ESCAPED_CONTENT_TYPE = 8
_OTHER = FIELD_OTHER
_HIDDEN = FIELD_HIDDEN
_CONTENT_TYPE = FIELD_CONTENT_TYPE
_TTL_MS = FIELD_TTL_MS
_FORMAT = FIELD_FORMAT
_RESPONSE_TOPIC = FIELD_RESPONSE_TOPIC
_CORRELATION = FIELD_CORRELATION
_PAIR = FIELD_PAIR
_ESCAPED_CONTENT_TYPE = FIELD_ESCAPED_CONTENT_TYPE
ESCAPED_RATIO_MAX = 3  # bytes of an escaped one
_TTL_MS_MAX = TTL_MS_MAX
_HAS_ZERO = octets.HAS_ZERO
_HAS_SEPARATOR = octets.HAS_SEPARATOR
_HAS_HIGH = octets.HAS_HIGH
_DIGITS = b"0123456789ABCDEF"


def field_code(buf: bytes | bytearray | memoryview, pos: int, end: int) -> int:
    """Return which field the property name in [pos, end) is, `FIELD_OTHER` for a user's."""
    size = end - pos
    if size < 1:
        return _HIDDEN
    first = buf[pos]
    if 0x61 <= first <= 0x7A:  # the gateway's names and RocketMQ's begin with no small letter
        return _OTHER
    if size >= 4 and octets.read_u32(buf, pos) == 0x4C4D515F:  # LMQ_
        return _own_code(buf, pos, size)
    if _is_of_each_record(buf, pos, size):
        return _HIDDEN
    name = octets.read_bytes(buf, pos, end)
    if name == b"CONTENT_TYPE":
        return _CONTENT_TYPE
    return _HIDDEN if name in RESERVED else _OTHER


def _is_of_each_record(buf: bytes | bytearray | memoryview, pos: int, size: int) -> bool:
    """Return whether a name is one that stands in nearly every record: an object made for each would be dear."""
    if size == 20:
        return octets.starts_with(buf, pos, b"INNER_MULTI_DISPATCH")
    if size == 24:
        return octets.starts_with(buf, pos, b"INNER_MULTI_QUEUE_OFFSET")
    return size == 8 and octets.starts_with(buf, pos, b"__CRC32#")


def _own_code(buf: bytes | bytearray | memoryview, pos: int, size: int) -> int:
    if size == 10 and octets.starts_with(buf, pos, b"LMQ_TTL_MS"):
        return _TTL_MS
    if size == 10 and octets.starts_with(buf, pos, b"LMQ_FORMAT"):
        return _FORMAT
    if size == 8 and octets.starts_with(buf, pos, b"LMQ_PAIR"):
        return _PAIR
    if size == 15 and octets.starts_with(buf, pos, b"LMQ_CORRELATION"):
        return _CORRELATION
    if size == 18 and octets.starts_with(buf, pos, b"LMQ_RESPONSE_TOPIC"):
        return _RESPONSE_TOPIC
    if size == 16 and octets.starts_with(buf, pos, b"LMQ_CONTENT_TYPE"):
        return _ESCAPED_CONTENT_TYPE
    return _HIDDEN


def is_text(buf: bytes | bytearray | memoryview, start: int, end: int) -> bool:
    """Return whether [start, end) is UTF-8 without U+0000."""
    kinds = octets.kinds_of(buf, start, end)
    if kinds & (_HAS_ZERO | _HAS_HIGH) == 0:
        return True
    if kinds & _HAS_ZERO:
        return False
    try:
        octets.read_bytes(buf, start, end).decode()
    except UnicodeDecodeError:
        return False
    return True


def is_plain(buf: bytes | bytearray | memoryview, start: int, end: int) -> bool:
    """Return whether [start, end) has neither of the two separators."""
    return octets.kinds_of(buf, start, end) & _HAS_SEPARATOR == 0


def read_decimal(buf: bytes | bytearray | memoryview, pos: int, end: int) -> int:
    """Return the decimal number in [pos, end), at most `TTL_MS_MAX`; -1 where there is none."""
    value = -1
    while pos < end:
        digit = buf[pos]
        if digit < 0x30 or digit > 0x39:
            return -1
        value = digit - 0x30 if value < 0 else min(value * 10 + digit - 0x30, _TTL_MS_MAX)
        pos += 1
    return value


def write_field(
    name: bytes, buf: bytes | bytearray | memoryview, start: int, end: int, out: bytearray | memoryview, pos: int
) -> int:
    """Write a property with the value [start, end), which is plain; return the position after it."""
    pos = octets.put_bytes(out, pos, name)
    octets.write_u8(out, pos, 1)
    octets.copy_bytes(out, pos + 1, buf, start, end - start)
    pos += 1 + end - start
    octets.write_u8(out, pos, 2)
    return pos + 1


def write_escaped_field(
    name: bytes, buf: bytes | bytearray | memoryview, start: int, end: int, out: bytearray | memoryview, pos: int
) -> int:
    """Write a property whose value is bytes; return the position after it."""
    pos = octets.put_bytes(out, pos, name)
    octets.write_u8(out, pos, 1)
    pos = write_escaped(buf, start, end, 0x80, out, pos + 1)
    octets.write_u8(out, pos, 2)
    return pos + 1


def write_escaped(
    buf: bytes | bytearray | memoryview, start: int, end: int, limit: int, out: bytearray | memoryview, pos: int
) -> int:
    """Write [start, end) escaped, bytes from `limit` on too; return the position after it."""
    for k in range(start, end):
        letter = buf[k]
        if letter < 0x20 or letter >= limit or letter in (0x25, 0x3D, 0x7F):
            octets.write_u8(out, pos, 0x25)
            octets.write_u8(out, pos + 1, _DIGITS[letter >> 4])
            octets.write_u8(out, pos + 2, _DIGITS[letter & 15])
            pos += 3
        else:
            octets.write_u8(out, pos, letter)
            pos += 1
    return pos


def write_unescaped(
    buf: bytes | bytearray | memoryview, start: int, end: int, out: bytearray | memoryview, pos: int
) -> int:
    """Write what was escaped as [start, end); return the position after it, -1 where it is no escaped text."""
    k = start
    while k < end:
        letter = buf[k]
        k += 1
        if letter == 0x25:
            if k + 2 > end:
                return -1
            high = _digit(buf[k])
            low = _digit(buf[k + 1])
            if high < 0 or low < 0:
                return -1
            letter = high << 4 | low
            k += 2
        octets.write_u8(out, pos, letter)
        pos += 1
    return pos


def _digit(letter: int) -> int:
    if 0x30 <= letter <= 0x39:
        return letter - 0x30
    return letter - 0x37 if 0x41 <= letter <= 0x46 else -1
