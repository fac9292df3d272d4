"""The connections that are open now, of all doors."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import Callable, Iterator
from typing import Protocol

LOOK_S = 0.25  # how often it is looked whether peers that are behind read on
_ACKED = slice(120, 128)  # tcpi_bytes_acked in what the system tells of a connection: what the peer's system has


class OpenConnection(Protocol):
    """What the table needs of a connection."""

    bytes_in: int
    conn_id: int
    end_reason: str

    @property
    def door(self) -> str:
        """The name of the door that it came in by."""

    def fileno(self) -> int:
        """Return the number of its socket, -1 where it is closed."""

    def close(self) -> None:
        """Send what was written, then close."""

    def abort(self) -> None:
        """Close now."""


def _nothing() -> None:
    return


class ConnectionTable:
    """Open connections by their number; numbers go up from 1 and are never given twice.

    `on_empty` is called whenever the last one is gone.
    """

    def __init__(self) -> None:
        self._open: dict[int, OpenConnection] = {}
        self._last_id = 0
        self.on_empty: Callable[[], None] = _nothing

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[OpenConnection]:
        return iter(list(self._open.values()))

    def next_id(self) -> int:
        """Return the number of a new connection."""
        self._last_id += 1
        return self._last_id

    def add(self, connection: OpenConnection) -> None:
        """Note that `connection` is open."""
        self._open[connection.conn_id] = connection

    def discard(self, connection: OpenConnection) -> None:
        """Note that `connection` is gone."""
        if self._open.pop(connection.conn_id, None) is not None and not self._open:
            self.on_empty()

    def close_all(self) -> None:
        """Close every connection, sending first what was written."""
        for connection in self:
            connection.end_reason = connection.end_reason or "the gateway stops"
            connection.close()

    async def until_empty(self, within_s: float, more_s: float) -> None:
        """Wait until the last one is gone, for some time, and for more while a peer that is behind reads on.

        Args:
            within_s: How long in any case.
            more_s: How much longer at most, while bytes come or are taken.
        """
        if not self._open:
            return
        is_empty = asyncio.Event()
        self.on_empty = is_empty.set
        read_s = asyncio.get_running_loop().time
        until_s = read_s() + within_s + more_s
        wait_s = max(within_s - LOOK_S, 0.0)
        before, moved = -1, 0
        while not is_empty.is_set() and moved != before and read_s() < until_s:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(is_empty.wait(), wait_s)
            before, moved, wait_s = moved, self._moved_bytes(), LOOK_S

    def _moved_bytes(self) -> int:
        """Return a number that changes when peers send, take what is sent to them, or are gone."""
        return sum(1 + connection.bytes_in + _taken_bytes(connection.fileno()) for connection in self)

    def abort_all(self) -> None:
        """Close every connection now."""
        for connection in self:
            connection.abort()


def _taken_bytes(fd: int) -> int:
    """Return how much of what was sent by a socket its peer has; 0 where that is not told, as at a Unix socket."""
    if fd < 0:
        return 0
    try:
        with socket.socket(fileno=os.dup(fd)) as sock:
            return int.from_bytes(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 128)[_ACKED], sys.byteorder)
    except OSError:
        return 0
