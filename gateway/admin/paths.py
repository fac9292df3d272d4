"""Names in paths: one of a virtual host or a queue may have slashes in it, which come as %2F."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import unquote

from fastapi import Path
from pydantic import AfterValidator
from starlette.types import ASGIApp, Receive, Scope, Send

PathName = Annotated[str, Path(max_length=4_096), AfterValidator(unquote)]
"""A name in a path, as the application has it in `EncodedPaths`."""


class EncodedPaths:
    """An ASGI application in front of another one, which gets the path as it was sent, not decoded."""

    def __init__(self, application: ASGIApp) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if "raw_path" in scope:
            scope = {**scope, "path": scope["raw_path"].partition(b"?")[0].decode("latin-1")}
        await self._application(scope, receive, send)
