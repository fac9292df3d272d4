"""The mask that a WebSocket client lays over what it sends.

Compiled code takes the C form of the same name from `masks.pxd`.

Source: RFC 6455, 5.3.
"""

from __future__ import annotations

from functools import cache

KEY_BYTES = 4  # RFC 6455, section 5.3


def unmask(data: bytes, start: int, end: int, key: bytes) -> bytes:
    """Return `data[start:end]` without its mask.

    Args:
        data: Where the masked bytes are.
        start: The first of them.
        end: Behind the last one.
        key: Four bytes, of which the first is that of the byte at `start`.

    Raises:
        IndexError: The range is not inside `data`, or `key` is not of four bytes.
    """
    if not 0 <= start <= end <= len(data) or len(key) != KEY_BYTES:
        raise IndexError("outside a buffer")
    plain = bytearray(data[start:end])
    for at, byte in enumerate(key):
        plain[at::4] = plain[at::4].translate(_table(byte))
    return bytes(plain)


@cache
def _table(key: int) -> bytes:
    """Return what each byte is under a byte of a key; there are 256."""
    return bytes(byte ^ key for byte in range(256))
