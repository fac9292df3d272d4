"""What each answer asks of the system, past the event loop, whose way there is longer than the call.

Compiled code takes the C form of the same name from `socket_calls.pxd`.
"""

from __future__ import annotations

import os


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
