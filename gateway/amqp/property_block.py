"""A content header's property block (flags and list) on its way into a record's properties.

The block itself travels as `LMQ_AMQP` in base64, so that AMQP consumers get it byte for byte. Its content stands
beside it for the other doors, in the envelope's fields and as user properties.

Source: docs/protocols/amqp.md, "Properties"; docs/protocols/crossing.md.
"""

from __future__ import annotations

from array import array
from binascii import b2a_base64

from core import octets
from core.envelope import ESCAPED_RATIO_MAX, write_escaped_field, write_field
from core.properties import AMQP, CONTENT_TYPE, CORRELATION, ESCAPED_CONTENT_TYPE, RESPONSE_TOPIC, TTL_MS
from gateway.amqp.direct_reply import REPLY_TO_BYTES
from gateway.amqp.errors import AmqpError, syntax_error
from gateway.amqp.expiration import parse_expiration
from gateway.amqp.field_map import PRIORITY, REPLY_TO, TIMESTAMP, TOLD_FLAGS, TOLD_NAMES
from gateway.amqp.field_table import check_table, skip_value
from gateway.amqp.reply_codes import ReplyCode
from gateway.amqp.told_headers import ToldHeaders, is_text, is_topic

EXTRA_BYTES_MAX = 24_576  # of the 32,767 that a record's properties may have; the rest is for route and dispatch
BLOCK_BYTES_MAX = (EXTRA_BYTES_MAX - 48) // 4 * 3  # fits in base64, with the names of both and a time to live
ANYBODY = b"anybody"  # this very object: the user of a connection whose messages may name any user
_EXTRA_BYTES_MAX = EXTRA_BYTES_MAX
_BLOCK_BYTES_MAX = BLOCK_BYTES_MAX
_TOLD_FLAGS = TOLD_FLAGS
_TOLD_NAMES = TOLD_NAMES
_PRIORITY = PRIORITY
_REPLY_TO = REPLY_TO
_TIMESTAMP = TIMESTAMP
_KEY_LETTERS = b"/%*"  # of a routing key that is another topic than it looks
_REPLY_FLAG = 0x8000 >> REPLY_TO
_DIRECT_REPLY = REPLY_TO_BYTES
_DIRECT_REPLY_SIZE = len(REPLY_TO_BYTES)
_ROOM = 32  # of a property's name and what stands around a value


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
        self.reply_start = -1  # where `reply_to` lies, if that is the name of direct replies
        self._told_flags = 0  # of the properties that have names of their own at other doors
        self._told_start = array("q", bytes(8 * 14))  # where each lies
        self._told_end = array("q", bytes(8 * 14))
        self._headers = ToldHeaders()

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
        self.reply_start = -1
        if pos + 2 > end:
            raise _malformed()
        flags = octets.read_u16(buf, pos)
        if flags & 3:  # a second word of flags, or a fifteenth property
            raise _malformed()
        self._told_flags = flags & _TOLD_FLAGS
        pos += 2
        for bit in range(14):
            if flags & (0x8000 >> bit):
                pos = self._read_property(buf, pos, end, bit)
        if pos != end:
            raise _malformed()
        if flags & _REPLY_FLAG:
            pos = self._told_start[_REPLY_TO]
            size = self._told_end[_REPLY_TO] - pos - 1
            if size == _DIRECT_REPLY_SIZE and octets.equal_bytes(buf, pos + 1, _DIRECT_REPLY, 0, size):
                self.reply_start = pos

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
        self._told_start[bit] = pos
        self._told_end[bit] = after
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
        """Check that the block names no user but `user`, which may be `ANYBODY`.

        Raises:
            AmqpError: PRECONDITION_FAILED.
        """
        if self.user_id_start < 0 or user is ANYBODY:
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
        if start >= 0 and out_pos + ESCAPED_RATIO_MAX * (end - start) + _ROOM <= limit:
            if is_text(buf, start, end):
                out_pos = write_field(CONTENT_TYPE, buf, start, end, out, out_pos)
            else:
                out_pos = write_escaped_field(ESCAPED_CONTENT_TYPE, buf, start, end, out, out_pos)
        headers = self._headers
        headers.has_correlation = headers.has_response_topic = False
        if self.headers_start >= 0:
            out_pos = headers.write(buf, self.headers_start, self.headers_end, out, out_pos, limit)
        start, end = self.correlation_start, self.correlation_end
        is_told = headers.has_correlation
        if start >= 0 and not is_told and out_pos + ESCAPED_RATIO_MAX * (end - start) + _ROOM <= limit:
            out_pos = write_escaped_field(CORRELATION, buf, start, end, out, out_pos)
        if self._told_flags:
            out_pos = self._write_told(buf, out, out_pos, limit)
        return out_pos

    def _write_told(
        self, buf: bytes | bytearray | memoryview, out: bytearray | memoryview, out_pos: int, limit: int
    ) -> int:
        """Write the properties that only AMQP has as user properties; return the end of them."""
        for number in range(14):
            if not self._told_flags & (0x8000 >> number):
                continue
            start, end = self._told_start[number], self._told_end[number]
            if out_pos + end - start + _ROOM > limit:
                continue
            name = _TOLD_NAMES[number]
            if number == _PRIORITY:
                if buf[start]:  # 0 is what none means, and clients send it unasked
                    out_pos = _write_pair(name, b"%d" % buf[start], out, out_pos)
            elif number == _TIMESTAMP:
                out_pos = _write_pair(name, b"%d" % octets.read_i64(buf, start), out, out_pos)
            elif is_text(buf, start + 1, end):
                if number == _REPLY_TO and is_plain_key(value := octets.read_bytes(buf, start + 1, end)):
                    if not self._headers.has_response_topic:
                        out_pos = _write_pair(RESPONSE_TOPIC, value.replace(b".", b"/"), out, out_pos)
                else:
                    out_pos = write_field(name, buf, start + 1, end, out, out_pos)
        return out_pos


def is_plain_key(key: bytes) -> bool:
    """Return whether a routing key is a topic that an answer can be published to, with slashes for its dots."""
    for letter in key:
        if letter in _KEY_LETTERS:
            return False
    return is_topic(key)


def has_copies(buf: bytes | bytearray | memoryview, pos: int, end: int) -> bool:
    """Return whether a header of the table in [pos, end), which was checked, is named `CC` or `BCC`."""
    while pos < end:
        size = buf[pos]
        ends_so = size in (2, 3) and buf[pos + size] == 0x43 and buf[pos + size - 1] == 0x43
        if ends_so and (size == 2 or buf[pos + 1] == 0x42):
            return True
        pos = skip_value(buf, pos + 1 + size)
    return False


def _write_value(value: bytes, out: bytearray | memoryview, pos: int) -> int:
    size = len(value)
    octets.write_u8(out, pos, 1)
    octets.copy_bytes(out, pos + 1, value, 0, size)
    octets.write_u8(out, pos + 1 + size, 2)
    return pos + 2 + size


def _write_pair(name: bytes, value: bytes, out: bytearray | memoryview, pos: int) -> int:
    octets.copy_bytes(out, pos, name, 0, len(name))
    return _write_value(value, out, pos + len(name))
