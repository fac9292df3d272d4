"""The bytes of a socket as they are. All other streams send by this one."""

from __future__ import annotations

import asyncio
import fcntl
import socket
import termios
from collections.abc import Callable

from gateway.net import socket_calls

GONE = "?"  # the host of a peer that reset the connection before the loop had it
_NO_BYTES = bytes(4)  # that wait: a number as the system writes it


class PlainStream:
    """A connected socket, written past the loop, whose way there is longer than the call.

    Args:
        sock: The loop's; the loop reads it and closes it.
    """

    __slots__ = ("_fd", "_has_sent", "_is_behind", "_socket", "_write")

    def __init__(self, sock: asyncio.Transport) -> None:
        self._socket: asyncio.Transport | None = sock
        self._write: Callable[[bytes | memoryview], None] | None = sock.write  # while there is a socket
        self._fd = fileno_of(sock)  # while `_write` is there: the loop closes it after `lose`
        self._has_sent = False  # since `acknowledge`
        self._is_behind = False  # the loop may have bytes yet to send, and new ones must not overtake them

    def write(self, data: bytes | bytearray | memoryview) -> bool:
        """Send `data` at once, and by the loop what the socket does not take now: `bytes` are kept, else a copy is.

        Returns:
            Whether all of it is with the system; else `waiting_bytes` has grown.
        """
        write = self._write
        if write is None:
            return True
        self._has_sent = True
        sent = 0
        if self._is_behind:
            self._is_behind = self.waiting_bytes() > 0
        if not self._is_behind:
            sent = socket_calls.send_part(self._fd, data)
            if sent == len(data):
                return True
            self._is_behind = True
        rest = memoryview(data)[sent:]
        write(rest if type(data) is bytes else bytes(rest))
        return False

    def waiting_bytes(self) -> int:
        """Return how much of what was written is not with the system yet."""
        return 0 if self._socket is None else self._socket.get_write_buffer_size()

    def acknowledge(self) -> None:
        """Have TCP acknowledge what was read since the last call, unless what was sent meanwhile did."""
        if self._has_sent:
            self._has_sent = False
        elif self._fd >= 0:
            socket_calls.acknowledge(self._fd)

    def lose(self) -> None:
        """Forget the socket, which the loop closes now."""
        self._socket = self._write = None
        self._fd = -1


def fileno_of(sock: asyncio.Transport) -> int:
    """Return the number of a socket of the loop's, -1 where it is closed."""
    found = sock.get_extra_info("socket")
    return -1 if found is None else int(found.fileno())


def has_unread(sock: asyncio.Transport) -> bool:
    """Return whether bytes of the peer wait in a socket of the loop's: to close it then resets the connection."""
    fd = fileno_of(sock)
    return fd >= 0 and fcntl.ioctl(fd, termios.FIONREAD, _NO_BYTES) != _NO_BYTES


def peer_of(sock: asyncio.Transport) -> tuple[str, int]:
    """Return the host and port of the other end; no host at a Unix socket, `GONE` if it has reset the connection."""
    name = sock.get_extra_info("peername")
    if isinstance(name, tuple):
        return str(name[0]), int(name[1])
    found = sock.get_extra_info("socket")
    return ("" if found is not None and found.family == socket.AF_UNIX else GONE), 0
