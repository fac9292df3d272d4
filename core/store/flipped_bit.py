"""Find the one bit that makes a damaged record right: a CRC tells where it is, where only one is wrong.

The CRC of what was changed and the CRC that was stored differ by a pattern that follows from how far the wrong bit is
from the end of what is checked. So the pattern is moved back byte by byte until it is that of a bit in the last byte.
"""

from __future__ import annotations

from core import octets
from core.properties import CRC
from core.store.layout import CRC_PROPERTY_BYTES

_POLYNOMIAL = 0xEDB88320
_TOP_BIT = 0x80000000  # of the CRC; records are stored without it
_NAME = CRC + b"\x01"  # ten digits follow, the lowest first


def _table_entry(value: int) -> int:
    for _ in range(8):
        value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
    return value


_TABLE = [_table_entry(octet) for octet in range(256)]
_OCTET_BY_TOP = {entry >> 24: octet for octet, entry in enumerate(_TABLE)}
_BIT_BY_PATTERN = {_TABLE[1 << bit]: bit for bit in range(8)}


def repairs(record: bytes) -> list[bytes]:
    """Return what a record that ends with `__CRC32#` may have been before one bit of it was flipped.

    Each has a right checksum; whether it is a record at all is for the caller to say.
    """
    end = len(record) - CRC_PROPERTY_BYTES
    if end <= 0:
        return []
    found = [_flip(record, 8 * end + bit) for bit in range(8 * CRC_PROPERTY_BYTES)]
    found = [made for made in found if _stored_crc(made) == octets.crc32(made, 0, end)]
    stored = _stored_crc(record)
    if stored >= 0:
        wrong = octets.crc32(record, 0, end) ^ stored
        for pattern in (wrong, wrong | _TOP_BIT):
            found += [_flip(record, place) for place in _places_of(pattern, end)]
    return found


def _places_of(pattern: int, end: int) -> list[int]:
    """Return the bits, numbered from the start, whose flipping changes the CRC of `end` bytes by `pattern`."""
    places: list[int] = []
    for at in range(end - 1, -1, -1):
        bit = _BIT_BY_PATTERN.get(pattern)
        if bit is not None:
            places.append(8 * at + bit)
        octet = _OCTET_BY_TOP[pattern >> 24]
        pattern = (pattern ^ _TABLE[octet]) << 8 & 0xFFFFFFFF | octet
    return places


def _flip(record: bytes, place: int) -> bytes:
    made = bytearray(record)
    made[place // 8] ^= 1 << place % 8
    return bytes(made)


def _stored_crc(record: bytes) -> int:
    """Return the number in the property at the record's end, or -1 where that does not stand there."""
    end = record[len(record) - CRC_PROPERTY_BYTES :]
    digits = end[len(_NAME) : -1]
    value = int(digits[::-1]) if end.startswith(_NAME) and end[-1:] == b"\x02" and digits.isdigit() else -1
    return value if value < _TOP_BIT else -1
