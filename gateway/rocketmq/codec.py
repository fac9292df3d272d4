"""Read the headers of sends in place, in both encodings.

A header of the shape that clients send is read without an object; one with anything else in it is left to
`commands.decode_header`, which has the last word on whether it is malformed. Positions are in the frame's buffer.

Source: docs/protocols/rocketmq.md, "Frames and headers" and "Sends".
"""

from __future__ import annotations

from array import array

from core import octets

FIELDS = 14  # of a send, by the letter that the second version's header gives them, from `a`
NO_INTEGER = -(1 << 62)
_FIELDS = FIELDS
_NO_INTEGER = NO_INTEGER
_BINARY = 1
_BINARY_START = 13  # code, language, version, opaque, flag
FIELD_NAMES = {
    b"producerGroup": 0,
    b"topic": 1,
    b"defaultTopic": 2,
    b"defaultTopicQueueNums": 3,
    b"queueId": 4,
    b"sysFlag": 5,
    b"bornTimestamp": 6,
    b"flag": 7,
    b"properties": 8,
    b"reconsumeTimes": 9,
    b"unitMode": 10,
    b"maxReconsumeTimes": 11,
    b"batch": 12,
    b"brokerName": 13,
    b"bname": 13,
}
_FIELD_NAMES = FIELD_NAMES


class SendHeader:
    """One send's header: its numbers, and where each field's text lies (`start` is -1 for a field that is absent)."""

    def __init__(self) -> None:
        self.is_binary = False  # else texts are JSON's, with its escapes
        self.code = 0
        self.opaque = 0
        self.flag = 0
        self.start = array("i", bytes(4 * FIELDS))
        self.end = array("i", bytes(4 * FIELDS))


def read_header(
    buf: bytes | bytearray | memoryview, start: int, end: int, header_type: int, header: SendHeader
) -> bool:
    """Read the header [start, end) into `header`; False where it has another shape than sends have."""
    header.is_binary = header_type == _BINARY
    for field in range(_FIELDS):
        header.start[field] = -1
    if header_type == _BINARY:
        return _read_binary(buf, start, end, header)
    return _read_json(buf, start, end, header)


def _read_binary(buf: bytes | bytearray | memoryview, pos: int, end: int, header: SendHeader) -> bool:
    if end - pos < _BINARY_START + 8:
        return False
    header.code = octets.read_u16(buf, pos)
    header.opaque = octets.read_i32(buf, pos + 5)
    header.flag = octets.read_i32(buf, pos + 9)
    remark_bytes = octets.read_i32(buf, pos + _BINARY_START)
    pos += _BINARY_START + 4
    if remark_bytes or octets.read_i32(buf, pos) != end - pos - 4:
        return False
    pos += 4
    while pos < end:
        size = octets.read_u16(buf, pos) if end - pos >= 6 else 0x10000
        key = pos + 2
        if size > end - key - 4:
            return False
        field = _field_of(buf, key, key + size)
        pos = key + size + 4
        size = octets.read_i32(buf, pos - 4)
        if size < 0 or size > end - pos:
            return False
        if field >= 0:
            header.start[field] = pos
            header.end[field] = pos + size
        pos += size
    return True


def _field_of(buf: bytes | bytearray | memoryview, start: int, end: int) -> int:
    """Return the number of the field of that short or long name, or -1."""
    if end - start == 1:
        field = buf[start] - 0x61
        return field if 0 <= field < _FIELDS else -1
    name = octets.read_bytes(buf, start, end)
    return _FIELD_NAMES.get(name, -1)


def _read_json(buf: bytes | bytearray | memoryview, pos: int, end: int, header: SendHeader) -> bool:
    header.code = 0
    header.opaque = 0
    header.flag = 0
    if pos >= end or buf[pos] != 0x7B:
        return False
    pos += 1
    while True:
        key = pos + 1
        pos = _name_end(buf, pos, end)
        if pos >= 0:
            pos = _read_member(buf, key, pos, end, header)
        if pos < 0 or pos >= end:
            return False
        if buf[pos] == 0x7D:
            return pos + 1 == end
        if buf[pos] != 0x2C:
            return False
        pos += 1


def _name_end(buf: bytes | bytearray | memoryview, pos: int, end: int) -> int:
    """Return the position of the quote after the member's name that begins with the quote at `pos`, or -1."""
    if pos >= end or buf[pos] != 0x22:
        return -1
    close = octets.find_byte(buf, 0x22, pos + 1, end)
    if close < 0 or octets.find_byte(buf, 0x5C, pos + 1, close) >= 0:  # a name may be written with escapes, too
        return -1
    return close if close + 2 < end and buf[close + 1] == 0x3A else -1


def _read_member(buf: bytes | bytearray | memoryview, key: int, pos: int, end: int, header: SendHeader) -> int:
    """Read the value of the member whose name is [key, pos); return the position after it, or -1."""
    name_bytes = pos - key
    word = octets.read_u32(buf, key) if name_bytes >= 4 else 0
    tail = octets.read_u32(buf, pos - 4) if name_bytes >= 4 else 0
    start = pos + 2
    if name_bytes == 9 and word == 0x65787446 and buf[key + 4] == 0x69 and tail == 0x656C6473:  # extF, i, elds
        return _read_ext(buf, start, end, header)
    pos = _value_end(buf, start, end)
    if pos < 0:
        return -1
    value = 0
    if name_bytes == 4 and word == 0x636F6465:  # code
        value = header.code = _small_integer(buf, start, pos)
    elif name_bytes == 6 and word == 0x6F706171 and tail == 0x61717565:  # opaq, aque
        value = header.opaque = _small_integer(buf, start, pos)
    elif name_bytes == 4 and word == 0x666C6167:  # flag
        value = header.flag = _small_integer(buf, start, pos)
    elif name_bytes == 6 and word == 0x72656D61 and tail == 0x6D61726B:  # rema, mark: a request has none
        return pos if buf[start] == 0x6E else -1
    return pos if value >= 0 else -1


def _read_ext(buf: bytes | bytearray | memoryview, pos: int, end: int, header: SendHeader) -> int:
    """Read the object `extFields` at `pos`; return the position after it, or -1."""
    if pos >= end or buf[pos] != 0x7B:
        return -1
    pos += 1
    while True:
        key = pos + 1
        pos = _name_end(buf, pos, end)
        if pos < 0:
            return -1
        field = _field_of(buf, key, pos)
        start = pos + 2
        pos = _value_end(buf, start, end)
        if pos < 0 or pos >= end:
            return -1
        if field >= 0:
            quoted = 1 if buf[start] == 0x22 else 0
            header.start[field] = start + quoted
            header.end[field] = pos - quoted
        if buf[pos] == 0x7D:
            return pos + 1
        if buf[pos] != 0x2C:
            return -1
        pos += 1


def _string_end(buf: bytes | bytearray | memoryview, pos: int, end: int) -> int:
    """Return the position of the quote that ends the string whose text begins at `pos`, or -1."""
    close = octets.find_byte(buf, 0x22, pos, end)
    if close < 0 or octets.find_byte(buf, 0x5C, pos, close) < 0:
        return close
    while pos < end:
        if buf[pos] == 0x22:
            return pos
        pos += 2 if buf[pos] == 0x5C else 1
    return -1


def _value_end(buf: bytes | bytearray | memoryview, pos: int, end: int) -> int:
    """Return the position after the string, integer or word at `pos`; -1 for anything else."""
    if pos >= end:
        return -1
    if buf[pos] == 0x22:
        pos = _string_end(buf, pos + 1, end)
        return pos + 1 if pos >= 0 else -1
    start = pos
    if 0x61 <= buf[pos] <= 0x7A:
        while pos < end and 0x61 <= buf[pos] <= 0x7A:
            pos += 1
        return pos if _is_word(buf, start, pos) else -1
    while pos < end and (0x30 <= buf[pos] <= 0x39 or buf[pos] == 0x2D):
        pos += 1
    return pos if pos > start and read_integer(buf, start, pos) != _NO_INTEGER else -1


def _is_word(buf: bytes | bytearray | memoryview, start: int, end: int) -> bool:
    """Return whether [start, end) is `true`, `false` or `null`."""
    word = octets.read_u32(buf, start) if end - start >= 4 else 0
    if end - start == 4:
        return word in {0x74727565, 0x6E756C6C}
    return end - start == 5 and word == 0x66616C73 and buf[start + 4] == 0x65


def _small_integer(buf: bytes | bytearray | memoryview, pos: int, end: int) -> int:
    """Return the integer in [pos, end) if it is from 0 and fits 31 bits, else -1."""
    value = read_integer(buf, pos, end)
    return value if 0 <= value < 0x80000000 else -1


def read_integer(buf: bytes | bytearray | memoryview, pos: int, end: int) -> int:
    """Return the integer written in [pos, end), of at most 18 digits; NO_INTEGER where there is none."""
    value = 0
    negative = pos < end and buf[pos] == 0x2D
    if negative:
        pos += 1
    if pos >= end or end - pos > 18 or (buf[pos] == 0x30 and end - pos > 1):
        return _NO_INTEGER
    while pos < end:
        if buf[pos] < 0x30 or buf[pos] > 0x39:
            return _NO_INTEGER
        value = value * 10 + buf[pos] - 0x30
        pos += 1
    return -value if negative else value


def unescape(buf: bytes | bytearray | memoryview, pos: int, end: int, out: bytearray | memoryview) -> int:
    """Write the text of JSON's string [pos, end) into `out` as UTF-8; return its length, or -1 for a bad escape.

    `out` has room for `end - pos` bytes, which is always enough.
    """
    used = 0
    while pos < end:
        byte = buf[pos]
        if byte != 0x5C:
            out[used] = byte
            used += 1
            pos += 1
            continue
        if pos + 1 >= end:
            return -1
        if buf[pos + 1] != 0x75:
            byte = _short_escape(buf[pos + 1])
            if byte == 0:
                return -1
            out[used] = byte
            used += 1
            pos += 2
            continue
        point = _hex_4(buf, pos + 2, end)
        pos += 6
        if 0xD800 <= point < 0xE000:
            if point >= 0xDC00 or pos + 1 >= end or buf[pos] != 0x5C or buf[pos + 1] != 0x75:
                return -1
            low = _hex_4(buf, pos + 2, end)
            if low < 0xDC00 or low > 0xDFFF:
                return -1
            point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00)
            pos += 6
        if point < 0:
            return -1
        used = _write_utf8(point, out, used)
    return used


def _short_escape(byte: int) -> int:
    """Return what a backslash and `byte` stand for, or 0."""
    if byte in {0x22, 0x2F, 0x5C}:
        return byte
    if byte == 0x6E:
        return 0x0A
    if byte == 0x74:
        return 0x09
    if byte == 0x72:
        return 0x0D
    if byte == 0x62:
        return 0x08
    return 0x0C if byte == 0x66 else 0


def _hex_4(buf: bytes | bytearray | memoryview, pos: int, end: int) -> int:
    """Return the number of the four hexadecimal digits at `pos`, or -1."""
    if pos + 4 > end:
        return -1
    value = 0
    for at in range(pos, pos + 4):
        byte = buf[at]
        if 0x30 <= byte <= 0x39:
            value = value * 16 + byte - 0x30
        elif 0x41 <= byte <= 0x46:
            value = value * 16 + byte - 0x37
        elif 0x61 <= byte <= 0x66:
            value = value * 16 + byte - 0x57
        else:
            return -1
    return value


def _write_utf8(point: int, out: bytearray | memoryview, used: int) -> int:
    """Write the code point at `used` of `out`; return the position after it."""
    if point < 0x80:
        out[used] = point
        return used + 1
    if point < 0x800:
        out[used] = 0xC0 | point >> 6
        out[used + 1] = 0x80 | point & 0x3F
        return used + 2
    if point < 0x10000:
        out[used] = 0xE0 | point >> 12
        out[used + 1] = 0x80 | point >> 6 & 0x3F
        out[used + 2] = 0x80 | point & 0x3F
        return used + 3
    out[used] = 0xF0 | point >> 18
    out[used + 1] = 0x80 | point >> 12 & 0x3F
    out[used + 2] = 0x80 | point >> 6 & 0x3F
    out[used + 3] = 0x80 | point & 0x3F
    return used + 4
