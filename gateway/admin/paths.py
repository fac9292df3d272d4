"""Requests as RabbitMQ's API takes them: names in paths with slashes or empty, and any body as JSON."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import unquote

from fastapi import HTTPException, Path
from pydantic import AfterValidator
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY_BYTES_MAX = 64 * 1024 * 1024  # definitions of a large broker, or the longest message in base64
PathName = Annotated[str, Path(max_length=4_096), AfterValidator(unquote)]
"""A name in a path, as the application has it in `RequestsAsSent`."""
DEFAULT_EXCHANGE = "amq.default"  # what the exchange without a name is called in paths
PAGES = ("/console/", "/api/docs/")  # what pages name beside themselves lies elsewhere from behind a slash
_NO_NAME = re.compile(r"(/api/exchanges/[^/]+|/api/bindings/[^/]+/e)//")


class RequestsAsSent:
    """An ASGI application in front of another one, which gets the path as it was sent: %2F is part of a name.

    The exchange without a name may have none in a path either: parts of paths that routes read are not empty, so it is
    called by its other name then. A slash at the end of a path says nothing, but for pages. Bodies count as JSON
    whatever their header says, as curl says that they are forms; they are bounded.
    """

    def __init__(self, application: ASGIApp) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] == "http":
            path = scope["raw_path"].partition(b"?")[0].decode("latin-1")
            if "//" in path and (found := _NO_NAME.match(path)) is not None:
                path = f"{found[1]}/{DEFAULT_EXCHANGE}/{path[found.end() :]}"
            if path.endswith("/") and path != "/" and not path.startswith(PAGES):
                path = path[:-1]
            others = [(name, value) for name, value in scope["headers"] if name != b"content-type"]
            scope = {**scope, "path": path, "headers": [*others, (b"content-type", b"application/json")]}
        await self._application(scope, _Bounded(receive), send)


class _Bounded:
    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._left = BODY_BYTES_MAX

    async def __call__(self) -> Message:
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise HTTPException(413, f"a request has at most {BODY_BYTES_MAX} bytes")
        return message
