"""A record's properties on their way out: the block that came in by AMQP, or one made for another door's message.

Source: docs/protocols/amqp.md, "Properties".
"""

from __future__ import annotations

from binascii import a2b_base64

from core import octets
from core.message import FLAG_MARK, FLAG_MARK_MASK
from core.properties import RESERVED
from gateway.amqp.envelope_fields import EnvelopeFields
from gateway.amqp.errors import AmqpError
from gateway.amqp.property_block import BlockReader

_FLAG_MARK = FLAG_MARK
_FLAG_MARK_MASK = FLAG_MARK_MASK
_FLAG_CONTENT_TYPE = 0x8000
_FLAGS = 0x3040  # headers, delivery mode, timestamp

NAME_OTHER = 0
NAME_HIDDEN = 1
NAME_CLIENT = 2
NAME_USER = 3
NAME_PROTOCOL = 4
NAME_EXCHANGE = 5
NAME_KEY = 6
NAME_AMQP = 7
NAME_CONTENT_TYPE = 8
NAME_ENVELOPE = 9  # another field of the envelope
NAME_PAIR = 10  # a user property, escaped
NAME_TOLD = 11  # a user property that may be one of AMQP's own
NAME_DIED = 12
_NAME_OTHER = NAME_OTHER
_NAME_HIDDEN = NAME_HIDDEN
_NAME_CLIENT = NAME_CLIENT
_NAME_USER = NAME_USER
_NAME_PROTOCOL = NAME_PROTOCOL
_NAME_EXCHANGE = NAME_EXCHANGE
_NAME_KEY = NAME_KEY
_NAME_AMQP = NAME_AMQP
_NAME_CONTENT_TYPE = NAME_CONTENT_TYPE
_NAME_ENVELOPE = NAME_ENVELOPE
_NAME_PAIR = NAME_PAIR
_NAME_TOLD = NAME_TOLD
_NAME_DIED = NAME_DIED

# Headers that the gateway adds to messages of other doors; a user property of the same name is left out.
OWN_HEADERS = (b"x-client-id", b"x-user", b"x-protocol", b"timestamp_in_ms", b"x-mqtt-publish-qos", b"x-mqtt-retain")
_OWN = frozenset((*OWN_HEADERS, b"x-topic"))
# The same as they stand in a table, name and type, so that one copy writes each.
_ENTRIES = (
    b"\x0bx-client-idS\x06x-userS\x0ax-protocolS\x0ftimestamp_in_msl\x12x-mqtt-publish-qosb\x0dx-mqtt-retaint"
    b"\x07x-topicS"
)
_CLIENT_AT = 0
_USER_AT = 13
_PROTOCOL_AT = 21
_TIMESTAMP_AT = 33
_QOS_AT = 50
_RETAIN_AT = 70
_TOPIC_AT = 85
_ENTRIES_END = 94
_ROCKETMQ = b"rocketmq"
_SHORT_BYTES_MAX = 255  # a short string has one byte for its length


def name_code(buf: bytes | bytearray | memoryview, pos: int, end: int) -> int:
    """Return which of the gateway's own property names [pos, end) is, `NAME_OTHER` for a user's."""
    if end - pos < 7:
        return _NAME_OTHER
    first = octets.read_u32(buf, pos)
    if first == 0x4C4D515F:  # LMQ_
        return _lmq_name(buf, pos + 4, end - pos)
    if first == 0x494E4E45 and octets.read_u32(buf, pos + 3) == 0x45525F4D and end - pos in (20, 24):  # INNE, ER_M
        return _NAME_HIDDEN
    if first == 0x5F5F4352 and end - pos == 8:  # __CRC32#
        return _NAME_HIDDEN
    if first == 0x782D616D and octets.read_u32(buf, pos + 3) == 0x6D71702D:  # x-am, mqp-
        return _NAME_TOLD
    if first == 0x434F4E54 and end - pos == 12 and octets.read_u32(buf, pos + 8) == 0x54595045:  # CONT, TYPE
        return _NAME_CONTENT_TYPE
    return _NAME_OTHER


def _lmq_name(buf: bytes | bytearray | memoryview, pos: int, size: int) -> int:
    rest = octets.read_u32(buf, pos - 1)  # the underscore and three letters
    if size == 10 and rest == 0x5F434C49:  # CLI
        return _NAME_CLIENT
    if size == 8 and rest == 0x5F555345:  # USE
        return _NAME_USER
    if size == 12 and rest == 0x5F50524F:  # PRO
        return _NAME_PROTOCOL
    if size == 12 and rest == 0x5F455843:  # EXC
        return _NAME_EXCHANGE
    if size == 7 and rest == 0x5F4B4559:  # KEY
        return _NAME_KEY
    if size == 8 and rest == 0x5F414D51:  # AMQ
        return _NAME_AMQP
    if size == 8 and rest == 0x5F444945:  # DIE
        return _NAME_DIED
    if size == 8 and rest == 0x5F504149:  # PAI
        return _NAME_PAIR
    if rest in (0x5F54544C, 0x5F464F52, 0x5F434F52, 0x5F524553, 0x5F434F4E):  # TTL, FOR, COR, RES, CON
        return _NAME_ENVELOPE
    return _NAME_HIDDEN


class StoredProperties:
    """Where in one record's properties lies what a delivery needs; positions are -1 where there is none."""

    def __init__(self) -> None:
        self.client_start = -1
        self.client_end = -1
        self.user_start = -1
        self.user_end = -1
        self.protocol_start = -1
        self.protocol_end = -1
        self.exchange_start = -1
        self.exchange_end = -1
        self.key_start = -1
        self.key_end = -1
        self.amqp_start = -1
        self.amqp_end = -1
        self.content_type_start = -1
        self.content_type_end = -1
        self.died_start = -1
        self.died_end = -1
        self.other_start = -1  # the first property that is a user's
        self.has_envelope = False  # there are other fields of the envelope
        self._checker = BlockReader()
        self._entries = _ENTRIES
        self._rocketmq = _ROCKETMQ

    def _forget(self) -> None:
        self.client_start = -1
        self.user_start = -1
        self.protocol_start = -1
        self.exchange_start = -1
        self.key_start = -1
        self.amqp_start = -1
        self.content_type_start = -1
        self.died_start = -1
        self.other_start = -1
        self.has_envelope = False

    def read(self, buf: bytes | bytearray | memoryview, pos: int, end: int) -> None:
        """Find the gateway's properties in [pos, end), up to `LMQ_AMQP` if that is there."""
        self._forget()
        while pos < end and self.amqp_start < 0:
            after = octets.find_byte(buf, 2, pos, end)
            if after < 0:
                after = end
            name_end = octets.find_byte(buf, 1, pos, after)
            if name_end >= 0:
                code = name_code(buf, pos, name_end)
                if code != _NAME_OTHER:
                    self._keep(code, name_end + 1, after)
                if code in (_NAME_OTHER, _NAME_PAIR, _NAME_TOLD) and self.other_start < 0:
                    self.other_start = pos
            pos = after + 1

    def _keep(self, code: int, start: int, end: int) -> None:
        if code == _NAME_CLIENT:
            self.client_start = start
            self.client_end = end
        elif code == _NAME_USER:
            self.user_start = start
            self.user_end = end
        elif code == _NAME_PROTOCOL:
            self.protocol_start = start
            self.protocol_end = end
        elif code == _NAME_EXCHANGE:
            self.exchange_start = start
            self.exchange_end = end
        elif code == _NAME_KEY:
            self.key_start = start
            self.key_end = end
        elif code == _NAME_AMQP:
            self.amqp_start = start
            self.amqp_end = end
        elif code in (_NAME_ENVELOPE, _NAME_PAIR, _NAME_TOLD):
            self.has_envelope = True
        elif code == _NAME_CONTENT_TYPE:
            self.content_type_start = start
            self.content_type_end = end
        elif code == _NAME_DIED:
            self.died_start = start
            self.died_end = end

    def amqp_block(self, buf: bytes | bytearray | memoryview) -> bytes | None:
        """Return the block that `LMQ_AMQP` holds; None where there is none, or a forged one."""
        if self.amqp_start < 0:
            return None
        try:
            block = a2b_base64(octets.read_bytes(buf, self.amqp_start, self.amqp_end))
            self._checker.read(block, 0, len(block))
        except (ValueError, AmqpError):
            return None
        return block

    def write_block(
        self,
        buf: bytes | bytearray | memoryview,
        span: tuple[int, int, int, int],
        flag: int,
        born_ms: int,
        out: bytearray | memoryview,
        pos: int,
    ) -> int:
        """Write a block for a message of another door; return its end.

        `span` is where the properties and the topic lie, the latter empty if the
        routing key says it all. `out` has room for five times the properties, the topic and 512 bytes.
        """
        if flag & _FLAG_MARK_MASK != _FLAG_MARK:  # RocketMQ's own flags
            flag = _FLAG_MARK | 1
        flags = _FLAGS
        fields = EnvelopeFields(octets.read_bytes(buf, span[0], span[1])) if self.has_envelope else None
        content_type_size = self.content_type_end - self.content_type_start
        block = pos
        pos += 2
        if self.content_type_start >= 0 and content_type_size <= 255:
            flags |= _FLAG_CONTENT_TYPE
            octets.write_u8(out, pos, content_type_size)
            octets.copy_bytes(out, pos + 1, buf, self.content_type_start, content_type_size)
            pos += 1 + content_type_size
        elif fields is not None and fields.content_type is not None:
            flags |= _FLAG_CONTENT_TYPE
            pos = _write_short(fields.content_type, out, pos)
        if fields is not None:
            flags |= fields.flags
            pos = octets.put_bytes(out, pos, fields.content_encoding)
        octets.write_u16(out, block, flags)
        table = pos
        pos = self._write_own_headers(buf, flag, born_ms, out, pos + 4)
        if span[3] > span[2]:
            pos = self._write_text(_TOPIC_AT, _ENTRIES_END, buf, span[2], span[3], out, pos)
        if self.amqp_start >= 0:  # a forged block: reading ended there
            pos = _write_user_headers(buf, span[0], span[1], fields, out, pos)
        elif self.other_start >= 0:
            pos = _write_user_headers(buf, self.other_start, span[1], fields, out, pos)
        if fields is not None:
            pos = octets.put_bytes(out, pos, fields.headers)
        octets.write_u32(out, table, pos - table - 4)
        octets.write_u8(out, pos, 2 if flag & 3 else 1)
        pos += 1
        if fields is None:
            octets.write_u64(out, pos, born_ms // 1000)
            return pos + 8
        pos = octets.put_bytes(out, pos, fields.before_time)
        octets.write_u64(out, pos, fields.timestamp(born_ms // 1000))
        return octets.put_bytes(out, pos + 8, fields.after_time)

    def _write_own_headers(
        self,
        buf: bytes | bytearray | memoryview,
        flag: int,
        born_ms: int,
        out: bytearray | memoryview,
        pos: int,
    ) -> int:
        if self.client_start >= 0:
            pos = self._write_text(_CLIENT_AT, _USER_AT, buf, self.client_start, self.client_end, out, pos)
        if self.user_start >= 0:
            pos = self._write_text(_USER_AT, _PROTOCOL_AT, buf, self.user_start, self.user_end, out, pos)
        if self.protocol_start >= 0:
            pos = self._write_text(_PROTOCOL_AT, _TIMESTAMP_AT, buf, self.protocol_start, self.protocol_end, out, pos)
        else:
            pos = self._write_text(_PROTOCOL_AT, _TIMESTAMP_AT, self._rocketmq, 0, 8, out, pos)
        pos = self._write_entry(_TIMESTAMP_AT, _QOS_AT, out, pos)
        octets.write_u64(out, pos, born_ms)
        pos += 8
        if self.protocol_start >= 0 and buf[self.protocol_start] == 0x6D:  # mqtt
            pos = self._write_entry(_QOS_AT, _RETAIN_AT, out, pos)
            octets.write_u8(out, pos, flag & 3)
            pos += 1
        if flag & 4:
            pos = self._write_entry(_RETAIN_AT, _TOPIC_AT, out, pos)
            octets.write_u8(out, pos, 1)
            pos += 1
        return pos

    def _write_entry(self, start: int, end: int, out: bytearray | memoryview, pos: int) -> int:
        octets.copy_bytes(out, pos, self._entries, start, end - start)
        return pos + end - start

    def _write_text(
        self,
        entry: int,
        entry_end: int,
        buf: bytes | bytearray | memoryview,
        start: int,
        end: int,
        out: bytearray | memoryview,
        pos: int,
    ) -> int:
        pos = self._write_entry(entry, entry_end, out, pos)
        octets.write_u32(out, pos, end - start)
        octets.copy_bytes(out, pos + 4, buf, start, end - start)
        return pos + 4 + end - start


def _write_short(text: bytes, out: bytearray | memoryview, pos: int) -> int:
    octets.write_u8(out, pos, len(text))
    return octets.put_bytes(out, pos + 1, text)


def _write_user_headers(
    buf: bytes | bytearray | memoryview,
    pos: int,
    end: int,
    fields: EnvelopeFields | None,
    out: bytearray | memoryview,
    out_pos: int,
) -> int:
    """Write the user properties in [pos, end) as headers; `fields` where any may be more than a text."""
    while pos < end:
        after = octets.find_byte(buf, 2, pos, end)
        if after < 0:
            after = end
        name_end = octets.find_byte(buf, 1, pos, after)
        if name_end > pos:
            code = name_code(buf, pos, name_end)
            if code == _NAME_PAIR and fields is not None:
                out_pos = octets.put_bytes(out, out_pos, fields.pair(octets.read_bytes(buf, name_end + 1, after)))
            elif code in (_NAME_OTHER, _NAME_TOLD):
                out_pos = _write_user_header(buf, pos, name_end, after, fields, out, out_pos)
        pos = after + 1
    return out_pos


def _write_user_header(
    buf: bytes | bytearray | memoryview,
    pos: int,
    name_end: int,
    end: int,
    fields: EnvelopeFields | None,
    out: bytearray | memoryview,
    out_pos: int,
) -> int:
    size = name_end - pos
    name = octets.read_bytes(buf, pos, name_end)
    if size > _SHORT_BYTES_MAX or name in _OWN or name in RESERVED:
        return out_pos
    if fields is not None:
        if name in fields.taken:
            return out_pos
        return octets.put_bytes(out, out_pos, fields.header(name, octets.read_bytes(buf, name_end + 1, end)))
    octets.write_u8(out, out_pos, size)
    octets.copy_bytes(out, out_pos + 1, buf, pos, size)
    octets.write_u8(out, out_pos + 1 + size, 0x53)  # S
    octets.write_u32(out, out_pos + 2 + size, end - name_end - 1)
    octets.copy_bytes(out, out_pos + 6 + size, buf, name_end + 1, end - name_end - 1)
    return out_pos + 6 + size + end - name_end - 1
