"""A header table on its way into a record's properties, for the other doors.

Headers that are the envelope's fields become those; a header with a name and a text that can be a property's is one of
the same name, and the others are pairs. What is no text becomes one, and `x-amqp-types` says what it was.

Source: docs/protocols/crossing.md.
"""

from __future__ import annotations

from core import octets
from core.envelope import ESCAPED_RATIO_MAX, write_escaped, write_escaped_field, write_field
from core.properties import CONTENT_TYPE, CORRELATION, PAIR, PAYLOAD_FORMAT, RESERVED, RESPONSE_TOPIC
from gateway.amqp.field_map import CORRELATION_HEADER, FORMAT_HEADER, RESPONSE_TOPIC_HEADER, TYPES_NAME
from gateway.amqp.field_table import skip_value
from gateway.amqp.value_texts import text_of

_ROOM = 32  # of a property's name and what stands around a value
_CORRELATION = CORRELATION
_RESPONSE_TOPIC = RESPONSE_TOPIC
_FORMAT = PAYLOAD_FORMAT
_PAIR = PAIR
_TYPES = TYPES_NAME
_CORRELATION_HEADER = CORRELATION_HEADER
_FORMAT_HEADER = FORMAT_HEADER
_RESPONSE_HEADER = RESPONSE_TOPIC_HEADER
_RATIO = ESCAPED_RATIO_MAX
_NO_NUMBER = -0x7FFFFFFFFFFFFFFF


class ToldHeaders:
    """What one table of headers said of the envelope's fields."""

    def __init__(self) -> None:
        self.has_response_topic = False
        self.has_correlation = False
        self.has_format = False
        self._types = b""

    def write(
        self,
        buf: bytes | bytearray | memoryview,
        pos: int,
        end: int,
        out: bytearray | memoryview,
        out_pos: int,
        limit: int,
    ) -> int:
        """Write the headers in [pos, end), which were checked, as properties; return the position after them.

        Those that would not end before `limit` are left out.
        """
        self.has_response_topic = False
        self.has_correlation = False
        self.has_format = False
        self._types = b""
        while pos < end:
            name_start = pos + 1
            name_end = name_start + buf[pos]
            pos = skip_value(buf, name_end)
            kind = buf[name_end]
            is_plain = buf[name_start] != 0x78 and out_pos + pos - name_start + _ROOM <= limit  # no x-
            is_plain = is_plain and is_storable(buf, name_start, name_end)
            if is_plain and kind == 0x53 and is_text(buf, name_end + 5, pos):  # S
                out_pos = _write_name(buf, name_start, name_end, out, out_pos)
                octets.copy_bytes(out, out_pos, buf, name_end + 5, pos - name_end - 5)
                out_pos += pos - name_end - 5
            elif is_plain and (number := read_whole_number(buf, name_end, pos)) > _NO_NUMBER:
                self._types += type_entry(buf, name_start, name_end)
                out_pos = _write_name(buf, name_start, name_end, out, out_pos)
                if number < 0:
                    octets.write_u8(out, out_pos, 0x2D)  # minus
                    out_pos += 1
                    number = -number
                out_pos = octets.write_decimal(out, out_pos, number)
            else:
                out_pos = self._write_odd(buf, name_start, name_end, pos, out, out_pos, limit)
                continue
            octets.write_u8(out, out_pos, 2)
            out_pos += 1
        if self._types and out_pos + len(self._types) + _ROOM <= limit:
            out_pos = write_field(_TYPES, self._types, 0, len(self._types), out, out_pos)
        return out_pos

    def _write_odd(
        self,
        buf: bytes | bytearray | memoryview,
        name_start: int,
        name_end: int,
        end: int,
        out: bytearray | memoryview,
        pos: int,
        limit: int,
    ) -> int:
        """Write a header that is one of the envelope's fields, is no text, or has a name that no property can have."""
        name = octets.read_bytes(buf, name_start, name_end)
        letter, text = text_of(octets.read_bytes(buf, name_end, end))
        if pos + _RATIO * len(text) + _ROOM <= limit:
            if name == _RESPONSE_HEADER and letter == "S" and not self.has_response_topic and is_topic(text):
                self.has_response_topic = True
                return write_field(_RESPONSE_TOPIC, text, 0, len(text), out, pos)
            if name == _CORRELATION_HEADER and letter in "SxX" and not self.has_correlation:
                self.has_correlation = True
                return write_escaped_field(_CORRELATION, buf, name_end + 5, end, out, pos)
            if name == _FORMAT_HEADER and not self.has_format and text in {b"0", b"1"}:
                self.has_format = True
                return write_field(_FORMAT, text, 0, 1, out, pos)
        if pos + _RATIO * (len(name) + len(text)) + _ROOM > limit or not _is_utf8(name):
            return pos
        if letter != "S":
            self._types += letter.encode() + escaped(name) + b"="
        if is_storable(name, 0, len(name)) and is_text(text, 0, len(text)):
            return write_field(name, text, 0, len(text), out, pos)
        pair = escaped(name) + b"=" + escaped(text)
        return write_field(_PAIR, pair, 0, len(pair), out, pos)


def _write_name(
    buf: bytes | bytearray | memoryview, start: int, end: int, out: bytearray | memoryview, pos: int
) -> int:
    octets.copy_bytes(out, pos, buf, start, end - start)
    pos += end - start
    octets.write_u8(out, pos, 1)
    return pos + 1


def read_whole_number(buf: bytes | bytearray | memoryview, pos: int, end: int) -> int:
    """Return the whole number in [pos, end), which begins with its type.

    It is `_NO_NUMBER`, or less, where the value is none or so small that it may have no negative.
    """
    kind = buf[pos]
    if kind not in (0x6C, 0x49, 0x4C, 0x69, 0x62, 0x42, 0x73, 0x75):  # l I L i b B s u
        return _NO_NUMBER
    pos += 1
    number = buf[pos]
    if number >= 0x80 and kind not in (0x69, 0x42, 0x75):  # i B u
        number -= 0x100
    for k in range(pos + 1, end):
        number = number * 256 + buf[k]
    return number


def type_entry(buf: bytes | bytearray | memoryview, start: int, end: int) -> bytes:
    """Return what `x-amqp-types` says of the header whose name is [start, end) and whose type follows."""
    return octets.read_bytes(buf, end, end + 1) + escaped(octets.read_bytes(buf, start, end)) + b"="


def escaped(text: bytes) -> bytes:
    """Return a text escaped."""
    for letter in text:
        if letter < 0x20 or letter in (0x25, 0x3D, 0x7F):
            break
    else:
        return text
    out = bytearray(_RATIO * len(text) + 1)
    return octets.read_bytes(out, 0, write_escaped(text, 0, len(text), 0x100, out, 0))


def is_topic(text: bytes) -> bool:
    """Return whether an answer can be published to the topic `text`, which is UTF-8."""
    for letter in text:
        if letter < 0x20 or letter in (0x23, 0x2B):  # hash, plus
            return False
    return len(text) > 0


def is_storable(buf: bytes | bytearray | memoryview, start: int, end: int) -> bool:
    """Return whether a header's name can be a property's: text, and not one of the gateway's own names."""
    if start == end or not is_text(buf, start, end):
        return False
    if end - start >= 4 and octets.read_u32(buf, start) == 0x4C4D515F:  # LMQ_
        return False
    name = octets.read_bytes(buf, start, end)
    return name not in RESERVED and name != CONTENT_TYPE


def is_text(buf: bytes | bytearray | memoryview, start: int, end: int) -> bool:
    """Return whether [start, end) is UTF-8 without the two separators, and without U+0000."""
    seen = 0
    for pos in range(start, end):
        letter = buf[pos]
        if letter <= 2:
            return False
        seen |= letter
    if seen < 0x80:
        return True
    return _is_utf8(octets.read_bytes(buf, start, end))


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in text
