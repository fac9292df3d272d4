"""Copies of records for consumers: of a message that was given before, or whose receipt a client cannot make itself.

An official broker stores such a message anew on a retry topic, with one attempt more. Here it stays where it is, and
its copy says so: it has the attempts, and its receipt in `POP_CK`, which clients take as it is.

Source: docs/storage-format.md, "Record".
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from core.properties import CRC, PROPERTIES_BYTES_MAX, encode_properties

POP_CK = b"POP_CK"

_U16 = struct.Struct(">H")
_U32 = struct.Struct(">I")
_SYS_FLAG_AT = 36
_BORN_HOST_AT = 48
_BORN_IPV6 = 0x10
_STORE_IPV6 = 0x20
_MAGIC_LONG_TOPIC = 0xDAA320AB
_CRC_NAME = CRC + b"\x01"
_END = 0x02  # of a property


class RecordPlaces(NamedTuple):
    """Where in a record some of its parts lie."""

    attempts_at: int
    properties_at: int  # after their length


def find_places(record: bytes) -> RecordPlaces:
    """Return where a record, which is sound, has its attempts and its properties."""
    (sys_flag,) = _U32.unpack_from(record, _SYS_FLAG_AT)
    store_ms_at = _BORN_HOST_AT + (20 if sys_flag & _BORN_IPV6 else 8)
    attempts_at = store_ms_at + 8 + (20 if sys_flag & _STORE_IPV6 else 8)
    body_end = attempts_at + 16 + _U32.unpack_from(record, attempts_at + 12)[0]
    if _U32.unpack_from(record, 4)[0] == _MAGIC_LONG_TOPIC:
        topic_end = body_end + 2 + _U16.unpack_from(record, body_end)[0]
    else:
        topic_end = body_end + 1 + record[body_end]
    return RecordPlaces(attempts_at, topic_end + 2)


def attempts_of(record: bytes) -> int:
    """Return how often a record says that its message was tried."""
    attempts: int = _U32.unpack_from(record, find_places(record).attempts_at)[0]
    return attempts


def has_property(record: bytes, name: bytes) -> bool:
    """Return whether a record has a property."""
    properties = record[find_places(record).properties_at :]
    return properties.startswith(name + b"\x01") or b"\x02" + name + b"\x01" in properties


def write_again(record: bytes, times_before: int, receipt: bytes) -> bytes:
    """Return a record with `times_before` more attempts and a receipt of its own.

    Where the receipt makes its properties too long for the format, it is left out.
    """
    attempts_at, properties_at = find_places(record)
    properties = _without_crc(record[properties_at:])
    if properties and not properties.endswith(b"\x02"):
        properties += b"\x02"
    said = properties + encode_properties([(POP_CK, receipt)])
    properties = said if len(said) <= PROPERTIES_BYTES_MAX else properties
    (attempts,) = _U32.unpack_from(record, attempts_at)
    return b"".join(
        (
            _U32.pack(properties_at + len(properties)),
            record[4:attempts_at],
            _U32.pack((attempts + times_before) & 0x7FFFFFFF),
            record[attempts_at + 4 : properties_at - 2],
            _U16.pack(len(properties)),
            properties,
        )
    )


def _without_crc(properties: bytes) -> bytes:
    """Return properties without the checksum, which is over the record as stored and the last of them."""
    at = properties.rfind(_CRC_NAME)
    return properties[:at] if at == 0 or (at > 0 and properties[at - 1] == _END) else properties
