"""MQTT bytes to packets by the run, and the acknowledgements of a run.

One `RunColumns` serves all connections of a door: a run of PUBLISH or PUBACK packets is decoded into it, used and
forgotten before the next one. A `PacketReader` is one connection's; between packets it keeps no buffer.
"""

from __future__ import annotations

from array import array

from core import octets
from core.message import FLAG_MARK, FLAG_RETAIN, PublishBatch
from gateway.mqtt.errors import MalformedPacketError, MqttError, PacketTooLargeError, UnsupportedQosError

# What `PacketReader.read_next` found.
MORE = 0  # nothing whole is left
PUBLISHES = 1  # a run of PUBLISH packets, in `RunColumns.batch`
ACKS = 2  # a run of PUBACK packets, in `RunColumns.packet_ids`
PACKET = 3  # one other packet: `packet_type`, and `take_body`
PINGS = 4  # a run of PINGREQ packets, `RunColumns.ping_count` of them
_MORE = MORE
_PUBLISHES = PUBLISHES
_ACKS = ACKS
_PACKET = PACKET
_PINGS = PINGS

RUN_COUNT_MAX = 1024  # messages in a batch: enough to make the cost of a batch vanish
_TOPIC_KEPT_BYTES_MAX = 256
_JOIN_BYTES_MAX = 16_384  # a read up to this size is joined to the unfinished packet before it: one batch, not two
_HEADER_BYTES_MAX = 5
_NEAR_BYTES_MAX = 2048  # a read up to this size is decoded from a copy: a view of it would cost more
_PINGREQ = 0xC0
_PINGS_MAX = 32_768  # 64 KiB of answers
_FLAG_MARK = FLAG_MARK
_FLAG_RETAIN = FLAG_RETAIN

# Flags that the fixed header must have, by packet type; -1: no such type, -2: checked with the packet.
_FLAGS = array("i", [-1, 0, 0, -2, 0, 0, 2, 0, 2, 0, 2, 0, 0, 0, 0, -1])

_SOUND = 0
_BAD_QOS = 1
_QOS_2 = 2
_BAD_DUP = 3
_SHORT = 4
_EMPTY_TOPIC = 5
_NO_ID = 6
_FAULTS: tuple[tuple[type[MqttError], str, str], ...] = (
    (MqttError, "", ""),
    (MalformedPacketError, "MQTT-3.3.1-4", "a PUBLISH has QoS 3"),
    (UnsupportedQosError, "MQTT-4.3.3-2", "a PUBLISH has QoS 2, which is not taken here"),
    (MalformedPacketError, "MQTT-3.3.1-2", "a PUBLISH at QoS 0 is marked as sent again"),
    (MalformedPacketError, "MQTT-4.8.0-1", "a PUBLISH ends before its topic or packet identifier does"),
    (MalformedPacketError, "MQTT-4.7.3-1", "a PUBLISH has an empty topic"),
    (MalformedPacketError, "MQTT-2.3.1-1", "a packet identifier is 0"),
)


class RunColumns:
    """Where a door's connections decode their runs: made once, the content valid until the next `read_next`."""

    def __init__(self, capacity: int = RUN_COUNT_MAX) -> None:
        self.batch = PublishBatch(capacity)
        self.packet_ids = array("i", bytes(4 * capacity))
        self.ack_count = 0
        self.ping_count = 0
        self.body_bytes = 0  # of all messages of the batch
        self.topic_index: dict[bytes, int] = {}
        self.near: bytearray | memoryview = memoryview(bytearray(_NEAR_BYTES_MAX))
        self.pubacks = bytearray(4 * capacity)  # one for each message at most


class PacketReader:
    """Cuts one connection's bytes into packets; keeps only what is unfinished, and copies that once.

    Args:
        columns: The door's columns.
        packet_bytes_max: Size of the largest packet, fixed header included; the owner may change it between packets.
    """

    def __init__(self, columns: RunColumns, packet_bytes_max: int) -> None:
        self.columns = columns
        self.packet_bytes_max = packet_bytes_max
        self.is_old = False  # MQTT 3.1: SUBSCRIBE and UNSUBSCRIBE may be marked as sent again
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
        if self._read_header(buf, 0, len(buf)):
            return self._packet_end
        return 0

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
        if first >> 4 == 4:
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
        if flags != -2 and flags != first & 0x0F and not (self.is_old and flags == 2 and first & 0x07 == 2):
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

    def _cut_publishes(self, buf: bytes | bytearray | memoryview, end: int) -> int:
        """Decode PUBLISH packets up to the first other one, the first bad one, or a full batch; the header is read."""
        columns = self.columns
        batch = columns.batch
        batch.clear()
        batch.buf = buf
        columns.topic_index.clear()
        pos = self._pos
        count = 0
        retained_count = body_bytes = topic_start = topic_size = topic = 0
        while count < batch.capacity and self._packet_end <= end:
            first = buf[pos]
            at = self._body_start
            fault = self._find_fault(buf, first, at, self._packet_end)
            if fault:
                if count == 0:
                    self._fail(fault)
                break
            size = octets.read_u16(buf, at)
            at += 2
            if count == 0 or size != topic_size or not octets.equal_bytes(buf, at, buf, topic_start, size):
                topic = self._intern_topic(buf, at, size)
            topic_start = at
            topic_size = size
            at += size
            batch.tag[count] = octets.read_u16(buf, at) if first & 0x02 else 0
            at += first & 0x02  # a packet identifier has two bytes
            batch.route_index[count] = topic
            batch.body_start[count] = at
            batch.body_end[count] = self._packet_end
            body_bytes += self._packet_end - at
            batch.flag[count] = _FLAG_MARK | (first >> 1) & 3 | (_FLAG_RETAIN if first & 1 else 0)
            retained_count += first & 1
            count += 1
            pos = self._packet_end
            if pos >= end or buf[pos] >> 4 != 3 or not self._read_next_header(buf, pos, end):
                break
        batch.count = count
        batch.retained_count = retained_count
        columns.body_bytes = body_bytes
        self._pos = pos
        return _PUBLISHES

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
        """Return which row of `_FAULTS` the PUBLISH with its body in [at, end) is."""
        qos = (first >> 1) & 3
        if qos >= 2:
            return _QOS_2 if qos == 2 else _BAD_QOS
        if qos == 0 and first & 0x08:
            return _BAD_DUP
        topic_end = at + 2 + octets.read_u16(buf, at) if at + 2 <= end else at + 3
        if topic_end + 2 * qos > end:
            return _SHORT
        if topic_end == at + 2:
            return _EMPTY_TOPIC
        if qos and not octets.read_u16(buf, topic_end):
            return _NO_ID
        return _SOUND

    def _fail(self, fault: int) -> None:
        error, clause, reason = _FAULTS[fault]
        raise error(clause, reason)

    def _intern_topic(self, buf: bytes | bytearray | memoryview, start: int, size: int) -> int:
        """Return the index of the topic among the batch's distinct ones."""
        topics = self.columns.batch.topics
        topic_index = self.columns.topic_index
        topic = self._topic
        if len(topic) != size or not octets.starts_with(buf, start, topic):
            topic = octets.read_bytes(buf, start, start + size)
            self._topic = topic if size <= _TOPIC_KEPT_BYTES_MAX else b""
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
        """Decode PUBACK packets up to the first other one or full columns."""
        packet_ids = self.columns.packet_ids
        capacity = len(packet_ids)
        pos = self._pos
        count = 0
        while count < capacity and pos + 4 <= end and buf[pos] == 0x40 and buf[pos + 1] == 2:
            packet_ids[count] = octets.read_u16(buf, pos + 2)
            if not packet_ids[count]:
                break
            count += 1
            pos += 4
        if count == 0:
            raise MalformedPacketError("MQTT-4.8.0-1", "a PUBACK is not two bytes of a packet identifier")
        self.columns.ack_count = count
        self._pos = pos
        return _ACKS

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


def encode_pubacks(columns: RunColumns, count: int) -> bytes:
    """Return one PUBACK for each message at QoS 1 among the first `count` of the run, in their order."""
    batch = columns.batch
    out = columns.pubacks
    size = 0
    for i in range(count):
        if batch.flag[i] & 1:
            out[size] = 0x40
            out[size + 1] = 2
            octets.write_u16(out, size + 2, batch.tag[i])
            size += 4
    return octets.read_bytes(out, 0, size)
