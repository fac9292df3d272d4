"""A peer for the SDK whose answers, silences and lost connections the test decides."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Self

from lmq.remoting.commands import Command, answer, encode_command
from lmq.remoting.frames import FrameInput, Frames

Answerer = Callable[[Command], Command | bytes | None]
"""Gives the answer to a request: a command, any bytes, or None for silence."""


class RemotingServer:
    """Listens on a port of its own. `on[code]` answers a request code; others are answered 0."""

    def __init__(self) -> None:
        self.on: dict[int, Answerer] = {}
        self.requests: list[Command] = []
        self.answers: list[Command] = []
        self.connections = 0
        self.port = 0
        self._open: set[asyncio.Transport] = set()
        self._server: asyncio.Server | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def has_connections(self) -> bool:
        return bool(self._open)

    async def __aenter__(self) -> Self:
        await self.listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.vanish()

    async def listen(self) -> None:
        """Listen, on the same port as before."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Session(self), "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def vanish(self) -> None:
        """Close the port and all connections."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.drop_all()

    def drop_all(self) -> None:
        """Lose all connections; new ones are taken."""
        for transport in list(self._open):
            transport.abort()

    def codes(self) -> list[int]:
        """Return the codes of the requests that came, but for heartbeats and farewells."""
        return [request.code for request in self.requests if request.code not in {34, 35}]

    def ask(self, request: Command) -> None:
        """Send a request to all that are connected; what they answer is in `answers`."""
        for transport in self._open:
            transport.write(encode_command(request))

    def opened(self, transport: asyncio.Transport) -> None:
        self.connections += 1
        self._open.add(transport)

    def closed(self, transport: asyncio.Transport) -> None:
        self._open.discard(transport)

    def reply(self, request: Command) -> bytes:
        if request.is_response:
            self.answers.append(request)
            return b""
        self.requests.append(request)
        made = self.on[request.code](request) if request.code in self.on else answer(request, 0)
        if made is None or request.is_one_way:
            return b""
        return made if isinstance(made, bytes) else encode_command(made)


class _Session(asyncio.Protocol):
    def __init__(self, server: RemotingServer) -> None:
        self._server = server
        self._input = FrameInput(Frames(64), 1 << 24)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._server.opened(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.closed(self._transport)

    def data_received(self, data: bytes) -> None:
        self._input.receive_data(data)
        while self._input.cut():
            for i in range(self._input.frames.count):
                self._transport.write(self._server.reply(self._input.decode(i)))


def stored(request: Command, code: int = 0) -> Command:
    """Answer a send as a broker that stored its message does, or with another code."""
    ext = {"msgId": "ID", "queueId": request.ext["e"], "queueOffset": "7", "transactionId": "K"}
    return answer(request, code, ext=ext)
