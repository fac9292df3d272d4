"""Find chosen properties in the records of a batch, and gather byte ranges into one buffer, for Arrow's columns."""

from __future__ import annotations

from typing import Protocol

from core import octets

_KEY_END = 0x01
_VALUE_END = 0x02
_COMMA = 0x2C


class IntColumn(Protocol):
    """A buffer of 32-bit integers: an array, a memory view or a numpy array."""

    def __len__(self) -> int:
        """Return the number of places."""

    def __getitem__(self, place: int, /) -> int:
        """Return the integer at `place`."""

    def __setitem__(self, place: int, value: int, /) -> None:
        """Put `value` at `place`."""


def find_properties(  # noqa: PLR0917 - compiled: positional
    buf: bytes | bytearray | memoryview,
    starts: IntColumn,
    ends: IntColumn,
    count: int,
    names: bytes,
    name_ends: IntColumn,
    value_starts: IntColumn,
    value_ends: IntColumn,
) -> None:
    """Write where each record has the values of the properties `names`, which stand end to end up to `name_ends`.

    The value of name k in record i is at `value_starts[k * count + i]`; both positions are 0 where it has none. The
    last of equal names wins; a piece without a separator is no property.
    """
    for place in range(len(value_starts)):
        value_starts[place] = 0
        value_ends[place] = 0
    for i in range(count):
        pos = starts[i]
        end = ends[i]
        while pos < end:
            stop = octets.find_byte(buf, _VALUE_END, pos, end)
            if stop < 0:
                stop = end
            key_end = octets.find_byte(buf, _KEY_END, pos, stop)
            if key_end >= 0:
                which = _which_name(buf, pos, key_end - pos, names, name_ends)
                if which >= 0:
                    value_starts[which * count + i] = key_end + 1
                    value_ends[which * count + i] = stop
            pos = stop + 1


def _which_name(buf: bytes | bytearray | memoryview, start: int, size: int, names: bytes, name_ends: IntColumn) -> int:
    at = 0
    for which in range(len(name_ends)):
        if name_ends[which] - at == size and octets.equal_bytes(names, at, buf, start, size):
            return which
        at = name_ends[which]
    return -1


def count_items(
    buf: bytes | bytearray | memoryview,
    starts: IntColumn,
    ends: IntColumn,
    count: int,
    into: IntColumn,
) -> None:
    """Write how many pieces between commas each range has; an empty range has none."""
    for i in range(count):
        pos = starts[i]
        end = ends[i]
        items = 1 if end > pos else 0
        pos = octets.find_byte(buf, _COMMA, pos, end)
        while pos >= 0:
            items += 1
            pos = octets.find_byte(buf, _COMMA, pos + 1, end)
        into[i] = items


def gather(
    buf: bytes | bytearray | memoryview,
    starts: IntColumn,
    ends: IntColumn,
    count: int,
    offsets: IntColumn,
) -> bytearray:
    """Return the ranges end to end, and write where each begins: `offsets` has `count` + 1 places."""
    total = 0
    for i in range(count):
        offsets[i] = total
        total += ends[i] - starts[i]
    offsets[count] = total
    data = bytearray(total)
    out = data  # the compiled code's view of it
    for i in range(count):
        octets.copy_bytes(out, offsets[i], buf, starts[i], ends[i] - starts[i])
    return data
