"""Check a field table before anything is made of it: every length inside its parent, nesting bounded.

Source: docs/protocols/amqp.md, "Field tables" (the dialect that RabbitMQ and pamqp speak).
"""

from __future__ import annotations

from core import octets

TABLE_DEPTH_MAX = 16  # tables and arrays inside each other; RabbitMQ's own headers need 3
_TABLE_DEPTH_MAX = TABLE_DEPTH_MAX


def fixed_size(kind: int) -> int:
    """Return the size of a value of type `kind`, -1 where a 32-bit length tells it, -2 for no type at all."""
    if kind in (0x74, 0x62, 0x42):  # t b B
        return 1
    if kind in (0x73, 0x75):  # s u
        return 2
    if kind in (0x49, 0x69, 0x66):  # I i f
        return 4
    if kind in (0x6C, 0x4C, 0x64, 0x54):  # l L d T
        return 8
    if kind == 0x44:  # D
        return 5
    if kind == 0x56:  # V
        return 0
    return -1 if kind in (0x53, 0x78, 0x41, 0x46) else -2  # S x A F


def check_value(buf: bytes | bytearray | memoryview, pos: int, end: int, depth: int) -> int:
    """Return the position after the value (type octet first) at `pos`, or -1 where it is no value or too deep."""
    if pos >= end:
        return -1
    kind = buf[pos]
    size = fixed_size(kind)
    pos += 1
    if size >= 0:
        return pos + size if pos + size <= end else -1
    if size < -1 or pos + 4 > end:
        return -1
    length = octets.read_u32(buf, pos)
    pos += 4
    if length > end - pos:
        return -1
    if kind == 0x46 and check_entries(buf, pos, pos + length, depth) < 0:
        return -1
    if kind == 0x41 and check_items(buf, pos, pos + length, depth) < 0:
        return -1
    return pos + length


def check_items(buf: bytes | bytearray | memoryview, pos: int, end: int, depth: int) -> int:
    """Return `end` if [pos, end) holds an array's values, else -1."""
    if depth >= _TABLE_DEPTH_MAX:
        return -1
    while pos < end:
        pos = check_value(buf, pos, end, depth + 1)
        if pos < 0:
            return -1
    return end


def check_entries(buf: bytes | bytearray | memoryview, pos: int, end: int, depth: int) -> int:
    """Return `end` if [pos, end) holds a table's names and values, else -1."""
    if depth >= _TABLE_DEPTH_MAX:
        return -1
    while pos < end:
        pos += 1 + buf[pos]
        pos = check_value(buf, pos, end, depth + 1)
        if pos < 0:
            return -1
    return end


def check_table(buf: bytes | bytearray | memoryview, pos: int, end: int) -> int:
    """Return the position after the table (its 32-bit length first) at `pos`, or -1 where there is none up to `end`."""
    if pos + 4 > end:
        return -1
    length = octets.read_u32(buf, pos)
    if length > end - pos - 4:
        return -1
    return check_entries(buf, pos + 4, pos + 4 + length, 0)
