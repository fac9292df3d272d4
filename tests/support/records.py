"""Records as tests write them, and what RocketMQ's consume queue holds of each.

Source: docs/storage-format.md, "Record".
"""

from __future__ import annotations

from core import octets
from core.properties import TAGS, decode_properties
from core.store.layout import CRC_PROPERTY_BYTES, HOST_V4_BYTES, RECORD_BYTES_MIN, TOPIC_V1_BYTES_MAX
from core.store.record_codec import Record
from core.store.record_write import host_flags, magic_of, write_crc, write_fixed, write_topic

SCHEDULE_TOPIC = b"SCHEDULE_TOPIC_XXXX"
DELAY_LEVEL = b"DELAY"
DELAY_S_BY_LEVEL = (0, 1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)


def encode_record(record: Record, *, with_crc: bool) -> bytes:
    """Return the bytes of `record`; `with_crc` adds the property `__CRC32#`."""
    properties_size = len(record.properties) + (CRC_PROPERTY_BYTES if with_crc else 0)
    topic_size = len(record.topic)
    size = RECORD_BYTES_MIN + len(record.body) + topic_size + properties_size
    size += (topic_size > TOPIC_V1_BYTES_MAX) + len(record.born_host) + len(record.store_host) - 2 * HOST_V4_BYTES
    dst = bytearray(size)
    at = write_fixed(
        dst,
        0,
        magic_of(topic_size),
        octets.crc32(record.body, 0, len(record.body)),
        record.queue_id,
        record.flag,
        record.queue_offset,
        record.physical_offset,
        record.sys_flag | host_flags(record.born_host, record.store_host),
        record.born_ms,
        record.born_host,
        record.store_ms,
        record.store_host,
        record.reconsume_times,
        record.prepared_offset,
    )
    octets.write_u32(dst, 0, size)
    octets.write_u32(dst, at, len(record.body))
    at = octets.put_bytes(dst, at + 4, record.body)
    at = write_topic(dst, at, record.topic)
    octets.write_u16(dst, at, properties_size)
    at = octets.put_bytes(dst, at + 2, record.properties)
    if with_crc:
        at = write_crc(dst, 0, at)
    return bytes(dst)


def tags_code(properties: bytes) -> int:
    """Return RocketMQ's tags code of a record: Java's hash of the property TAGS, 0 without one."""
    tags = decode_properties(properties).get(TAGS, b"")
    code = 0
    units = tags.decode("utf-8", "replace").encode("utf-16-be")
    for at in range(0, len(units), 2):
        code = (code * 31 + octets.read_u16(units, at)) & 0xFFFFFFFF
    return code - 0x1_0000_0000 if code & 0x8000_0000 else code


def entry_code(record: Record) -> int:
    """Return what RocketMQ's consume queue holds beside a record's place: its tags code; when it is due, if delayed."""
    level = decode_properties(record.properties).get(DELAY_LEVEL, b"")
    if record.topic == SCHEDULE_TOPIC and level.isdigit() and int(level) > 0:
        return record.store_ms + 1000 * DELAY_S_BY_LEVEL[min(int(level), len(DELAY_S_BY_LEVEL) - 1)]
    return tags_code(record.properties)
