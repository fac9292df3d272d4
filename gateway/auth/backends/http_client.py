"""A client of one HTTP server, on the loop: connections that are kept, sizes that are bounded.

Source: RFC 9112, through h11.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import h11

from gateway.auth.backends.question import BackendError
from gateway.settings.models import SettingsError

READ_BYTES = 16 * 1024  # as many as a head may have: of most answers one read
HEAD_BYTES_MAX = 16 * 1024  # of an answer's status and headers; chosen: twice what web servers usually take
ANSWER_BYTES_MAX = 64 * 1024  # of an answer's body: rules and groups of one user
IDLE_MAX = 16  # connections that are kept; chosen: a burst of logins opens more, and they are closed again
EVENTS_AT_A_TIME = 64  # of one answer; each costs some 10 us, however small it is


class HttpAnswer(NamedTuple):
    """What a server answered; the names of headers are in small letters."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _Link(NamedTuple):
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    state: h11.Connection


class HttpClient:
    """Asks one address.

    Args:
        url: The address, with a path and perhaps a query.
        ca: A PEM file with the authorities that sign its certificate; None: those that this machine trusts.
        body_bytes_max: Of an answer; a longer one is none.

    Raises:
        SettingsError: The file cannot be used.
    """

    def __init__(self, url: str, ca: Path | None = None, body_bytes_max: int = ANSWER_BYTES_MAX) -> None:
        parts = urlsplit(url)
        self._host = parts.hostname or ""
        self._ssl = make_tls(ca) if parts.scheme == "https" else None
        self._port = parts.port or (80 if self._ssl is None else 443)
        self._path = parts.path or "/"
        self._query = parts.query
        self._head = [("Host", parts.netloc), ("User-Agent", "lmq-gateway"), ("Accept", "*/*")]
        self._body_bytes_max = body_bytes_max
        self._idle: list[_Link] = []

    async def send(
        self, method: str, *, query: str = "", headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> HttpAnswer:
        """Return the answer to one request; the caller bounds the time.

        Raises:
            BackendError: It is none of HTTP, or too large.
            OSError: The server cannot be reached, or went away.
        """
        target = "?".join(filter(None, (self._path, "&".join(filter(None, (self._query, query))))))
        head = [*self._head, *(headers or {}).items()]
        if method != "GET":
            head.append(("Content-Length", str(len(body))))
        request = h11.Request(method=method, target=target, headers=head)
        while self._idle:
            answer = await self._try(self._idle.pop(), request, body)
            if answer is not None:
                return answer
        answer = await self._try(await self._connect(), request, body)
        if answer is None:
            raise BackendError("the server closed the connection without an answer")
        return answer

    async def _connect(self) -> _Link:
        reader, writer = await asyncio.open_connection(self._host, self._port, ssl=self._ssl)
        return _Link(reader, writer, h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_BYTES_MAX))

    async def _try(self, link: _Link, request: h11.Request, body: bytes) -> HttpAnswer | None:
        """Return the answer, None where the server had closed the connection before."""
        is_done = False
        try:
            answer = await self._exchange(link, request, body)
            is_done = answer is not None and link.state.our_state is h11.DONE and link.state.their_state is h11.DONE
        except h11.ProtocolError as error:
            raise BackendError(f"its answer is not HTTP: {error}") from error
        finally:
            if is_done and len(self._idle) < IDLE_MAX:
                link.state.start_next_cycle()
                self._idle.append(link)
            else:
                _end(link)
        return answer

    async def _exchange(self, link: _Link, request: h11.Request, body: bytes) -> HttpAnswer | None:
        state = link.state
        sent = [state.send(request), state.send(h11.Data(data=body)) if body else b"", state.send(h11.EndOfMessage())]
        link.writer.write(b"".join(part or b"" for part in sent))
        status, headers, parts, size, is_silent = 0, {}, [], 0, True
        count = 0
        while True:
            count += 1
            if count % EVENTS_AT_A_TIME == 0:
                await asyncio.sleep(0)
            event = state.next_event()
            if event is h11.NEED_DATA:
                try:
                    data = await link.reader.read(READ_BYTES)
                except ConnectionError:
                    data = b""
                if not data and is_silent:
                    return None
                is_silent = False
                state.receive_data(data)
            elif isinstance(event, h11.Response):
                status, headers = event.status_code, _read_headers(event)
            elif isinstance(event, h11.Data):
                parts.append(bytes(event.data))
                size += len(event.data)
                if size > self._body_bytes_max:
                    raise BackendError(f"its answer has more than {self._body_bytes_max} bytes")
            elif isinstance(event, h11.EndOfMessage):
                return HttpAnswer(status, headers, b"".join(parts))
            elif not isinstance(event, h11.InformationalResponse):
                raise BackendError("the server closed the connection in its answer")

    def close(self) -> None:
        """Close the connections that nobody waits at."""
        while self._idle:
            _end(self._idle.pop())


def _end(link: _Link) -> None:
    """Close a connection at once, whatever is still to be sent."""
    link.writer.close()
    link.writer.transport.abort()


def _read_headers(event: h11.Response) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in event.headers}


def make_tls(ca: Path | None) -> ssl.SSLContext:
    """Return how a server proves its identity.

    Raises:
        SettingsError: The file cannot be used.
    """
    try:
        return ssl.create_default_context(cafile=None if ca is None else str(ca))
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        raise SettingsError(f"{ca} cannot be used as a list of certificates: {error}") from error
