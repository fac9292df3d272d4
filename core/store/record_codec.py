"""Whole records as values, for what happens rarely: the data path works on columns.

Source: docs/storage-format.md, "Record".
"""

from __future__ import annotations

from dataclasses import dataclass

from core import octets
from core.errors import CorruptRecordError
from core.message import StoredBatch
from core.store.layout import (
    HOST_V4_BYTES,
    HOST_V6_BYTES,
    MAGIC_V2,
    SYS_BORN_V6,
    SYS_STORE_V6,
)
from core.store.record import fill_columns, is_intact


@dataclass(frozen=True)
class Record:
    """All of one record, as values."""

    topic: bytes
    queue_id: int
    queue_offset: int
    physical_offset: int
    body: bytes
    properties: bytes  # encoded, with `__CRC32#` where it has one
    flag: int = 0
    sys_flag: int = 0
    born_ms: int = 0
    born_host: bytes = bytes(HOST_V4_BYTES)
    store_ms: int = 0
    store_host: bytes = bytes(HOST_V4_BYTES)
    reconsume_times: int = 0
    prepared_offset: int = 0


def decode_record(buf: bytes | bytearray | memoryview, pos: int, base: int) -> Record:
    """Return the record at `pos` of the segment `buf` that starts at `base`.

    Raises:
        CorruptRecordError: No record stands there, or a checksum is wrong.
    """
    columns = StoredBatch(1)
    if not fill_columns(columns, 0, buf, pos, base):
        raise CorruptRecordError(base + pos, "not a record")
    if not is_intact(columns, 0, buf):
        raise CorruptRecordError(base + pos, "wrong checksum")
    sys_flag = columns.sys_flag[0]
    store_at = 56 + (12 if sys_flag & SYS_BORN_V6 else 0)
    hosts_end = store_at + 8 + (HOST_V6_BYTES if sys_flag & SYS_STORE_V6 else HOST_V4_BYTES)
    raw = bytes(buf[pos : columns.record_end[0]])
    topic_end = columns.properties_start[0] - pos - 2
    topic_start = columns.body_end[0] - pos + (2 if octets.read_u32(raw, 4) == MAGIC_V2 else 1)
    return Record(
        topic=raw[topic_start:topic_end],
        queue_id=octets.read_i32(raw, 12),
        queue_offset=columns.queue_offset[0],
        physical_offset=columns.physical_offset[0],
        body=raw[columns.body_start[0] - pos : columns.body_end[0] - pos],
        properties=raw[columns.properties_start[0] - pos :],
        flag=columns.flag[0],
        sys_flag=sys_flag,
        born_ms=columns.born_ms[0],
        born_host=raw[48:store_at],
        store_ms=columns.store_ms[0],
        store_host=raw[store_at + 8 : hosts_end],
        reconsume_times=columns.attempt[0] - 1,
        prepared_offset=octets.read_i64(raw, hosts_end + 4),
    )
