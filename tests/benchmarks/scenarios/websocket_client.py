"""Carries the bytes of a load by WebSocket, for next to nothing: the mask is of zeros, and changes nothing.

Source: RFC 6455, 5.2; section 6 of MQTT 5.
"""

from __future__ import annotations

import asyncio
from typing import Protocol, cast

BINARY, MASKED = 0x82, 0x80
NO_MASK = bytes(4)
LENGTH_16, LENGTH_64 = 126, 127
END = b"\r\n\r\n"
UPGRADE = (
    b"GET /mqtt HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n"
)


class Inner(Protocol):
    """What is carried."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""

    def data_received(self, data: bytes) -> None:
        """Take bytes."""

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""


def frame(data: bytes | bytearray) -> bytes:
    """Return the frame of a client that carries some bytes."""
    size = len(data)
    if size < LENGTH_16:
        head = bytes((BINARY, MASKED | size))
    elif size < 1 << 16:
        head = bytes((BINARY, MASKED | LENGTH_16)) + size.to_bytes(2)
    else:
        head = bytes((BINARY, MASKED | LENGTH_64)) + size.to_bytes(8)
    return head + NO_MASK + data


def unframe(data: bytes) -> tuple[bytes, bytes]:
    """Return what whole frames of a server carry, and what is left."""
    at, parts = 0, []
    while len(data) - at >= 2:
        size, start = data[at + 1], at + 2
        if size >= LENGTH_16:
            width = 2 if size == LENGTH_16 else 8
            if len(data) - start < width:
                break
            size, start = int.from_bytes(data[start : start + width]), start + width
        if len(data) - start < size:
            break
        parts.append(data[start : start + size])
        at = start + size
    return b"".join(parts), data[at:]


class FramingTransport:
    """Frames what is written."""

    def __init__(self, transport: asyncio.WriteTransport) -> None:
        self._transport = transport

    def write(self, data: bytes | bytearray) -> None:
        """Send bytes in a frame of their own."""
        self._transport.write(frame(data))

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    def abort(self) -> None:
        """Close it now."""
        self._transport.abort()


class Carried(asyncio.Protocol):
    """The connection that carries another one, which begins when the server has agreed."""

    def __init__(self, inner: Inner) -> None:
        self._inner = inner
        self._tail = b""
        self._is_open = False
        self._transport: asyncio.WriteTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for a WebSocket."""
        self._transport = cast("asyncio.WriteTransport", transport)
        self._transport.write(UPGRADE)

    def data_received(self, data: bytes) -> None:
        """Take the server's word, then what its frames carry."""
        data = self._tail + data
        if not self._is_open:
            head, found, data = data.partition(END)
            if not found:
                self._tail = head
                return
            assert b" 101 " in head.split(b"\r\n")[0], head
            self._is_open = True
            self._inner.connection_made(cast("asyncio.BaseTransport", FramingTransport(self._transport)))
        carried, self._tail = unframe(data)
        if carried:
            self._inner.data_received(carried)

    def pause_writing(self) -> None:
        """Have the inner one wait."""
        getattr(self._inner, "pause_writing", int)()

    def resume_writing(self) -> None:
        """Let it go on."""
        getattr(self._inner, "resume_writing", int)()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell it."""
        self._inner.connection_lost(exc)
