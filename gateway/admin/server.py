"""uvicorn on the gateway's own loop; signals stay with the gateway."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from uvicorn.protocols.http.h11_impl import H11Protocol

from gateway.admin.carried import CarriedProtocol
from gateway.admin.gate import OPEN, Gate
from gateway.admin.login import LOGGED_IN, LOOKS, WAYS
from gateway.admin.turnstile import Turnstile
from gateway.net.streams.first_bytes import told_of
from gateway.net.streams.layer import LayerFactory
from gateway.net.streams.plain import peer_of
from gateway.settings.way_names import Ways

LOGGER = logging.getLogger(__name__)

FIRST_BYTES = 64  # more than any protocol begins with that is known by its beginning
WEB_SERVER = "127.0.0.1"  # a web server there may say X-Forwarded-For; without it uvicorn asks FORWARDED_ALLOW_IPS
NOWHERE = "/api/lmq/nowhere/at/all"
STOP_S = 1.0  # requests that take longer are dropped, so that the gateway stops within 5 s


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_started = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        self.is_started.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield


class _Connection(H11Protocol):
    """One connection; of too many, the newest are closed at once, so that the descriptors of the others are left.

    What its requests say is in `state` of their scopes, which all of them share.
    """

    gate = OPEN

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's own
        """Take the connection in."""
        is_refused = self.gate.refuses(peer_of(transport)[0], len(self.connections))
        self.app_state = {LOGGED_IN: set[str]()}
        super().connection_made(transport)
        if is_refused:
            transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP; uvicorn has logged that it came, but not from where and what it was."""
        host, port = peer_of(self.transport)
        reason = f"no HTTP{told_of(self.conn.trailing_data[0][:FIRST_BYTES], 'HTTP')}"
        LOGGER.warning("refused connection door=admin peer=%s:%d reason=%s", host, port, reason)
        super().send_400_response(msg)

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing of a wish for another protocol: the request is answered without it, as HTTP allows."""


class _CarriedConnection(_Connection):
    """One whose bytes are carried by layers: it was let in when it came."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's own
        """Take the connection in, unless the host that a proxy told comes too fast."""
        self.app_state = {LOGGED_IN: set[str]()}
        H11Protocol.connection_made(self, transport)
        if self.gate.refuses_told(peer_of(transport)[0]):
            transport.abort()


async def _hang_up() -> dict[str, Any]:
    return {"type": "http.disconnect"}


async def warm_up(api: FastAPI) -> None:
    """Ask for what is not there: so all is made that an application makes when it is first asked.

    And answer something in parts, which loads more.
    """

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(_message: Any) -> None:  # noqa: ANN401 - ASGI's own
        return

    head = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http"}
    where = {"path": NOWHERE, "raw_path": NOWHERE.encode(), "root_path": "", "query_string": b"", "headers": []}
    scope = {**head, **where, "client": None, "server": None}
    await api(scope, receive, send)
    await StreamingResponse(iter(()))(scope, _hang_up, send)  # what it needs is loaded for the first of them: 15 ms


class AdminServer:
    """Serves one application on one socket.

    Args:
        api: The application.
        sock: Listens.
        make_layers: What carries the bytes of connections; None: nothing does.
        ways: The authenticators that count there; None: all.
        lets_look: Whether questions of this machine may be answered there without a login.
        gate: Which connections are taken.
    """

    def __init__(
        self,
        api: FastAPI,
        sock: socket.socket,
        make_layers: LayerFactory | None = None,
        *,
        ways: Ways = None,
        lets_look: bool = True,
        gate: Gate = OPEN,
    ) -> None:
        self._sock = sock
        self._make_layers = make_layers
        self._gate = gate
        self._waiting: set[CarriedProtocol] = set()
        config = uvicorn.Config(
            Turnstile(api, {WAYS: ways, LOOKS: lets_look}),
            http=self._connect,  # type: ignore[arg-type] # called as the class is
            ws="none",  # else uvicorn loads a library for WebSocket on the loop, 10 ms in one turn
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            forwarded_allow_ips=WEB_SERVER,
            timeout_graceful_shutdown=1,
        )
        self._server = _Server(config)
        self._task: asyncio.Task[None] | None = None

    def _connect(self, **given: Any) -> asyncio.Protocol:  # noqa: ANN401 - uvicorn's own
        """Return the protocol of a new connection."""
        if self._make_layers is None:
            return self._make(_Connection, given)
        connections = self._server.server_state.connections
        return CarriedProtocol(
            self._make_layers,
            lambda: self._make(_CarriedConnection, given),
            lambda host: self._gate.refuses(host, len(connections) + len(self._waiting)),
            self._waiting,
        )

    def _make(self, kind: type[_Connection], given: dict[str, Any]) -> _Connection:
        made = kind(**given)
        made.gate = self._gate
        return made

    async def start(self) -> None:
        """Serve."""
        self._task = asyncio.create_task(self._server.serve([self._sock]), name="admin")
        await self._server.is_started.wait()

    async def stop(self) -> None:
        """Answer what is under way, then close."""
        if self._task is None:
            return
        self._server.should_exit = True
        for waiting in list(self._waiting):
            waiting.abort()
        with contextlib.suppress(TimeoutError, asyncio.CancelledError):
            await asyncio.wait_for(self._task, STOP_S)
        self._task = None
