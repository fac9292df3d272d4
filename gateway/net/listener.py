"""Listening sockets."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import struct
from contextlib import suppress
from pathlib import Path
from typing import cast

from gateway.address import UNIX, UNIX_MODE, format_address
from gateway.net.endpoint import Endpoint
from gateway.net.layered_transport import LayeredTransport
from gateway.net.streams.layer import LayerFactory
from gateway.net.transport import SocketTransport

LOGGER = logging.getLogger(__name__)

_UNACKED_AT = 24  # of Linux's struct tcp_info; of a socket that listens: connections that wait
_TCP_INFO_BYTES = 28  # up to the end of that field
RETRY_S = 1.0  # chosen: between two tries while no descriptor is free
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

    def __init__(
        self,
        name: str,
        endpoint: Endpoint,
        host: str,
        port: int,
        make_layers: LayerFactory | None = None,
        *,
        is_proxied: bool = False,
        mode: int = UNIX_MODE,
    ) -> None:
        self._name = name
        self._endpoint = endpoint
        self._host = host
        self._port = port
        self._make_layers = make_layers
        self._is_proxied = is_proxied
        self._mode = mode
        self._servers: list[asyncio.Server] = []
        self._sockets: list[socket.socket] = []  # ours too: the kernel keeps what connects while no server listens
        self._resuming: asyncio.Task[None] | None = None

    async def start(self) -> tuple[str, int]:
        """Bind and listen; return the host and port that were bound.

        Raises:
            ListenError: The address is in use, not ours or not allowed.
        """
        loop = asyncio.get_running_loop()
        try:
            if self._host.startswith(UNIX):
                path = self._host.removeprefix(UNIX)
                server = await loop.create_unix_server(self._connect, path, backlog=BACKLOG, start_serving=False)
                os.chmod(path, self._mode)  # noqa: PTH101 - a call of the system, like the bind before it
                await server.start_serving()  # not before: nobody else may come in meanwhile
            else:
                server = await loop.create_server(
                    self._connect, self._host or None, self._port, backlog=BACKLOG, reuse_address=True
                )
        except OSError as error:
            address = format_address(self._host, self._port)
            raise ListenError(self._name, address, reason_of(error)) from error
        self._servers.append(server)
        self._sockets = [socket.socket(fileno=os.dup(listening.fileno())) for listening in server.sockets]
        if self._host.startswith(UNIX):
            return self._host, 0
        bound = self._sockets[0].getsockname()
        return str(bound[0]), int(bound[1])

    def _connect(self) -> asyncio.Protocol:
        if self._make_layers is None:
            return cast("asyncio.Protocol", SocketTransport(self._endpoint))
        return cast(
            "asyncio.Protocol", LayeredTransport(self._endpoint, self._make_layers, is_proxied=self._is_proxied)
        )

    def pause(self) -> None:
        """Accept no more until `resume`; connections that come meanwhile wait."""
        self._drop_resuming()
        servers, self._servers = self._servers, []
        for server in servers:
            server.close()

    def resume(self) -> None:
        """Accept again, first those that wait."""
        if self._resuming is None and not self._servers:
            self._resuming = asyncio.create_task(self._resume(), name=f"listen {self._name}")

    async def _resume(self) -> None:
        loop = asyncio.get_running_loop()
        while len(self._servers) < len(self._sockets):
            try:
                listening = self._sockets[len(self._servers)].dup()
                create = loop.create_unix_server if listening.family == socket.AF_UNIX else loop.create_server
                self._servers.append(await create(self._connect, sock=listening, backlog=BACKLOG))
            except OSError as error:  # no descriptor again
                LOGGER.warning("cannot accept again door=%s error=%s", self._name, reason_of(error))
                await asyncio.sleep(RETRY_S)
        self._resuming = None

    @property
    def connections(self) -> int:
        """How many connections that came here are open."""
        return self._endpoint.connections

    def waiting_count(self) -> int:
        """Return how many wait to be accepted."""
        return sum(_backlog_of(listening) for listening in self._sockets)

    def _drop_resuming(self) -> None:
        if self._resuming is not None:
            self._resuming.cancel()
            self._resuming = None

    def stop(self) -> None:
        """Accept no more; open connections stay."""
        self.pause()
        sockets, self._sockets = self._sockets, []
        for listening in sockets:
            listening.close()
        if sockets and self._host.startswith(UNIX):
            with suppress(OSError):
                Path(self._host.removeprefix(UNIX)).unlink()


def _backlog_of(listening: socket.socket) -> int:
    """Return how many connections the kernel has ready for a socket that listens; 0 where it does not say."""
    if listening.family == socket.AF_UNIX:
        return 0
    info = listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
    (count,) = struct.unpack_from("=I", info, _UNACKED_AT)
    return int(count)


def reason_of(error: OSError) -> str:
    """Return the short reason of a failed bind."""
    if error.errno == errno.EADDRINUSE:
        return "the address is in use"
    return (error.strerror or str(error)).lower()
