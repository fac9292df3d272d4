"""Big-endian reads at a position of a buffer, each checked once.

Compiled modules take the inline C forms of the same names from `integers.pxd`; both raise IndexError where a position
lies outside its buffer.
"""

from __future__ import annotations


def read_u16(buf: bytes | bytearray | memoryview, pos: int) -> int:
    """Return the unsigned 16-bit integer at `pos`."""
    return _read(buf, pos, 2)


def read_u32(buf: bytes | bytearray | memoryview, pos: int) -> int:
    """Return the unsigned 32-bit integer at `pos`."""
    return _read(buf, pos, 4)


def _read(buf: bytes | bytearray | memoryview, pos: int, size: int) -> int:
    if pos < 0 or pos + size > len(buf):
        raise IndexError("outside a buffer")
    return int.from_bytes(buf[pos : pos + size], "big")
