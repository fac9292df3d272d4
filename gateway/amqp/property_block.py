"""A content header's property block (flags and list) on its way into a record's properties.

The block itself travels as `LMQ_AMQP` in base64, so that AMQP consumers get it byte for byte. Beside it stand, for the
other doors, `CONTENT_TYPE` and those headers that are a string, an integer or a boolean, under their own names.

Source: docs/protocols/amqp.md, "Properties".
"""

from __future__ import annotations

from binascii import b2a_base64

from core import octets
from core.envelope import ESCAPED_RATIO_MAX, write_escaped_field
from core.properties import AMQP, CONTENT_TYPE, CORRELATION, RESERVED, TTL_MS
from gateway.amqp.errors import AmqpError, syntax_error
from gateway.amqp.expiration import parse_expiration
from gateway.amqp.field_table import check_table, skip_value
from gateway.amqp.reply_codes import ReplyCode

EXTRA_BYTES_MAX = 24_576  # of the 32,767 that a record's properties may have; the rest is for route and dispatch
BLOCK_BYTES_MAX = (EXTRA_BYTES_MAX - 48) // 4 * 3  # fits in base64, with the names of both and a time to live
_EXTRA_BYTES_MAX = EXTRA_BYTES_MAX
_BLOCK_BYTES_MAX = BLOCK_BYTES_MAX


def _malformed() -> AmqpError:
    return syntax_error("malformed content header properties")


class BlockReader:
    """Checks one property block and says where in it things lie; positions are -1 where a property is absent."""

    def __init__(self) -> None:
        self.delivery_mode = 0
        self.content_type_start = -1
        self.content_type_end = -1
        self.headers_start = -1  # after the table's length
        self.headers_end = -1
        self.user_id_start = -1
        self.user_id_end = -1
        self.correlation_start = -1
        self.correlation_end = -1
        self.ttl_ms = -1  # what `expiration` says
        self.has_copies = False  # there is a header `CC` or `BCC`

    def read(self, buf: bytes | bytearray | memoryview, pos: int, end: int) -> None:
        """Check the block in [pos, end).

        Raises:
            AmqpError: SYNTAX_ERROR: it does not end where its frame does, or has flags that mean nothing;
                PRECONDITION_FAILED: it is too large; `expiration` is no number of milliseconds.
        """
        if end - pos > _BLOCK_BYTES_MAX:
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"content header of {end - pos} bytes is too large")
        self.delivery_mode = 0
        self.content_type_start = -1
        self.headers_start = -1
        self.user_id_start = -1
        self.correlation_start = -1
        self.ttl_ms = -1
        self.has_copies = False
        if pos + 2 > end:
            raise _malformed()
        flags = octets.read_u16(buf, pos)
        if flags & 3:  # a second word of flags, or a fifteenth property
            raise _malformed()
        pos += 2
        for bit in range(14):
            if flags & (0x8000 >> bit):
                pos = self._read_property(buf, pos, end, bit)
        if pos != end:
            raise _malformed()

    def _read_property(self, buf: bytes | bytearray | memoryview, pos: int, end: int, bit: int) -> int:
        if bit == 2:
            after = check_table(buf, pos, end)
            self.headers_start = pos + 4
            self.headers_end = after
            if after > 0:
                self.has_copies = has_copies(buf, pos + 4, after)
        elif bit in (3, 4):
            after = pos + 1
        elif bit == 9:
            after = pos + 8
        else:
            after = pos + 1 + buf[pos] if pos < end else -1
        if after < 0 or after > end:
            raise _malformed()
        if bit == 0:
            self.content_type_start = pos + 1
            self.content_type_end = after
        elif bit == 3:
            self.delivery_mode = buf[pos]
        elif bit == 5:
            self.correlation_start = pos + 1
            self.correlation_end = after
        elif bit == 7:
            self.ttl_ms = parse_expiration(octets.read_bytes(buf, pos + 1, after))
        elif bit == 11:
            self.user_id_start = pos + 1
            self.user_id_end = after
        return after

    def check_user(self, buf: bytes | bytearray | memoryview, user: bytes) -> None:
        """Check that the block names no user but `user`.

        Raises:
            AmqpError: PRECONDITION_FAILED.
        """
        if self.user_id_start < 0:
            return
        named = octets.read_bytes(buf, self.user_id_start, self.user_id_end)
        if named != user:
            claimed = named.decode(errors="replace")
            actual = user.decode(errors="replace")
            reason = f"user_id property set to '{claimed}' but authenticated user was '{actual}'"
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, reason)

    def write_extra(
        self, buf: bytes | bytearray | memoryview, pos: int, block_end: int, out: bytearray | memoryview, out_pos: int
    ) -> int:
        """Write the block in [pos, block_end), which was read before, as a record's properties; return the end of them.

        `out` has room for `EXTRA_BYTES_MAX` from `out_pos`. Headers that do not fit beside the block travel in it only.
        """
        limit = out_pos + _EXTRA_BYTES_MAX
        block = b2a_base64(octets.read_bytes(buf, pos, block_end), newline=False)
        if self.ttl_ms >= 0:
            out_pos = _write_pair(TTL_MS, b"%d" % self.ttl_ms, out, out_pos)
        out_pos = _write_pair(AMQP, block, out, out_pos)
        start, end = self.content_type_start, self.content_type_end
        if start >= 0 and is_text(buf, start, end) and out_pos + end - start + 16 <= limit:
            out_pos = _write_pair(CONTENT_TYPE, octets.read_bytes(buf, start, end), out, out_pos)
        start, end = self.correlation_start, self.correlation_end
        if start >= 0 and out_pos + ESCAPED_RATIO_MAX * (end - start) + 18 <= limit:
            out_pos = write_escaped_field(CORRELATION, buf, start, end, out, out_pos)
        if self.headers_start >= 0:
            out_pos = _write_headers(buf, (self.headers_start, self.headers_end), out, out_pos, limit)
        return out_pos


def has_copies(buf: bytes | bytearray | memoryview, pos: int, end: int) -> bool:
    """Return whether a header of the table in [pos, end), which was checked, is named `CC` or `BCC`."""
    while pos < end:
        size = buf[pos]
        ends_so = size in (2, 3) and buf[pos + size] == 0x43 and buf[pos + size - 1] == 0x43
        if ends_so and (size == 2 or buf[pos + 1] == 0x42):
            return True
        pos = skip_value(buf, pos + 1 + size)
    return False


def _write_headers(
    buf: bytes | bytearray | memoryview, span: tuple[int, int], out: bytearray | memoryview, out_pos: int, limit: int
) -> int:
    pos = span[0]
    while pos < span[1]:
        name_start = pos + 1
        name_end = name_start + buf[pos]
        pos = skip_value(buf, name_end)
        if not is_storable(buf, name_start, name_end):
            continue
        value = simple_value(buf, name_end)
        if value is None or out_pos + name_end - name_start + len(value) + 2 > limit:
            continue
        octets.copy_bytes(out, out_pos, buf, name_start, name_end - name_start)
        out_pos = _write_value(value, out, out_pos + name_end - name_start)
    return out_pos


def is_storable(buf: bytes | bytearray | memoryview, start: int, end: int) -> bool:
    """Return whether a header's name can be a property's: text, and not one of the gateway's own names."""
    if start == end or not is_text(buf, start, end):
        return False
    if end - start >= 4 and octets.read_u32(buf, start) == 0x4C4D515F:  # LMQ_
        return False
    name = octets.read_bytes(buf, start, end)
    return name not in RESERVED and name != CONTENT_TYPE


def is_text(buf: bytes | bytearray | memoryview, start: int, end: int) -> bool:
    """Return whether [start, end) is UTF-8 without the two separators."""
    seen = 0
    for pos in range(start, end):
        letter = buf[pos]
        if letter in (1, 2):
            return False
        seen |= letter
    if seen < 0x80:
        return True
    try:
        octets.read_bytes(buf, start, end).decode()
    except UnicodeDecodeError:
        return False
    return True


def _write_value(value: bytes, out: bytearray | memoryview, pos: int) -> int:
    size = len(value)
    octets.write_u8(out, pos, 1)
    octets.copy_bytes(out, pos + 1, value, 0, size)
    octets.write_u8(out, pos + 1 + size, 2)
    return pos + 2 + size


def _write_pair(name: bytes, value: bytes, out: bytearray | memoryview, pos: int) -> int:
    octets.copy_bytes(out, pos, name, 0, len(name))
    return _write_value(value, out, pos + len(name))


def simple_value(buf: bytes | bytearray | memoryview, pos: int) -> bytes | None:
    """Return the value at `pos` (checked before) as text if it is a text, an integer or a boolean, else None."""
    kind = buf[pos]
    pos += 1
    if kind == 0x53:  # S
        end = pos + 4 + octets.read_u32(buf, pos)
        return octets.read_bytes(buf, pos + 4, end) if is_text(buf, pos + 4, end) else None
    if kind == 0x74:  # t
        return b"true" if buf[pos] else b"false"
    if kind in (0x62, 0x42, 0x73, 0x75, 0x49, 0x69, 0x6C, 0x4C):  # b B s u I i l L
        return b"%d" % _integer(buf, pos, kind)
    return None


def _integer(buf: bytes | bytearray | memoryview, pos: int, kind: int) -> int:
    if kind in (0x6C, 0x4C):  # l L
        return octets.read_i64(buf, pos)
    if kind == 0x49:  # I
        return octets.read_i32(buf, pos)
    if kind == 0x69:  # i
        return octets.read_u32(buf, pos)
    value = buf[pos] if kind in (0x62, 0x42) else octets.read_u16(buf, pos)
    if kind == 0x62 and value >= 0x80:  # b
        return value - 0x100
    if kind == 0x73 and value >= 0x8000:  # s
        return value - 0x10000
    return value
