"""System calls on sockets, made past the event loop, because the loop's way to them costs more than the call.

Compiled code takes the C form of the same name from `socket_calls.pxd`.
"""

from __future__ import annotations

import os
import socket


def send_part(fd: int, data: bytes | bytearray | memoryview) -> int:
    """Send as much of `data` as the socket takes at once.

    Args:
        fd: A socket that does not block, open as long as the caller calls.
        data: What to send.

    Returns:
        How many bytes went; 0 where the socket is full or broken, which the loop's own write finds out and reports.
    """
    try:
        return os.write(fd, data)
    except OSError:
        return 0


def acknowledge(fd: int) -> None:
    """Have TCP acknowledge what the socket was read until now.

    A peer that gets no answers, and that waits with its next segment until the last one is acknowledged (Nagle), would
    else wait for the kernel's delay of 40 ms.

    Where the system has no such option (`TCP_QUICKACK`, Linux), or the socket is not TCP, nothing changes.

    Args:
        fd: A socket, open as long as the caller calls.

    Source: tcp(7); `__tcp_sock_set_quickack` of Linux.
    """
    option = getattr(socket, "TCP_QUICKACK", None)
    if option is None:
        return
    sock = socket.socket(fileno=fd)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, option, 1)
    except OSError:
        pass
    finally:
        sock.detach()
