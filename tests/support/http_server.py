"""A web server for tests that answers as the test says, and keeps what it was asked."""

from __future__ import annotations

import asyncio
import contextlib
import json
from urllib.parse import parse_qs, urlsplit


class Asked:
    """One request."""

    def __init__(self, method, target, headers, body):
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body

    @property
    def fields(self):
        """What it says, by query, form or JSON."""
        if self.method == "GET":
            return {name: value for name, (value,) in parse_qs(urlsplit(self.target).query, True).items()}
        if self.headers.get("content-type") == "application/json":
            return json.loads(self.body)
        return {name: value for name, (value,) in parse_qs(self.body.decode(), True).items()}


class HttpServer:
    """Answers each request with what `answer(asked)` returns: text, or (status, headers, body), or raw bytes.

    `answer` may be a coroutine function; one that returns None closes the connection without an answer.
    """

    def __init__(self, answer, ssl=None):
        self.answer = answer
        self.ssl = ssl
        self.asked = []
        self.connections = 0
        self.port = 0
        self._server = None
        self._tasks = set()

    @property
    def url(self):
        return f"http{'s' if self.ssl else ''}://localhost:{self.port}/auth"

    async def __aenter__(self):
        await self.start()
        return self

    async def start(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=self.ssl)
        self.port = self._server.sockets[0].getsockname()[1]

    async def __aexit__(self, *exc_info):
        await self.stop()

    async def stop(self):
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for _ in range(5):  # connections end
            await asyncio.sleep(0)

    async def _serve(self, reader, writer):
        self.connections += 1
        self._tasks.add(asyncio.current_task())
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await self._answer(reader, writer):
                pass
        self._tasks.discard(asyncio.current_task())
        writer.transport.abort()

    async def _answer(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, target, _ = head[0].split(" ")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        asked = Asked(method, target, headers, body)
        self.asked.append(asked)
        said = self.answer(asked)
        if asyncio.iscoroutine(said):
            said = await said
        if said is None:
            return False
        if isinstance(said, bytes):
            writer.write(said)
            await writer.drain()
            return False
        status, more, text = said if isinstance(said, tuple) else (200, {}, said)
        lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(text.encode())}"]
        lines += [f"{name}: {value}" for name, value in more.items()]
        writer.write("\r\n".join([*lines, "", text]).encode())
        await writer.drain()
        return True
