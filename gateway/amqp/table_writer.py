"""Write field tables of values as JSON has them, and moments, with RabbitMQ's types and all of a number.

Values that were read from a table go back as they were.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from datetime import datetime

INT_MAX = (1 << 63) - 1  # of `l`, a signed number of 64 bits
NAME_BYTES_MAX = 255  # a short string
_U32 = struct.Struct(">I")
_INT = struct.Struct(">q")
_DOUBLE = struct.Struct(">d")
_TIME = struct.Struct(">Q")  # seconds


class RawValue(bytes):
    """A value as it stands in a table, its type first."""


def encode_table(table: Mapping[str, object]) -> bytes:
    """Return a table with its length.

    Raises:
        ValueError: A name is too long, or a number too large.
        TypeError: A value is of no type that a table has.
    """
    entries = encode_entries(table)
    return _U32.pack(len(entries)) + entries


def encode_entries(table: Mapping[str, object]) -> bytes:
    """Return the names and values of a table; errors as `encode_table`."""
    parts = []
    for name, value in table.items():
        encoded = name.encode(errors="replace")
        if len(encoded) > NAME_BYTES_MAX:
            raise ValueError(f"a name in a table has {len(encoded)} bytes, more than {NAME_BYTES_MAX}")
        parts += [bytes((len(encoded),)), encoded, _encode_value(value)]
    return b"".join(parts)


def encode_items(values: Iterable[object]) -> bytes:
    """Return the values of an array; errors as `encode_table`."""
    return b"".join(map(_encode_value, values))


def _encode_value(value: object) -> bytes:
    if value is None:
        return b"V"
    if isinstance(value, RawValue):
        return value
    if isinstance(value, bool):
        return b"t\1" if value else b"t\0"
    if isinstance(value, int | float):
        return _encode_number(value)
    if isinstance(value, datetime):
        return b"T" + _TIME.pack(int(value.timestamp()))
    if isinstance(value, str):
        kind, encoded = b"S", value.encode(errors="replace")
    elif isinstance(value, Mapping):
        kind, encoded = b"F", encode_entries(value)
    elif isinstance(value, list):
        kind, encoded = b"A", encode_items(value)
    else:
        raise TypeError(f"a table has no values of type {type(value).__name__}")
    return kind + _U32.pack(len(encoded)) + encoded


def _encode_number(value: float | int) -> bytes:  # noqa: PYI041  # integers are told from floats
    if isinstance(value, float):
        return b"d" + _DOUBLE.pack(value)
    if not -INT_MAX - 1 <= value <= INT_MAX:
        raise ValueError(f"{value} is too large for a table")
    return b"l" + _INT.pack(value)
