"""Bytes to frames: one at a time where it is rare, runs of publishes where it is not.

A publish is three frames or more: method, content header, body. Runs whose bodies have one frame each are cut into one
`PublishBatch` without copying; whatever does not look like that is left to the connection, a frame at a time.

Source: docs/protocols/amqp.md, "Frames".
"""

from __future__ import annotations

from array import array

from core import octets
from core.message import FLAG_EXPIRES, FLAG_MARK, PublishBatch
from gateway.amqp.copies import take_copies
from gateway.amqp.direct_reply import name_reply
from gateway.amqp.errors import AmqpError, frame_error
from gateway.amqp.frames import FRAME_BODY, FRAME_HEADER, FRAME_HEARTBEAT, FRAME_METHOD
from gateway.amqp.property_block import EXTRA_BYTES_MAX, BlockReader

_FRAME_METHOD = FRAME_METHOD
_FRAME_HEADER = FRAME_HEADER
_FRAME_BODY = FRAME_BODY
_FRAME_HEARTBEAT = FRAME_HEARTBEAT
_FRAME_END = 0xCE

PUBLISH = 0x003C0028
_PUBLISH = PUBLISH
_CONTENT_CLASS = 0x003C0000  # basic, weight 0

MANDATORY = 1
_EXTRA_BYTES_MAX = EXTRA_BYTES_MAX
_FLAG_MARK = FLAG_MARK
_FLAG_EXPIRES = FLAG_EXPIRES
_EXTRA_ROOM = 262_144  # of the properties of one run, which ends before a message that might not fit


def cut_frame(buf: bytes | bytearray | memoryview, pos: int, end: int, payload_max: int) -> int:
    """Return what frame is at `pos`: payload size << 24 | channel << 8 | type; 0 where it is not all there yet.

    Raises:
        AmqpError: FRAME_ERROR: no frame of this protocol, or larger than was agreed; said before it is all there.
    """
    if pos >= end:
        return 0
    kind = buf[pos]
    if kind not in (_FRAME_METHOD, _FRAME_HEADER, _FRAME_BODY, _FRAME_HEARTBEAT):
        raise frame_error(kind, b"")
    if pos + 7 > end:
        return 0
    channel = octets.read_u16(buf, pos + 1)
    size = octets.read_u32(buf, pos + 3)
    if size > payload_max:
        raise frame_error(kind, b"", f"{{frame_too_large,{size},{payload_max}}}")
    if pos + size + 8 > end:
        return 0
    if buf[pos + size + 7] != _FRAME_END:
        payload = octets.read_bytes(buf, pos + 7, pos + 7 + size)
        raise frame_error(kind, payload, f"{{invalid_frame_end_marker,{buf[pos + size + 7]}}}")
    return (size << 24) | (channel << 8) | kind


def frame_size(
    buf: bytes | bytearray | memoryview, pos: int, end: int, kind: int, channel: int, payload_max: int
) -> int:
    """Return the payload size of a frame of this type and channel at `pos`, or -1 if that is not what is there."""
    if pos + 8 > end or buf[pos] != kind or octets.read_u16(buf, pos + 1) != channel:
        return -1
    size = octets.read_u32(buf, pos + 3)
    if size > payload_max or pos + 8 + size > end or buf[pos + 7 + size] != _FRAME_END:
        return -1
    return size


class PublishCutter:
    """Turns publishes into the one batch that it owns; good until the next call.

    Of each message, `topics` has exchange and routing key as they came (two short strings), `tag` the mandatory bit,
    `extra` the property block as a record's properties. Routes are the caller's to fill.
    """

    def __init__(self, capacity: int) -> None:
        self.batch = PublishBatch(capacity)
        self.ends = array("i", bytes(4 * capacity))  # where each message of a cut run ends in its buffer
        self.mandatory_count = 0
        self.body_bytes = 0
        self.copies: tuple[bytes, ...] = ()  # routing keys that headers add to those of the one message in the batch
        self._reader = BlockReader()
        self._extra = bytearray(_EXTRA_ROOM)
        self._room = memoryview(self._extra)
        self._reply_name = ""
        self._extra_first = 0  # where the newest message's properties start
        self._extra_used = 0  # and end
        self._index: dict[bytes, int] = {}
        self._raw_start = 0
        self._raw_size = -1
        self._route = 0
        self._block_start = 0
        self._block_size = -1
        self._flag = 0

    def cut(
        self,
        buf: bytes,
        pos: int,
        end: int,
        channel: int,
        payload_max: int,
        body_max: int,
        user: bytes,
        reply_name: str = "",
    ) -> int:
        """Cut the run of publishes on `channel` at `pos` into the batch; return the position after it.

        The run ends before the first frame that is not all there, is wrong in any way, or goes on in a further body
        frame, and before a message that has copies, or wants direct replies where the channel consumes none; then the
        batch may be empty. `reply_name` and `user` are as of `add`.
        """
        batch = self.batch
        self._begin(buf)
        self._reply_name = reply_name
        while batch.count < batch.capacity and self._extra_used + _EXTRA_BYTES_MAX <= _EXTRA_ROOM:
            after = self._cut_one(buf, pos, end, channel, payload_max, body_max, user)
            if after < 0:
                break
            pos = after
            self.ends[batch.count - 1] = after
        return pos

    def add(
        self, raw: bytes, bits: int, block: bytes, body: bytes | bytearray, user: bytes, reply_name: str = ""
    ) -> None:
        """Make the batch of the one message whose frames were put together elsewhere.

        Args:
            raw: Exchange and routing key, two short strings.
            bits: Of the method.
            block: Its property block.
            body: All of it.
            user: The only user that the block may name.
            reply_name: What stands for the name of direct replies, where the channel consumes any.

        Raises:
            AmqpError: The block is malformed, too large, names another user, asks for copies in no known way, or for
                direct replies that nobody consumes.
        """
        self._begin(body)
        self._take_block(block, 0, len(block), user)
        if self._reader.reply_start >= 0:
            block = name_reply(block, self._reader.reply_start, reply_name)
            self._begin(body)
            self._take_block(block, 0, len(block), user)
        if self._reader.has_copies:
            copies, block = take_copies(block, self._reader.headers_start, self._reader.headers_end)
            self._begin(body)
            self._take_block(block, 0, len(block), user)
            self.copies = copies
        self._take_raw(raw, 0, len(raw))
        self._append(bits, 0, len(body))

    def _begin(self, src: bytes | bytearray) -> None:
        self.batch.clear()
        self.batch.buf = src
        self.batch.extra = self._extra
        self.mandatory_count = 0
        self.body_bytes = 0
        self.copies = ()
        self._reply_name = ""
        self._extra_used = 0
        self._index.clear()
        self._raw_size = -1
        self._block_size = -1

    def _cut_one(
        self,
        buf: bytes,
        pos: int,
        end: int,
        channel: int,
        payload_max: int,
        body_max: int,
        user: bytes,
    ) -> int:
        size = frame_size(buf, pos, end, _FRAME_METHOD, channel, payload_max)
        if size < 9 or octets.read_u32(buf, pos + 7) != _PUBLISH:
            return -1
        header = pos + 8 + size
        raw = pos + 13
        key = raw + 1 + buf[raw]
        if key >= header - 2:
            return -1
        bits = key + 1 + buf[key]
        if bits + 2 != header or buf[bits] > 1:
            return -1
        size = frame_size(buf, header, end, _FRAME_HEADER, channel, payload_max)
        if size < 14 or octets.read_u32(buf, header + 7) != _CONTENT_CLASS or octets.read_u32(buf, header + 11):
            return -1
        body_size = octets.read_u32(buf, header + 15)
        body = header + 8 + size
        after = body
        if body_size:
            if body_size > body_max:
                return -1
            if frame_size(buf, body, end, _FRAME_BODY, channel, payload_max) != body_size:
                return -1
            after = body + 8 + body_size
            body += 7
        try:
            self._take_block(buf, header + 19, header + 7 + size, user)
        except AmqpError:
            return -1
        if self._reader.has_copies or self._reader.reply_start >= 0:
            return -1
        self._take_raw(buf, raw, bits)
        self._append(buf[bits], body, body + body_size)
        return after

    def _take_raw(self, buf: bytes, start: int, end: int) -> None:
        size = end - start
        if size == self._raw_size and octets.equal_bytes(buf, start, buf, self._raw_start, size):
            return
        raw = octets.read_bytes(buf, start, end)
        found = self._index.get(raw)
        if found is None:
            found = len(self._index)
            self._index[raw] = found
            self.batch.topics.append(raw)
        self._route = found
        self._raw_start = start
        self._raw_size = size

    def _take_block(self, buf: bytes, start: int, end: int, user: bytes) -> None:
        size = end - start
        if size == self._block_size and octets.equal_bytes(buf, start, buf, self._block_start, size):
            return
        reader = self._reader
        reader.read(buf, start, end)
        reader.check_user(buf, user)
        self._extra_first = self._extra_used
        if reader.reply_start >= 0 and self._reply_name:
            self._extra_used = self._write_named(octets.read_bytes(buf, start, end), reader.reply_start - start)
        else:
            self._extra_used = reader.write_extra(buf, start, end, self._room, self._extra_first)
        self._flag = _FLAG_MARK | (1 if reader.delivery_mode == 2 else 0) | (_FLAG_EXPIRES if reader.ttl_ms >= 0 else 0)
        self._block_start = start
        self._block_size = size

    def _write_named(self, block: bytes, reply_start: int) -> int:
        """Write a block that asks for direct replies, with the channel's own name for them; return the end of it."""
        block = name_reply(block, reply_start, self._reply_name)
        self._reader.read(block, 0, len(block))
        return self._reader.write_extra(block, 0, len(block), self._room, self._extra_first)

    def _append(self, bits: int, body_start: int, body_end: int) -> None:
        batch = self.batch
        i = batch.count
        batch.route_index[i] = self._route
        batch.extra_start[i] = self._extra_first
        batch.extra_end[i] = self._extra_used
        batch.body_start[i] = body_start
        batch.body_end[i] = body_end
        batch.flag[i] = self._flag
        batch.sys_flag[i] = 0
        batch.reconsume_times[i] = 0
        batch.born_ms[i] = 0
        batch.tag[i] = bits
        self.mandatory_count += bits & 1
        self.body_bytes += body_end - body_start
        batch.count = i + 1
