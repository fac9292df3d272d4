"""Big-endian reads, writes and copies at a position of a buffer, each checked once.

Compiled modules take the inline C forms of the same names from `octets.pxd`; both raise IndexError where a position
lies outside its buffer. Use as `from core import octets` and `octets.read_u32(buf, pos)`.
"""

from __future__ import annotations

import zlib

_OUTSIDE = "outside a buffer"
HAS_ZERO = 1  # what `kinds_of` finds
HAS_SEPARATOR = 2
HAS_HIGH = 4


def _check(length: int, pos: int, size: int) -> None:
    if pos < 0 or size < 0 or pos + size > length:
        raise IndexError(_OUTSIDE)


def read_u16(buf: bytes | bytearray | memoryview, pos: int) -> int:
    """Return the unsigned 16-bit integer at `pos`."""
    _check(len(buf), pos, 2)
    return int.from_bytes(buf[pos : pos + 2], "big")


def read_u32(buf: bytes | bytearray | memoryview, pos: int) -> int:
    """Return the unsigned 32-bit integer at `pos`."""
    _check(len(buf), pos, 4)
    return int.from_bytes(buf[pos : pos + 4], "big")


def read_i32(buf: bytes | bytearray | memoryview, pos: int) -> int:
    """Return the signed 32-bit integer at `pos`."""
    _check(len(buf), pos, 4)
    return int.from_bytes(buf[pos : pos + 4], "big", signed=True)


def read_i64(buf: bytes | bytearray | memoryview, pos: int) -> int:
    """Return the signed 64-bit integer at `pos`."""
    _check(len(buf), pos, 8)
    return int.from_bytes(buf[pos : pos + 8], "big", signed=True)


def read_bytes(buf: bytes | bytearray | memoryview, pos: int, end: int) -> bytes:
    """Return a copy of [pos, end)."""
    _check(len(buf), pos, end - pos)
    return bytes(buf[pos:end])


def write_u8(buf: bytearray | memoryview, pos: int, value: int) -> None:
    """Write the low 8 bits of `value` at `pos`."""
    _check(len(buf), pos, 1)
    buf[pos] = value & 0xFF


def write_u16(buf: bytearray | memoryview, pos: int, value: int) -> None:
    """Write the low 16 bits of `value` at `pos`."""
    _check(len(buf), pos, 2)
    buf[pos : pos + 2] = (value & 0xFFFF).to_bytes(2, "big")


def write_u32(buf: bytearray | memoryview, pos: int, value: int) -> None:
    """Write the low 32 bits of `value` at `pos`."""
    _check(len(buf), pos, 4)
    buf[pos : pos + 4] = (value & 0xFFFFFFFF).to_bytes(4, "big")


def write_u64(buf: bytearray | memoryview, pos: int, value: int) -> None:
    """Write the low 64 bits of `value` at `pos`."""
    _check(len(buf), pos, 8)
    buf[pos : pos + 8] = (value & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "big")


def write_decimal(buf: bytearray | memoryview, pos: int, value: int) -> int:
    """Write `value` (at least 0) as ASCII decimal digits at `pos`; return the position after them."""
    text = b"%d" % value
    _check(len(buf), pos, len(text))
    buf[pos : pos + len(text)] = text
    return pos + len(text)


def copy_bytes(
    dst: bytearray | memoryview,
    dst_pos: int,
    src: bytes | bytearray | memoryview,
    src_pos: int,
    size: int,
) -> None:
    """Copy `size` bytes from `src` at `src_pos` to `dst` at `dst_pos`; the two must not overlap."""
    _check(len(dst), dst_pos, size)
    _check(len(src), src_pos, size)
    dst[dst_pos : dst_pos + size] = src[src_pos : src_pos + size]


def put_bytes(dst: bytearray | memoryview, pos: int, src: bytes) -> int:
    """Copy the whole of `src`, a bytes object, to `pos`; return the position after it."""
    size = len(src)
    _check(len(dst), pos, size)
    dst[pos : pos + size] = src
    return pos + size


def starts_with(buf: bytes | bytearray | memoryview, pos: int, prefix: bytes) -> bool:
    """Return whether `prefix`, a bytes object, stands at `pos`; False where `buf` ends before it does."""
    return pos >= 0 and bytes(buf[pos : pos + len(prefix)]) == prefix


def equal_bytes(
    left: bytes | bytearray | memoryview,
    left_pos: int,
    right: bytes | bytearray | memoryview,
    right_pos: int,
    size: int,
) -> bool:
    """Return whether `size` bytes are the same in both; False where either ends before them."""
    if left_pos < 0 or right_pos < 0 or left_pos + size > len(left) or right_pos + size > len(right):
        return False
    return bytes(left[left_pos : left_pos + size]) == bytes(right[right_pos : right_pos + size])


def fetch_ahead(buf: bytes | bytearray | memoryview, pos: int) -> None:
    """Tell the processor that the 64 bytes around `pos` are read soon, where this is compiled.

    Nothing is told of a `pos` outside of `buf`, and nothing is read.
    """


def find_byte(buf: bytes | bytearray | memoryview, value: int, pos: int, end: int) -> int:
    """Return the first position in [pos, end) that holds `value`, or -1."""
    if pos < 0 or end > len(buf) or pos > end:
        raise IndexError(_OUTSIDE)
    return bytes(buf[pos:end]).find(value) + pos if value in bytes(buf[pos:end]) else -1


def kinds_of(buf: bytes | bytearray | memoryview, pos: int, end: int) -> int:
    """Return which kinds of bytes [pos, end) has: HAS_ZERO, HAS_SEPARATOR for 0x01 and 0x02, HAS_HIGH from 0x80 on."""
    if pos < 0 or end > len(buf) or pos > end:
        raise IndexError(_OUTSIDE)
    there = set(bytes(buf[pos:end]))
    kinds = HAS_ZERO if 0 in there else 0
    kinds |= HAS_SEPARATOR if there & {1, 2} else 0
    return kinds | (HAS_HIGH if max(there, default=0) >> 7 else 0)


def crc32(buf: bytes | bytearray | memoryview, pos: int, end: int) -> int:
    """Return the CRC-32 (ISO-HDLC, as zlib's) of [pos, end), without the top bit, as RocketMQ stores it."""
    if pos < 0 or end > len(buf) or pos > end:
        raise IndexError(_OUTSIDE)
    return zlib.crc32(memoryview(buf)[pos:end]) & 0x7FFFFFFF
