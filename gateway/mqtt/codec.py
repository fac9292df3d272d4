"""MQTT bytes to packets, by the run.

A `PacketReader` is one connection's; between packets it keeps no buffer.
"""

from __future__ import annotations

from array import array

from core import octets
from core.message import FLAG_BARE, FLAG_MARK, FLAG_RETAIN
from gateway.mqtt.columns import NEAR_BYTES_MAX, RunColumns
from gateway.mqtt.errors import MalformedPacketError, MqttError, PacketTooLargeError
from gateway.mqtt.properties import OF_ACK, decode_properties
from gateway.mqtt.publish_faults import raise_fault

# What `PacketReader.read_next` found.
MORE = 0  # nothing whole is left
PUBLISHES = 1  # a run of PUBLISH packets, in `RunColumns.batch`
ACKS = 2  # a run of PUBACK, PUBREC, PUBREL or PUBCOMP packets, in `RunColumns.packet_ids`; `ack_type` says which
PACKET = 3  # one other packet: `packet_type`, and `take_body`
PINGS = 4  # a run of PINGREQ packets, `RunColumns.ping_count` of them
_MORE = MORE
_PUBLISHES = PUBLISHES
_ACKS = ACKS
_PACKET = PACKET
_PINGS = PINGS

_TOPIC_KEPT_BYTES_MAX = 256  # each connection keeps its last topic, and may cost so much
_JOIN_BYTES_MAX = 16_384  # a read up to this size is joined to the unfinished packet before it: one batch, not two
_HEADER_BYTES_MAX = 5  # type and flags 1, length 1 to 4
_NEAR_BYTES_MAX = NEAR_BYTES_MAX
_PINGREQ = 0xC0
_PINGS_MAX = 32_768  # 64 KiB of answers
_FLAG_MARK = FLAG_MARK
_FLAG_RETAIN = FLAG_RETAIN
_FLAG_BARE = FLAG_BARE
_LEVEL_5 = 5

# Flags that the fixed header must have, by packet type; -1: no such type, -2: checked with the packet.
_FLAGS = array("i", [-1, 0, 0, -2, 0, 0, 2, 0, 2, 0, 2, 0, 0, 0, 0, -1])

_SOUND = 0  # and the next: rows of `publish_faults`
_BAD_QOS = 1
_BAD_DUP = 2
_SHORT = 3
_EMPTY_TOPIC = 4
_NO_ID = 5
_BAD_BLOCK = 6  # and the next: what `RunColumns.read_block` finds
_UNKNOWN_ALIAS = 10
_LARGE_ALIAS = 11
_NEW_ALIAS = 12  # none: the alias gets another meaning, which only the first message of a run may give it


class PacketReader:
    """Cuts one connection's bytes into packets; keeps only what is unfinished, and copies that once.

    Args:
        columns: The door's columns.
        packet_bytes_max: Size of the largest packet, fixed header included; the owner may change it between packets.
    """

    def __init__(self, columns: RunColumns, packet_bytes_max: int) -> None:
        self.columns = columns
        self.packet_bytes_max = packet_bytes_max
        self.is_old = False  # MQTT 3.1: SUBSCRIBE, UNSUBSCRIBE and PUBREL may be marked as sent again
        self.level = 0  # of the protocol: 5 for MQTT 5
        self.alias_max = 0  # the client may use topic aliases up to this
        self.packet_type = 0
        self._buf: bytes | bytearray = b""
        self._pos = 0
        self._end = 0  # of `_buf`
        self._rest: bytes | None = None
        self._rest_pos = 0
        self._tail: bytearray | None = None
        self._needed = 0  # size of the packet that `_tail` begins, 0 while unknown
        self._body_start = 0
        self._packet_end = 0
        self._topic = b""  # of the message before: devices tend to stay with one
        self._aliases: dict[int, bytes] = {}

    @property
    def has_more(self) -> bool:
        """Whether there are bytes after the packet that was read last."""
        return self._pos < self._end or self._rest is not None or self._tail is not None

    def receive_data(self, data: bytes) -> None:
        """Take what was read; everything before it has been asked for with `read_next`.

        Raises:
            MalformedPacketError, PacketTooLargeError: The packet that the bytes go on with cannot be.
        """
        tail = self._tail
        if tail is None:
            self._buf = data
            self._pos = 0
            self._end = len(data)
        elif len(tail) + len(data) <= _JOIN_BYTES_MAX:
            tail += data
            self._start(tail)
        else:
            self._complete(tail, data)

    def _start(self, buf: bytearray) -> None:
        self._tail = None
        self._needed = 0
        self._buf = buf
        self._pos = 0
        self._end = len(buf)

    def take_tail(self) -> bytes:
        """Give up the packet that is not all there; return what there is of it."""
        tail, self._tail, self._needed = self._tail, None, 0
        return b"" if tail is None else bytes(tail)

    def _complete(self, tail: bytearray, data: bytes) -> None:
        """Give the unfinished packet what it needs of `data`; the rest of `data` comes after it, uncopied."""
        taken = 0
        if not self._needed:
            taken = _HEADER_BYTES_MAX
            tail += data[:taken]
            self._needed = self._size_of(tail)
        if not self._needed or len(tail) >= self._needed:
            tail += data[taken:]
            self._start(tail)
            return
        wanted = taken + self._needed - len(tail)
        tail += data[taken:wanted]
        if len(tail) == self._needed:
            self._start(tail)
            if wanted < len(data):
                self._rest = data
                self._rest_pos = wanted

    def _size_of(self, buf: bytes | bytearray) -> int:
        """Return the size of the packet that `buf` begins with, 0 where its length is not all there."""
        return self._packet_end if self._read_header(buf, 0, len(buf)) else 0

    def read_next(self) -> int:
        """Return what comes next: MORE, PUBLISHES, ACKS, PINGS or PACKET.

        Raises:
            MqttError: The next packet breaks the protocol; all before it have been returned.
        """
        found = self._cut_on() if self._pos < self._end else _MORE
        while found == _MORE and self._rest is not None:
            self._buf = self._rest
            self._pos = self._rest_pos
            self._end = len(self._buf)
            self._rest = None
            found = self._cut(self._buf)
        if found == _MORE:
            if self._pos < self._end:
                self._keep_tail()
            self._buf = b""
            self._pos = self._end = 0
        return found

    def _keep_tail(self) -> None:
        buf = self._buf
        self._tail = buf if self._pos == 0 and isinstance(buf, bytearray) else bytearray(buf[self._pos :])
        self._needed = self._size_of(self._tail)

    def take_body(self) -> bytes:
        """Return the body of the packet that `read_next` called a PACKET."""
        return bytes(self._buf[self._body_start : self._packet_end])

    def _cut_on(self) -> int:
        """Cut what `_buf` goes on with."""
        buf = self._buf
        if self._pos == 0 and self._end <= _NEAR_BYTES_MAX and isinstance(buf, bytes):
            size = octets.put_bytes(self.columns.near, 0, buf)
            return self._cut(self.columns.near[:size])
        return self._cut(buf)

    def _cut(self, buf: bytes | bytearray | memoryview) -> int:
        end = len(buf)
        if not self._read_header(buf, self._pos, end) or self._packet_end > end:
            return _MORE
        first = buf[self._pos]
        if first >> 4 == 3:
            return self._cut_publishes(buf, end)
        if 4 <= first >> 4 <= 7:
            return self._cut_acks(buf, end)
        if first == _PINGREQ and self._packet_end == self._pos + 2:
            return self._cut_pings(buf, end)
        self.packet_type = first >> 4
        self._pos = self._packet_end
        return _PACKET

    def _read_header(self, buf: bytes | bytearray | memoryview, pos: int, end: int) -> bool:
        """Read the fixed header at `pos`; False where it is not all there.

        Raises:
            MalformedPacketError, PacketTooLargeError: No packet starts like that.
        """
        if pos >= end:
            return False
        first = buf[pos]
        flags = _FLAGS[first >> 4]
        if flags != -2 and flags != first & 0x0F and not self._may_be(first, flags):
            raise MalformedPacketError("MQTT-2.2.2-2", f"a fixed header starts with {first:#04x}")
        at = pos + 1
        length = 0
        shift = 0
        while True:
            if at >= end:
                return False
            length |= (buf[at] & 0x7F) << shift
            if buf[at] < 0x80:
                break
            if shift == 21:
                raise MalformedPacketError("MQTT-4.8.0-1", "a remaining length has more than four bytes")
            shift += 7
            at += 1
        if at + 1 + length - pos > self.packet_bytes_max:
            raise PacketTooLargeError("MQTT-4.8.0-1", f"a packet of {length} bytes, over {self.packet_bytes_max}")
        self._body_start = at + 1
        self._packet_end = at + 1 + length
        return True

    def _may_be(self, first: int, flags: int) -> bool:
        """Return whether a first byte is right in this version of the protocol alone."""
        return (self.is_old and flags == 2 and first & 0x07 == 2) or (self.level == _LEVEL_5 and first == 0xF0)

    def _cut_publishes(self, buf: bytes | bytearray | memoryview, end: int) -> int:
        """Decode PUBLISH packets up to the first other one, the first bad one, or a full batch; the header is read."""
        columns = self.columns
        batch = columns.batch
        columns.begin()
        batch.buf = buf
        pos = self._pos
        count = 0
        retained_count = exact_count = body_bytes = topic_start = topic_size = topic = 0
        is_5 = self.level == _LEVEL_5
        while count < batch.capacity and self._packet_end <= end:
            first = buf[pos]
            at = self._body_start
            fault = self._find_fault(buf, first, at, self._packet_end)
            if is_5 and not fault:
                fault = self._take_properties(buf, first, at, count)
            if fault:
                if count == 0:
                    raise_fault(fault)
                break
            size = octets.read_u16(buf, at)
            at += 2
            if size == 0:  # an alias stands for it
                topic = self._intern(self._aliases[columns.alias])
            elif count == 0 or size != topic_size or not octets.equal_bytes(buf, at, buf, topic_start, size):
                topic = self._intern_topic(buf, at, size)
            topic_start = at
            topic_size = size
            at += size
            if first & 0x06:
                batch.tag[count] = octets.read_u16(buf, at)
                at += 2
            else:
                batch.tag[count] = 0
            if is_5:
                at = self._body_start
            else:
                batch.flag[count] = _FLAG_MARK | _FLAG_BARE
            batch.route_index[count] = topic
            batch.body_start[count] = at
            batch.body_end[count] = self._packet_end
            body_bytes += self._packet_end - at
            batch.flag[count] |= (first >> 1) & 3 | (_FLAG_RETAIN if first & 1 else 0)
            retained_count += first & 1
            exact_count += first >> 2 & 1
            count += 1
            pos = self._packet_end
            if pos >= end or buf[pos] >> 4 != 3 or not self._read_next_header(buf, pos, end):
                break
        batch.count = count
        batch.retained_count = retained_count
        columns.exact_count = exact_count
        columns.body_bytes = body_bytes
        columns.hand_on_extra()
        self._pos = pos
        return _PUBLISHES

    def _take_properties(self, buf: bytes | bytearray | memoryview, first: int, at: int, i: int) -> int:
        """Read the properties of message `i`, with the body in [at, `_packet_end`); return which fault it has.

        `_body_start` is after them then.
        """
        columns = self.columns
        size = octets.read_u16(buf, at)
        after = columns.read_block(buf, at + 2 + size + (2 if first & 0x06 else 0), self._packet_end, i)
        if after < 0:
            return _BAD_BLOCK - 1 - after
        self._body_start = after
        alias = columns.alias
        if alias == 0:
            return _SOUND if size else _UNKNOWN_ALIAS
        if alias > self.alias_max:
            return _LARGE_ALIAS
        known = self._aliases.get(alias)
        if size == 0:
            return _UNKNOWN_ALIAS if known is None else _SOUND
        if known is None or len(known) != size or not octets.starts_with(buf, at + 2, known):
            if known is not None and i > 0:  # what comes before must be read alike if it is read again
                return _NEW_ALIAS
            self._aliases[alias] = octets.read_bytes(buf, at + 2, at + 2 + size)
        return _SOUND

    def _read_next_header(self, buf: bytes | bytearray | memoryview, pos: int, end: int) -> bool:
        """Read the header at `pos`, False also where it is bad: then it ends the run and is read again."""
        if pos + 2 <= end and buf[pos + 1] < 0x80 and buf[pos + 1] + 2 <= self.packet_bytes_max:
            self._body_start = pos + 2
            self._packet_end = pos + 2 + buf[pos + 1]
            return True
        try:
            return self._read_header(buf, pos, end)
        except MqttError:
            return False

    def _find_fault(self, buf: bytes | bytearray | memoryview, first: int, at: int, end: int) -> int:
        """Return which fault the PUBLISH with its body in [at, end) has."""
        qos = (first >> 1) & 3
        if qos == 3:
            return _BAD_QOS
        if qos == 0 and first & 0x08:
            return _BAD_DUP
        topic_end = at + 2 + octets.read_u16(buf, at) if at + 2 <= end else end + 1
        if topic_end + (2 if qos else 0) > end:
            return _SHORT
        if topic_end == at + 2 and self.level != _LEVEL_5:
            return _EMPTY_TOPIC
        if qos and not octets.read_u16(buf, topic_end):
            return _NO_ID
        return _SOUND

    def _intern_topic(self, buf: bytes | bytearray | memoryview, start: int, size: int) -> int:
        """Return the index of the topic among the batch's distinct ones."""
        topic = self._topic
        if len(topic) != size or not octets.starts_with(buf, start, topic):
            topic = octets.read_bytes(buf, start, start + size)
            self._topic = topic if size <= _TOPIC_KEPT_BYTES_MAX else b""
        return self._intern(topic)

    def _intern(self, topic: bytes) -> int:
        topics = self.columns.batch.topics
        topic_index = self.columns.topic_index
        if not topics:  # and it may stay the only one
            topics.append(topic)
            return 0
        if not topic_index:
            topic_index[topics[0]] = 0
        index = topic_index.setdefault(topic, len(topics))
        if index == len(topics):
            topics.append(topic)
        return index

    def _cut_acks(self, buf: bytes | bytearray | memoryview, end: int) -> int:
        """Decode acknowledgements of one type up to the first other packet or full columns; the header is read."""
        columns = self.columns
        packet_ids = columns.packet_ids
        capacity = len(packet_ids)
        pos = self._pos
        first = buf[pos]
        count = 0
        while count < capacity and pos + 4 <= end and buf[pos] == first:
            columns.codes[count] = 0
            size = 4
            at = pos + 2
            if buf[pos + 1] != 2:
                size = self._read_long_ack(buf, pos, end, count)
                if size == 0:
                    break
                at = self._body_start
            packet_ids[count] = octets.read_u16(buf, at)
            if not packet_ids[count]:
                break
            count += 1
            pos += size
        if count == 0:
            raise MalformedPacketError("MQTT-4.8.0-1", "an acknowledgement is not a packet identifier")
        columns.ack_count = count
        columns.ack_type = first >> 4
        self._pos = pos
        return _ACKS

    def _read_long_ack(self, buf: bytes | bytearray | memoryview, pos: int, end: int, i: int) -> int:
        """Read an acknowledgement that says more than a packet identifier; return its size, 0 where it is none."""
        if self.level != _LEVEL_5 or not self._read_next_header(buf, pos, end) or self._packet_end > end:
            return 0
        at = self._body_start + 2
        if at >= self._packet_end:
            return 0
        self.columns.codes[i] = buf[at]
        if self._packet_end > at + 1:
            try:
                body = octets.read_bytes(buf, at + 1, self._packet_end)
                if decode_properties(body, 0, OF_ACK)[1] != len(body):
                    return 0
            except MqttError:
                return 0
        return self._packet_end - pos

    def _cut_pings(self, buf: bytes | bytearray | memoryview, end: int) -> int:
        """Take PINGREQ packets up to the first other one, or as many as are answered in one write."""
        pos = self._pos
        count = 0
        while count < _PINGS_MAX and pos + 2 <= end and buf[pos] == _PINGREQ and buf[pos + 1] == 0:
            count += 1
            pos += 2
        self.columns.ping_count = count
        self._pos = pos
        return _PINGS

    def unread_publishes(self) -> None:
        """Give back what the batch has no more, because it was cut: it is read again, in another turn.

        Right after a run of PUBLISH packets; the batch has at least one message still.
        """
        batch = self.columns.batch
        self._pos = batch.body_end[batch.count - 1]
