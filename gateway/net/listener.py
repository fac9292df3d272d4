"""Listening sockets."""

from __future__ import annotations

import asyncio
import errno
from typing import cast

from gateway.address import format_address
from gateway.net.transport import Endpoint, SocketTransport

BACKLOG = 4096  # a fleet that reconnects at once; the kernel's own limit applies too


class ListenError(Exception):
    """An address that cannot be listened on."""

    def __init__(self, door: str, address: str, reason: str) -> None:
        super().__init__(f"cannot listen for {door} on {address}: {reason}")
        self.door = door
        self.address = address
        self.reason = reason


class Listener:
    """One listening address of a door, which may have several: `name` is what its setting and operators call it."""

    def __init__(self, name: str, endpoint: Endpoint, host: str, port: int) -> None:
        self._name = name
        self._endpoint = endpoint
        self._host = host
        self._port = port
        self._server: asyncio.Server | None = None

    async def start(self) -> tuple[str, int]:
        """Bind and listen; return the host and port that were bound.

        Raises:
            ListenError: The address is in use, not ours or not allowed.
        """
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: cast("asyncio.Protocol", SocketTransport(self._endpoint)),
                self._host or None,
                self._port,
                backlog=BACKLOG,
                reuse_address=True,
            )
        except OSError as error:
            address = format_address(self._host, self._port)
            raise ListenError(self._name, address, reason_of(error)) from error
        bound = self._server.sockets[0].getsockname()
        return str(bound[0]), int(bound[1])

    def stop(self) -> None:
        """Accept no more; open connections stay."""
        if self._server is not None:
            self._server.close()
            self._server = None


def reason_of(error: OSError) -> str:
    """Return the short reason of a failed bind."""
    if error.errno == errno.EADDRINUSE:
        return "the address is in use"
    return (error.strerror or str(error)).lower()
