from __future__ import annotations

import signal

import httpx
import pytest
from fastapi import FastAPI

from gateway.admin.server import AdminServer
from gateway.net.listener import ListenError

pytestmark = pytest.mark.asyncio


def _api():
    api = FastAPI()

    @api.get("/")
    async def root():
        return "here"

    return api


async def test_it_serves_on_the_loop_and_stops():
    handler = signal.getsignal(signal.SIGTERM)
    server = AdminServer(_api(), "127.0.0.1", 0)
    host, port = await server.start()
    async with httpx.AsyncClient() as client:
        assert (await client.get(f"http://{host}:{port}/")).json() == "here"
    assert signal.getsignal(signal.SIGTERM) is handler
    await server.stop()
    await server.stop()
    async with httpx.AsyncClient() as client:
        with pytest.raises(httpx.ConnectError):
            await client.get(f"http://{host}:{port}/")


async def test_port_in_use_is_told_and_no_socket_is_left():
    first = AdminServer(_api(), "127.0.0.1", 0)
    host, port = await first.start()
    with pytest.raises(ListenError, match="admin"):
        await AdminServer(_api(), host, port).start()
    await first.stop()


async def test_client_that_stays_does_not_hold_up_the_stop():
    server = AdminServer(_api(), "127.0.0.1", 0)
    host, port = await server.start()
    async with httpx.AsyncClient() as client:
        await client.get(f"http://{host}:{port}/")
        await server.stop()
