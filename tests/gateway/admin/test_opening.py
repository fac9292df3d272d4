from __future__ import annotations

import asyncio
import logging
import socket

import httpx
import pytest

from gateway.admin.opening import AdminOpening
from gateway.admin.site import AdminSite
from gateway.door import ADMIN, find_listening
from gateway.listeners import Listeners
from gateway.settings.listen import ListenSettings
from tests.support.admin import make_view
from tests.support.commands import run_python
from tests.support.gateway import ANY_PORT, running_gateway

pytestmark = pytest.mark.asyncio


def _site(gateway):
    return AdminSite(make_view(gateway), gateway._paces.of(ADMIN, 0))


async def _open(gateway, make, failed):
    listeners = Listeners(gateway.capacity)
    opening = AdminOpening(make, listeners, lambda: failed.append(True))
    await opening.open(find_listening(ADMIN, [ListenSettings(address=ANY_PORT)]))
    return opening, listeners.first()[ADMIN]


async def test_address_is_told_at_once_and_answers_when_the_libraries_are_there(tmp_path):
    async with running_gateway(tmp_path) as gateway, httpx.AsyncClient(timeout=20) as client:
        failed = []
        opening, (host, port) = await _open(gateway, lambda: _site(gateway), failed)
        assert opening._site is None
        assert (await client.get(f"http://{host}:{port}/healthz")).status_code == 200
        await opening.stop()
        with pytest.raises(httpx.ConnectError):
            await client.get(f"http://{host}:{port}/healthz")
        assert not failed


async def test_stop_before_the_libraries_are_there_closes_the_address(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        failed = []
        opening, address = await _open(gateway, lambda: _site(gateway), failed)
        await opening.stop()
        with socket.socket() as again:
            again.bind(address)
        assert not failed


async def test_door_that_cannot_be_opened_after_all_is_told(tmp_path, caplog):
    async with running_gateway(tmp_path) as gateway:
        failed = []

        def fail():
            raise ValueError("no site")

        with caplog.at_level(logging.ERROR, "gateway.admin.opening"):
            opening, _ = await _open(gateway, fail, failed)
            await asyncio.wait_for(opening._loading, 20)
        assert failed == [True]
        assert "cannot be opened" in caplog.text
        await opening.stop()


async def test_nothing_that_is_loaded_before_the_gateway_is_ready_needs_the_libraries():
    program = "import sys, gateway.serving\nprint(sorted({'fastapi', 'uvicorn', 'starlette'} & set(sys.modules)))"
    assert run_python("-c", program).stdout == "[]\n"
