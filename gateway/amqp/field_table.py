"""Check a field table before anything is made of it: every length inside its parent, nesting and fields bounded.

Source: docs/protocols/amqp.md, "Field tables" (the dialect that RabbitMQ and pamqp speak).
"""

from __future__ import annotations

import struct

from core import octets

TABLE_DEPTH_MAX = 16  # tables and arrays inside each other; RabbitMQ's own headers need 3
TABLE_FIELDS_MAX = 256  # of a table that is read; RabbitMQ's own arguments are about twenty
_TABLE_DEPTH_MAX = TABLE_DEPTH_MAX
_TABLE_FIELDS_MAX = TABLE_FIELDS_MAX

# RabbitMQ's names of the types, for its texts.
TYPE_NAMES = {
    0x74: "bool",
    0x62: "byte",
    0x42: "unsignedbyte",
    0x73: "short",
    0x75: "unsignedshort",
    0x49: "signedint",
    0x69: "unsignedint",
    0x6C: "long",
    0x4C: "long",
    0x66: "float",
    0x64: "double",
    0x44: "decimal",
    0x54: "timestamp",
    0x56: "void",
    0x53: "longstr",
    0x78: "binary",
    0x41: "array",
    0x46: "table",
}
INTEGERS = frozenset(("byte", "unsignedbyte", "short", "unsignedshort", "signedint", "unsignedint", "long"))
_FLOAT = struct.Struct(">f")
_DOUBLE = struct.Struct(">d")


class Field:
    """One value of a table: the name of its type, and the value.

    Texts, tables and arrays are the bytes that they came in, without their length; a decimal is its five bytes, void
    is None.
    """

    __slots__ = ("kind", "value")

    def __init__(self, kind: str, value: bool | float | bytes | None) -> None:
        self.kind = kind
        self.value = value

    @property
    def text(self) -> str | None:
        """The text, None where it is none; what is no UTF-8 in it is replaced."""
        return self.value.decode(errors="replace") if isinstance(self.value, bytes) and self.kind == "longstr" else None


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
        size = fixed_size(buf[pos])
        if size >= 0:  # here, as most are: a call for each costs ten times as much
            pos += 1 + size
            if pos > end:
                return -1
            continue
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
        size = fixed_size(buf[pos]) if pos < end else -2
        if size >= 0:  # as in `check_items`
            pos += 1 + size
            if pos > end:
                return -1
            continue
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


def skip_value(buf: bytes | bytearray | memoryview, pos: int) -> int:
    """Return the position after the value at `pos`, which was checked."""
    size = fixed_size(buf[pos])
    return pos + 1 + size if size >= 0 else pos + 5 + octets.read_u32(buf, pos + 1)


def has_many(buf: bytes | bytearray | memoryview, pos: int, end: int) -> bool:
    """Return whether [pos, end), which was checked, holds more fields than are read."""
    count = 0
    while pos < end:
        count += 1
        if count > _TABLE_FIELDS_MAX:
            return True
        pos = skip_value(buf, pos + 1 + buf[pos])
    return False


def read_table(buf: bytes | bytearray | memoryview, pos: int, end: int) -> dict[str, Field]:
    """Return the fields of [pos, end), which was checked; of equal names the first counts, as in RabbitMQ."""
    found: dict[str, Field] = {}
    while pos < end:
        value = pos + 1 + buf[pos]
        name = octets.read_bytes(buf, pos + 1, value).decode(errors="replace")
        pos = skip_value(buf, value)
        if name not in found:
            found[name] = Field(TYPE_NAMES[buf[value]], _read_value(buf, value, pos))
    return found


def _read_value(buf: bytes | bytearray | memoryview, pos: int, end: int) -> bool | float | bytes | None:
    kind = buf[pos]
    if kind in {0x53, 0x78, 0x41, 0x46}:  # S x A F
        return octets.read_bytes(buf, pos + 5, end)
    if kind == 0x74:  # t
        return buf[pos + 1] != 0
    if kind in {0x66, 0x64}:  # f d
        number: float = (_FLOAT if kind == 0x66 else _DOUBLE).unpack(octets.read_bytes(buf, pos + 1, end))[0]
        return number
    if kind == 0x44:  # D
        return octets.read_bytes(buf, pos + 1, end)
    if kind == 0x56:  # V
        return None
    return int.from_bytes(octets.read_bytes(buf, pos + 1, end), "big", signed=kind not in {0x42, 0x75, 0x69, 0x54})
