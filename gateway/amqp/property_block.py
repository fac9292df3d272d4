"""A content header's property block (flags and list) on its way into a record's properties.

The block itself travels as `LMQ_AMQP` in base64, so that AMQP consumers get it byte for byte. Beside it stand, for the
other doors, `CONTENT_TYPE` and those headers that are a string, an integer or a boolean, under their own names.

Source: docs/protocols/amqp.md, "Properties".
"""

from __future__ import annotations

from binascii import b2a_base64

from core import octets
from core.properties import AMQP, CONTENT_TYPE, RESERVED
from gateway.amqp.errors import AmqpError, syntax_error
from gateway.amqp.field_table import check_table
from gateway.amqp.reply_codes import ReplyCode

EXTRA_BYTES_MAX = 24_576  # of the 32,767 that a record's properties may have; the rest is for route and dispatch
_EXTRA_BYTES_MAX = EXTRA_BYTES_MAX


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

    def read(self, buf: bytes | bytearray | memoryview, pos: int, end: int) -> None:
        """Check the block in [pos, end).

        Raises:
            AmqpError: SYNTAX_ERROR: it does not end where its frame does, or has flags that mean nothing.
        """
        self.delivery_mode = 0
        self.content_type_start = -1
        self.headers_start = -1
        self.user_id_start = -1
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
        self, buf: bytes | bytearray | memoryview, pos: int, end: int, out: bytearray | memoryview, out_pos: int
    ) -> int:
        """Write the block in [pos, end), which was read before, as a record's properties; return the end of them.

        `out` has room for `EXTRA_BYTES_MAX` from `out_pos`. Headers that do not fit beside the block travel in it only.

        Raises:
            AmqpError: PRECONDITION_FAILED: the block alone does not fit.
        """
        limit = out_pos + _EXTRA_BYTES_MAX
        block = b2a_base64(octets.read_bytes(buf, pos, end), newline=False)
        if len(block) + 16 > _EXTRA_BYTES_MAX:
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"content header of {end - pos} bytes is too large")
        out_pos = _write_pair(AMQP, block, out, out_pos)
        if self.content_type_start >= 0:
            text = octets.read_bytes(buf, self.content_type_start, self.content_type_end)
            if is_text(text) and out_pos + len(text) + 16 <= limit:
                out_pos = _write_pair(CONTENT_TYPE, text, out, out_pos)
        if self.headers_start >= 0:
            headers = octets.read_bytes(buf, self.headers_start, self.headers_end)
            out_pos = _write_headers(headers, out, out_pos, limit)
        return out_pos


def _write_headers(src: bytes, out: bytearray | memoryview, out_pos: int, limit: int) -> int:
    pos = 0
    while pos < len(src):
        name_end = pos + 1 + src[pos]
        name = src[pos + 1 : name_end]
        value = simple_value(src, name_end)
        pos = _skip_value(src, name_end)
        if value is None or out_pos + len(name) + len(value) + 2 > limit or not is_storable(name, value):
            continue
        out_pos = _write_pair(name, value, out, out_pos)
    return out_pos


def is_storable(name: bytes, value: bytes) -> bool:
    """Return whether a header can stand as a property under its own name: text, and not one of the gateway's names."""
    if not name or name in RESERVED or name.startswith(b"LMQ_") or name == CONTENT_TYPE:
        return False
    return is_text(name) and is_text(value)


def is_text(value: bytes) -> bool:
    """Return whether `value` is UTF-8 without the two separators."""
    if b"\x01" in value or b"\x02" in value:
        return False
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _write_pair(name: bytes, value: bytes, out: bytearray | memoryview, pos: int) -> int:
    octets.copy_bytes(out, pos, name, 0, len(name))
    pos += len(name)
    octets.write_u8(out, pos, 1)
    octets.copy_bytes(out, pos + 1, value, 0, len(value))
    pos += 1 + len(value)
    octets.write_u8(out, pos, 2)
    return pos + 1


def _skip_value(src: bytes, pos: int) -> int:
    kind = src[pos : pos + 1]
    if kind in b"tbB":
        return pos + 2
    if kind in b"su":
        return pos + 3
    if kind in b"Iif":
        return pos + 5
    if kind in b"lLdT":
        return pos + 9
    if kind == b"D":
        return pos + 6
    if kind == b"V":
        return pos + 1
    return pos + 5 + octets.read_u32(src, pos + 1)


def simple_value(src: bytes, pos: int) -> bytes | None:
    """Return the value at `pos` (checked before) as text if it is a string, an integer or a boolean."""
    kind = src[pos : pos + 1]
    if kind == b"S":
        return src[pos + 5 : pos + 5 + octets.read_u32(src, pos + 1)]
    if kind == b"t":
        return b"true" if src[pos + 1] else b"false"
    if kind in b"bBsuIilL":
        after = _skip_value(src, pos)
        return b"%d" % int.from_bytes(src[pos + 1 : after], "big", signed=kind in b"bsIlL")
    return None
