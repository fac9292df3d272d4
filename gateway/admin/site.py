"""The operators' door: a server on each address, over one API, and the pages that follow what goes on."""

from __future__ import annotations

from collections.abc import Iterable

from gateway.admin.api import make_api
from gateway.admin.gate import Gate
from gateway.admin.live import LiveFeed
from gateway.admin.server import AdminServer
from gateway.admin.view import AdminView
from gateway.carriage import told_name
from gateway.door import ADMIN, Listen
from gateway.listen_settings import is_beyond
from gateway.listeners import Listeners
from gateway.net.paces import Paces


class AdminSite:
    """The API and the console, wherever they are listened for.

    Args:
        view: The gateway, as they may look at it.
        listeners: Make what carries the bytes, and are told each address.
        paces: How fast connections come.
    """

    def __init__(self, view: AdminView, listeners: Listeners, paces: Paces) -> None:
        self._view = view
        self._listeners = listeners
        self._paces = paces
        self._servers: list[AdminServer] = []
        self._live = LiveFeed(view)

    async def open(self, listens: Iterable[Listen]) -> None:
        """Listen on addresses; pages that follow get samples from then on.

        Raises:
            ListenError: An address cannot be listened on.
            SettingsError: A certificate cannot be used.
        """
        api = make_api(self._view, self._live)
        for listen in listens:
            address, make_layers = self._listeners.carry(listen)
            gate = Gate(
                self._paces.at(listen.rates),
                listen.connections_max,
                is_proxied=bool(listen.proxies),
                note=self._view.broker.metrics.door(ADMIN).refuse,
            )
            lets_look = listen.ways is not None or not is_beyond(listen)  # beyond this machine all have to log in
            server = AdminServer(api, *address, make_layers, ways=listen.ways, lets_look=lets_look, gate=gate)
            self._listeners.note(ADMIN, told_name(listen), await server.start())
            self._servers.append(server)
        if self._servers:
            self._live.start()

    async def stop(self) -> None:
        """End what follows, which would hold the servers up, then the servers."""
        self._live.stop()
        for server in self._servers:
            await server.stop()
