"""How the operators' door opens: its addresses with those of the other doors, its libraries meanwhile in a thread.

They take most of a second to load. A connection that comes before that is over waits in the kernel, and is answered
then.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
from collections.abc import Callable, Iterable
from typing import Protocol

from gateway.admin.bound import Bound, bind_all
from gateway.door import Listen
from gateway.listeners import Listeners

LOGGER = logging.getLogger(__name__)

LIBRARIES = "gateway.admin.site"  # the module that needs all of them


class Site(Protocol):
    """What answers at the door."""

    async def open(self, bound: Iterable[Bound]) -> None:
        """Answer on addresses."""

    async def stop(self) -> None:
        """Answer what is under way, and no more."""


class AdminOpening:
    """Opens the operators' door, and shuts it.

    Args:
        make_site: Returns what answers; called on the loop when its libraries are there.
        listeners: Make what carries the bytes, and are told each address.
        fail: Called if the door cannot be opened after all.
    """

    def __init__(self, make_site: Callable[[], Site], listeners: Listeners, fail: Callable[[], None]) -> None:
        self._make_site = make_site
        self._listeners = listeners
        self._fail = fail
        self._bound: list[Bound] = []
        self._site: Site | None = None
        self._loading: asyncio.Task[None] | None = None

    async def open(self, listens: Iterable[Listen]) -> None:
        """Listen on addresses; a connection is answered as soon as the libraries are there.

        Raises:
            ListenError: An address cannot be listened on.
            SettingsError: A certificate cannot be used.
        """
        self._bound = await bind_all(listens, self._listeners)
        self._loading = asyncio.create_task(self._load(), name="admin opening")

    async def _load(self) -> None:
        try:
            await asyncio.to_thread(importlib.import_module, LIBRARIES)
            self._site = self._make_site()
            await self._site.open(self._bound)
        except Exception:
            LOGGER.exception("the operators' door cannot be opened: stopping")
            self._fail()

    async def stop(self) -> None:
        """Close the addresses, and answer what is under way."""
        if self._loading is not None:
            self._loading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._loading
        if self._site is not None:
            await self._site.stop()
        for one in self._bound:  # those that nothing answers on yet; a server has closed its own
            one.sock.close()
