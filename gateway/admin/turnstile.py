"""Requests begin one after the other, one in each turn of the loop: any number of them leaves room for the rest."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


class Turnstile:
    """An ASGI application in front of another one, which does what is dear in steps.

    Args:
        application: The other one.
        said: What each request's scope has beside what it came with.
    """

    def __init__(self, application: Application, said: Message | None = None) -> None:
        self._application = application
        self._said = said or {}
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_used = False  # in this turn

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass a request on when it is its turn."""
        scope.update(self._said)
        loop = asyncio.get_running_loop()
        if self._is_used:
            turn = loop.create_future()
            self._waiting.append(turn)
            await turn
        else:
            self._is_used = True
            loop.call_soon(self._next)
        await self._application(scope, receive, send)

    def _next(self) -> None:
        """Let the next one through; one that gave up meanwhile takes no turn."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                asyncio.get_running_loop().call_soon(self._next)
                return
        self._is_used = False
