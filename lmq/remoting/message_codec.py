"""Records as pull answers carry them, and the bodies of batches.

A pull answer's body is records end to end, as stored; light queues' records say in their properties which numbers
they have there.

Source: docs/storage-format.md, "Record".
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from lmq.remoting.errors import RecordError

MAGIC = 0xDAA320A7
MAGIC_LONG_TOPIC = 0xDAA320AB
RECORD_BYTES_MIN = 91  # a record without topic, properties and body
BODY_BYTES_MAX = 64 << 20  # of an inflated body: no more is believed
SYS_COMPRESSED = 0x1
SYS_COMPRESSION_MASK = 0x700
SYS_ZLIB = (0x0, 0x300)
SYS_BORN_IPV6 = 0x10
SYS_STORE_IPV6 = 0x20

INNER_MULTI_DISPATCH = b"INNER_MULTI_DISPATCH"  # names of the light queues, joined by commas
INNER_MULTI_QUEUE_OFFSET = b"INNER_MULTI_QUEUE_OFFSET"  # their offsets, in the same order

_START = struct.Struct(">IIIIiqqIq")  # size, magic, crc, queue id, flag, queue offset, physical offset, sys flag, born
_BATCH_ITEM = struct.Struct(">IIIiI")
_U16 = struct.Struct(">H")
_U32 = struct.Struct(">I")
_U64 = struct.Struct(">q")


@dataclass(slots=True)
class Record:
    """One message as the broker stored it; `body` is inflated, unless it was asked for as stored."""

    topic: bytes
    queue_id: int
    queue_offset: int
    physical_offset: int
    flag: int
    sys_flag: int
    born_ms: int
    born_host: bytes
    store_ms: int
    store_host: bytes
    reconsume_times: int
    body: bytes
    properties: dict[bytes, bytes]

    def light_offset(self, queue: bytes) -> int | None:
        """Return the message's number in the light queue `queue`, or None where the record does not say."""
        names = self.properties.get(INNER_MULTI_DISPATCH, b"").split(b",")
        offsets = self.properties.get(INNER_MULTI_QUEUE_OFFSET, b"").split(b",")
        if queue not in names or len(names) != len(offsets):
            return None
        text = offsets[names.index(queue)]
        return int(text) if text.isdigit() else None


def decode_records(data: bytes | memoryview) -> Iterator[Record]:
    """Yield the records in `data`, which holds nothing else.

    Raises:
        RecordError: At the first that is malformed.
    """
    view = memoryview(data)
    pos = 0
    while pos < len(view):
        size = _read(_U32, view, pos, pos)
        if size < RECORD_BYTES_MIN or pos + size > len(view):
            raise RecordError("impossible size", pos)
        yield _decode_record(view[pos : pos + size], pos)
        pos += size


def _read(kind: struct.Struct, view: memoryview, at: int, pos: int) -> int:
    try:
        value: int = kind.unpack_from(view, at)[0]
    except struct.error as error:
        raise RecordError("a field past the end", pos) from error
    return value


def decode_stored(data: bytes) -> Record:
    """Return the one record that is `data`, with its body as stored: a compressed one stays so.

    Raises:
        RecordError: It is malformed.
    """
    if len(data) < RECORD_BYTES_MIN:
        raise RecordError("impossible size", 0)
    return _decode_record(memoryview(data), 0, inflates=False)


def _decode_record(view: memoryview, pos: int, *, inflates: bool = True) -> Record:
    size, magic, crc, queue_id, flag, queue_offset, physical_offset, sys_flag, born_ms = _START.unpack_from(view)
    if magic not in {MAGIC, MAGIC_LONG_TOPIC}:
        raise RecordError("no such magic number", pos)
    at = _START.size
    born_end = at + (20 if sys_flag & SYS_BORN_IPV6 else 8)
    store_host = born_end + 8
    store_end = store_host + (20 if sys_flag & SYS_STORE_IPV6 else 8)
    body_start = store_end + 16
    body_end = body_start + _read(_U32, view, store_end + 12, pos)
    topic_start = body_end + (1 if magic == MAGIC else 2)
    topic_bytes = _read(_U16, view, body_end, pos)
    topic_end = topic_start + (topic_bytes >> 8 if magic == MAGIC else topic_bytes)
    properties_end = topic_end + 2 + _read(_U16, view, topic_end, pos)
    if properties_end != size:
        raise RecordError("the parts do not add up to the size", pos)
    stored = bytes(view[body_start:body_end])
    if crc and zlib.crc32(stored) & 0x7FFFFFFF != crc:
        raise RecordError("the body's check sum is wrong", pos)
    return Record(
        topic=bytes(view[topic_start:topic_end]),
        queue_id=queue_id,
        queue_offset=queue_offset,
        physical_offset=physical_offset,
        flag=flag,
        sys_flag=sys_flag,
        born_ms=born_ms,
        born_host=bytes(view[at:born_end]),
        store_ms=_read(_U64, view, born_end, pos),
        store_host=bytes(view[store_host:store_end]),
        reconsume_times=_read(_U32, view, store_end, pos),
        body=inflate_body(stored, sys_flag, BODY_BYTES_MAX, pos) if inflates and sys_flag & SYS_COMPRESSED else stored,
        properties=decode_properties(view[topic_end + 2 : properties_end]),
    )


def inflate_body(body: bytes, sys_flag: int, bytes_max: int, pos: int = 0) -> bytes:
    """Return the body of a message that was compressed by zlib.

    Raises:
        RecordError: Another compression, damaged, or more than `bytes_max` bytes.
    """
    if sys_flag & SYS_COMPRESSION_MASK not in SYS_ZLIB:
        raise RecordError("compressed in a way that is not known here", pos)
    inflater = zlib.decompressobj()
    try:
        plain = inflater.decompress(body, bytes_max)
    except zlib.error as error:
        raise RecordError("the compressed body is damaged", pos) from error
    if not inflater.eof:
        raise RecordError("the compressed body is cut off or too large", pos)
    return plain


@dataclass(slots=True)
class BatchItem:
    """One message of a batch."""

    flag: int
    body: bytes
    properties: bytes


def encode_batch(items: Iterable[BatchItem]) -> bytes:
    """Return the body of a SEND_BATCH_MESSAGE."""
    pieces: list[bytes] = []
    for item in items:
        size = _BATCH_ITEM.size + len(item.body) + 2 + len(item.properties)
        pieces += (
            _BATCH_ITEM.pack(size, 0, 0, item.flag, len(item.body)),
            item.body,
            _U16.pack(len(item.properties)),
            item.properties,
        )
    return b"".join(pieces)


def decode_batch(body: bytes | memoryview) -> Iterator[BatchItem]:
    """Yield the messages of a SEND_BATCH_MESSAGE's body.

    Raises:
        RecordError: At the first that is malformed.
    """
    view = memoryview(body)
    pos = 0
    while pos < len(view):
        if pos + _BATCH_ITEM.size > len(view):
            raise RecordError("a message past the end", pos)
        size, _, _, flag, body_bytes = _BATCH_ITEM.unpack_from(view, pos)
        body_end = pos + _BATCH_ITEM.size + body_bytes
        properties_end = body_end + 2 + _read(_U16, view, body_end, pos)
        if properties_end != pos + size or properties_end > len(view):
            raise RecordError("the parts do not add up to the size", pos)
        yield BatchItem(
            flag, bytes(view[pos + _BATCH_ITEM.size : body_end]), bytes(view[body_end + 2 : properties_end])
        )
        pos = properties_end


def encode_properties_text(properties: Mapping[bytes, bytes]) -> str:
    """Return properties as the text that a send's header carries; names and values hold no separator."""
    return b"".join(b"%b\x01%b\x02" % pair for pair in properties.items()).decode()


def decode_properties(encoded: bytes | memoryview) -> dict[bytes, bytes]:
    """Return the properties of a record; pieces without a separator are left out, the last of equal names wins."""
    found: dict[bytes, bytes] = {}
    for piece in bytes(encoded).split(b"\x02"):
        name, separator, value = piece.partition(b"\x01")
        if separator:
            found[name] = value
    return found
