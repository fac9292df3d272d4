"""Variable byte integers, written into a buffer: seven bits in a byte, the lowest first.

What compiled modules use is in varint.pxd.

Source: section 1.5.5 of MQTT 5.
"""

from __future__ import annotations

from core import octets


def size_of(value: int) -> int:
    """Return how many bytes `put` writes for `value` (from 0 up to 268,435,455)."""
    if value < 0x80:
        return 1
    if value < 0x4000:
        return 2
    return 3 if value < 0x20_0000 else 4


def put(out: bytearray | memoryview, pos: int, value: int) -> int:
    """Write `value` (at least 0) at `pos`; return the position after it.

    Raises:
        IndexError: It does not fit in `out`.
    """
    while value >= 0x80:
        octets.write_u8(out, pos, value & 0x7F | 0x80)
        value >>= 7
        pos += 1
    octets.write_u8(out, pos, value)
    return pos + 1
