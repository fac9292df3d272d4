"""Runs of PUBLISH packets and of their acknowledgements, as columns, and the answers to them.

One `RunColumns` serves all connections of a door: a run is decoded into it, used and forgotten before the next one.
"""

from __future__ import annotations

from array import array

from core import octets
from core.message import FLAG_BARE, FLAG_EXPIRES, FLAG_MARK, PublishBatch
from gateway.mqtt.publish_properties import MALFORMED, PublishProperties, extra_bytes_max

RUN_COUNT_MAX = 1024  # messages in a batch: enough to make the cost of a batch vanish
NEAR_BYTES_MAX = 2048  # a read up to this size is decoded from a copy: a view of it would cost more
_ACK_BYTES_MAX = 5  # type, length, packet identifier, reason code
_EXTRA_BYTES_MIN = 4096  # to begin with, a page; it grows
_PUBACK = 4
_FAILURE = 0x80  # reason codes from here on say that something was not done
_FLAG_MARK = FLAG_MARK
_FLAG_BARE = FLAG_BARE
_FLAG_EXPIRES = FLAG_EXPIRES
_MALFORMED = MALFORMED


class RunColumns:
    """Where a door's connections decode their runs: made once, the content valid until the next `read_next`."""

    def __init__(self, capacity: int = RUN_COUNT_MAX) -> None:
        self.batch = PublishBatch(capacity)
        self.packet_ids = array("i", bytes(4 * capacity))
        self.codes = array("i", bytes(4 * capacity))  # reason codes: of what acknowledges, or for what is acknowledged
        self.ack_count = 0
        self.ack_type = _PUBACK
        self.ping_count = 0
        self.exact_count = 0  # messages at QoS 2 in the batch
        self.answer_count = 0  # packets that `encode_acks` returned last
        self.failure_count = 0  # those of them that say why a message is not taken
        self.body_bytes = 0  # of all messages of the batch
        self.topic_index: dict[bytes, int] = {}
        self.near: bytearray | memoryview = memoryview(bytearray(NEAR_BYTES_MAX))
        self.acks = bytearray(_ACK_BYTES_MAX * capacity)  # one for each message at most
        self.properties = PublishProperties()
        self._extra: bytearray | memoryview = bytearray(_EXTRA_BYTES_MIN)  # the batch's own encoded properties
        self._extra_used = 0
        self._extra_rows = 0  # rows of the batch that may have some
        self._block_start = 0  # of the message before
        self._block_size = 0
        self.alias = 0  # of the message that was read last

    def begin(self) -> None:
        """Forget the run before."""
        batch = self.batch
        for i in range(self._extra_rows):
            batch.extra_start[i] = batch.extra_end[i] = 0
        self._extra_rows = self._extra_used = self._block_size = 0
        batch.clear()
        self.topic_index.clear()

    def read_block(self, buf: bytes | bytearray | memoryview, at: int, end: int, i: int) -> int:
        """Read the properties at `at`, whose length comes first, of message `i`; `batch.flag` is set, but for the QoS.

        Returns:
            The position after them, or a fault as `PublishProperties.read` tells it, negative.
        """
        size = shift = 0
        pos = at
        while True:
            if pos >= end or shift > 21:
                return -_MALFORMED
            size |= (buf[pos] & 0x7F) << shift
            shift += 7
            pos += 1
            if buf[pos - 1] < 0x80:
                break
        if pos + size > end or (pos - at > 1 and not buf[pos - 1]):
            return -_MALFORMED
        batch = self.batch
        self.alias = 0
        batch.flag[i] = _FLAG_MARK | _FLAG_BARE
        batch.extra_start[i] = batch.extra_end[i] = 0
        self._extra_rows = i + 1
        if size == 0:
            return pos
        properties = self.properties
        if size == self._block_size and octets.equal_bytes(buf, pos, buf, self._block_start, size):
            batch.extra_start[i] = batch.extra_start[i - 1]
            batch.extra_end[i] = batch.extra_end[i - 1]
        else:
            fault = properties.read(buf, pos, pos + size)
            if fault:
                return -fault
            self._write_extra(buf, pos, pos + size, i)
        self._block_start = pos
        self._block_size = size
        self.alias = properties.alias
        if batch.extra_end[i] > batch.extra_start[i]:
            batch.flag[i] = _FLAG_MARK | (_FLAG_EXPIRES if properties.expiry_s >= 0 else 0)
        return pos + size

    def _write_extra(self, buf: bytes | bytearray | memoryview, pos: int, end: int, i: int) -> None:
        need = self._extra_used + extra_bytes_max(end - pos)
        if need > len(self._extra):
            larger = bytearray(2 * need)
            octets.copy_bytes(larger, 0, self._extra, 0, self._extra_used)
            self._extra = larger
        self.batch.extra_start[i] = self._extra_used
        self._extra_used = self.properties.write_extra(buf, end, self._extra, self._extra_used)
        self.batch.extra_end[i] = self._extra_used

    def forget_codes(self) -> None:
        """Let no reason code be told, as before MQTT 5."""
        for i in range(self.ack_count):
            self.codes[i] = 0

    def hand_on_extra(self) -> None:
        """Let the batch have its own encoded properties, where it has some."""
        if self._extra_used:
            self.batch.extra = self._extra


def encode_acks(columns: RunColumns, count: int) -> bytes:
    """Return a PUBACK for each message at QoS 1, a PUBREC for each at QoS 2, among the first `count` of the run.

    They are in the order of the messages, each with its reason code, which is 0 before MQTT 5.
    """
    batch = columns.batch
    out = columns.acks
    size = 0
    columns.answer_count = columns.failure_count = 0
    for i in range(count):
        qos = batch.flag[i] & 3
        if qos:
            out[size] = 0x40 if qos == 1 else 0x50
            out[size + 1] = 2
            octets.write_u16(out, size + 2, batch.tag[i])
            if columns.codes[i]:
                out[size + 1] = 3
                out[size + 4] = columns.codes[i]
                columns.failure_count += columns.codes[i] >= _FAILURE
                size += 1
            columns.answer_count += 1
            size += 4
    return octets.read_bytes(out, 0, size)


def encode_told_acks(columns: RunColumns, count: int, words: dict[int, bytes], bytes_max: int) -> bytes:
    """Return what `encode_acks` does, with properties that say why where a code is told, for clients of MQTT 5.

    Args:
        columns: The run.
        count: How many of its messages.
        words: The encoded properties by code, with their length, under 125 bytes; codes that are not there have none.
        bytes_max: The largest packet that the client takes, 0 for any: properties are left out for it.
    """
    batch = columns.batch
    out = bytearray()
    for i in range(count):
        qos = batch.flag[i] & 3
        if not qos:
            continue
        code = columns.codes[i]
        said = bytes((code,)) + words.get(code, b"") if code else b""
        if 0 < bytes_max < 4 + len(said):
            said = said[:1]
        out += bytes((0x40 if qos == 1 else 0x50, 2 + len(said))) + batch.tag[i].to_bytes(2, "big") + said
    return bytes(out)


def encode_id_packets(columns: RunColumns, first: int) -> bytes:
    """Return a packet with the first byte `first` for each packet identifier in the columns, with its reason code.

    Those with a negative code are left out.
    """
    out = columns.acks
    size = 0
    for i in range(columns.ack_count):
        if columns.codes[i] < 0:
            continue
        out[size] = first
        out[size + 1] = 2
        octets.write_u16(out, size + 2, columns.packet_ids[i])
        if columns.codes[i]:
            out[size + 1] = 3
            out[size + 4] = columns.codes[i]
            size += 1
        size += 4
    return octets.read_bytes(out, 0, size)
