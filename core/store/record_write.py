"""One record of the commit log: write its parts in place.

The format is RocketMQ's, byte for byte. A position is where a part's first byte stands in the buffer of its segment.

Source: docs/storage-format.md, "Record".
"""

from __future__ import annotations

from core import octets
from core.properties import CRC
from core.store.layout import (
    CRC_PROPERTY_BYTES,
    HOST_V6_BYTES,
    MAGIC_V1,
    MAGIC_V2,
    SYS_BORN_V6,
    SYS_FLAG_AT,
    SYS_STORE_V6,
    TOPIC_V1_BYTES_MAX,
    UNIT_BEGINS,
    UNIT_ENDS,
    UNIT_SHIFT,
)

_MAGIC_V1 = MAGIC_V1
_MAGIC_V2 = MAGIC_V2
_TOPIC_V1_BYTES_MAX = TOPIC_V1_BYTES_MAX
_SYS_BORN_V6 = SYS_BORN_V6
_SYS_STORE_V6 = SYS_STORE_V6
_HOST_V6_BYTES = HOST_V6_BYTES
_CRC_NAME = CRC + b"\x01"
_CRC_BYTES = CRC_PROPERTY_BYTES
_SYS_FLAG_AT = SYS_FLAG_AT
_UNIT_BEGINS = UNIT_BEGINS
_UNIT_ENDS = UNIT_ENDS
_UNIT_SHIFT = UNIT_SHIFT


def write_fixed(
    dst: bytearray | memoryview,
    pos: int,
    magic: int,
    body_crc: int,
    queue_id: int,
    flag: int,
    queue_offset: int,
    physical_offset: int,
    sys_flag: int,
    born_ms: int,
    born_host: bytes,
    store_ms: int,
    store_host: bytes,
    reconsume_times: int,
    prepared_offset: int,
) -> int:
    """Write all fields before the body's length, but the size, which `finish_record` writes last.

    Returns:
        The position of the body's length.
    """
    octets.write_u32(dst, pos + 4, magic)
    octets.write_u32(dst, pos + 8, body_crc)
    octets.write_u32(dst, pos + 12, queue_id)
    octets.write_u32(dst, pos + 16, flag)
    octets.write_u64(dst, pos + 20, queue_offset)
    octets.write_u64(dst, pos + 28, physical_offset)
    octets.write_u32(dst, pos + 36, sys_flag)
    octets.write_u64(dst, pos + 40, born_ms)
    at = octets.put_bytes(dst, pos + 48, born_host)
    octets.write_u64(dst, at, store_ms)
    at = octets.put_bytes(dst, at + 8, store_host)
    octets.write_u32(dst, at, reconsume_times)
    octets.write_u64(dst, at + 4, prepared_offset)
    return at + 12


def write_topic(dst: bytearray | memoryview, at: int, topic: bytes) -> int:
    """Write the topic with its length, one byte or two as `magic_of` says; return the position after it."""
    size = len(topic)
    if size > _TOPIC_V1_BYTES_MAX:
        octets.write_u16(dst, at, size)
        return octets.put_bytes(dst, at + 2, topic)
    octets.write_u8(dst, at, size)
    return octets.put_bytes(dst, at + 1, topic)


def write_crc(dst: bytearray | memoryview, start: int, at: int) -> int:
    """Write the property `__CRC32#` over [start, at) at `at`, where all else stands; return the position after it."""
    value = octets.crc32(dst, start, at)
    at = octets.put_bytes(dst, at, _CRC_NAME)
    for _ in range(10):
        octets.write_u8(dst, at, 48 + value % 10)
        value //= 10
        at += 1
    octets.write_u8(dst, at, 2)
    return at + 1


def end_part(dst: bytearray | memoryview, start: int) -> None:
    """Make the record at `start` the last of its unit; a record that also begins the unit is in none then."""
    sys_flag = octets.read_u32(dst, start + _SYS_FLAG_AT)
    part = 0 if sys_flag >> _UNIT_SHIFT == _UNIT_BEGINS else _UNIT_ENDS
    octets.write_u32(dst, start + _SYS_FLAG_AT, part << _UNIT_SHIFT | (sys_flag & ((1 << _UNIT_SHIFT) - 1)))
    write_crc(dst, start, start + octets.read_u32(dst, start) - _CRC_BYTES)


def magic_of(topic_size: int) -> int:
    """Return the magic number of records with a topic of that many bytes."""
    return _MAGIC_V2 if topic_size > _TOPIC_V1_BYTES_MAX else _MAGIC_V1


def host_flags(born_host: bytes, store_host: bytes) -> int:
    """Return the sysFlag bits that say which hosts are IPv6."""
    born = _SYS_BORN_V6 if len(born_host) == _HOST_V6_BYTES else 0
    return born | (_SYS_STORE_V6 if len(store_host) == _HOST_V6_BYTES else 0)
