from __future__ import annotations

import asyncio

import httpx
import pytest

from gateway.admin.site import AdminSite
from gateway.door import ADMIN, find_listening
from gateway.listen_settings import ListenSettings
from gateway.listeners import Listeners
from gateway.net.listener import ListenError
from tests.support.admin import make_view
from tests.support.gateway import ANY_PORT, running_gateway

pytestmark = pytest.mark.asyncio


def listens(*addresses):
    return find_listening(ADMIN, [ListenSettings(address=address) for address in addresses])


async def test_it_answers_on_each_address_until_it_stops(tmp_path):
    async with running_gateway(tmp_path) as gateway, httpx.AsyncClient(timeout=20) as client:
        listeners = Listeners(gateway.capacity)
        site = AdminSite(make_view(gateway), listeners, gateway._paces.of(ADMIN, 0))
        await site.open(listens(ANY_PORT, ANY_PORT))
        urls = [f"http://{line.split()[-1]}/healthz" for line in listeners.lines([ADMIN])]
        assert [(await client.get(url)).status_code for url in urls] == [200, 200]
        await site.stop()
        for url in urls:
            with pytest.raises(httpx.ConnectError):
                await client.get(url)


async def test_servers_that_were_there_before_an_address_that_is_taken_stop(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        listeners = Listeners(gateway.capacity)
        site = AdminSite(make_view(gateway), listeners, gateway._paces.of(ADMIN, 0))
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ListenError):
            await site.open(listens(ANY_PORT, f"127.0.0.1:{port}"))
        host, free = listeners.first()[ADMIN]
        await site.stop()
        with pytest.raises(OSError):  # noqa: PT011 - refused, however the system says it
            await asyncio.open_connection(host, free)
        server.close()
