from __future__ import annotations

import httpx
import pytest

from gateway.admin import site as module
from gateway.admin.bound import bind_all
from gateway.admin.site import AdminSite
from gateway.door import ADMIN, find_listening
from gateway.listeners import Listeners
from gateway.settings.listen import ListenSettings
from tests.support.admin import make_view
from tests.support.gateway import ANY_PORT, running_gateway

pytestmark = pytest.mark.asyncio


def listens(*addresses):
    return find_listening(ADMIN, [ListenSettings(address=address) for address in addresses])


async def test_it_answers_on_each_address_until_it_stops(tmp_path):
    async with running_gateway(tmp_path) as gateway, httpx.AsyncClient(timeout=20) as client:
        listeners = Listeners(gateway.capacity)
        site = AdminSite(make_view(gateway), gateway._paces.of(ADMIN, 0))
        await site.open(await bind_all(listens(ANY_PORT, ANY_PORT), listeners))
        urls = [f"http://{line.split()[-1]}/healthz" for line in listeners.lines([ADMIN])]
        assert [(await client.get(url)).status_code for url in urls] == [200, 200]
        await site.stop()
        for url in urls:
            with pytest.raises(httpx.ConnectError):
                await client.get(url)


async def test_the_application_is_warm_before_it_answers(tmp_path, monkeypatch):
    warmed = []

    async def note(api):
        warmed.append(api.title)

    monkeypatch.setattr(module, "warm_up", note)
    async with running_gateway(tmp_path) as gateway:
        site = AdminSite(make_view(gateway), gateway._paces.of(ADMIN, 0))
        await site.open(await bind_all(listens(ANY_PORT), Listeners(gateway.capacity)))
        assert warmed == ["LMQ Gateway"]
        await site.stop()
