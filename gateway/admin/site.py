"""The operators' door: a server on each address, over one API, and the pages that follow what goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from fastapi import FastAPI

from gateway.admin.api import make_api
from gateway.admin.bound import Bound
from gateway.admin.gate import Gate
from gateway.admin.live import LiveFeed
from gateway.admin.server import AdminServer, warm_up
from gateway.admin.view import AdminView
from gateway.door import ADMIN
from gateway.net.paces import Paces
from gateway.settings.listen import is_beyond


class AdminSite:
    """The API and the console, wherever they are listened for.

    Args:
        view: The gateway, as they may look at it.
        paces: How fast connections come.
    """

    def __init__(self, view: AdminView, paces: Paces) -> None:
        self._view = view
        self._paces = paces
        self._servers: list[AdminServer] = []
        self._live = LiveFeed(view)

    async def open(self, bound: Iterable[Bound]) -> None:
        """Answer on addresses; pages that follow get samples from then on."""
        api = await asyncio.to_thread(self._make_api)  # it takes a quarter of a second
        for listen, sock, make_layers in bound:
            gate = Gate(
                self._paces.at(listen.rates),
                listen.connections_max,
                is_proxied=bool(listen.proxies),
                note=self._view.broker.metrics.door(ADMIN).refuse,
            )
            lets_look = listen.ways is not None or not is_beyond(listen)  # beyond this machine all have to log in
            server = AdminServer(api, sock, make_layers, ways=listen.ways, lets_look=lets_look, gate=gate)
            self._servers.append(server)
            await server.start()
        if self._servers:
            self._live.start()

    def _make_api(self) -> FastAPI:
        api = make_api(self._view, self._live)
        asyncio.run(warm_up(api))
        return api

    async def stop(self) -> None:
        """End what follows, which would hold the servers up, then the servers."""
        self._live.stop()
        for server in self._servers:
            await server.stop()
