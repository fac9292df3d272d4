from __future__ import annotations

import asyncio

import pytest

from gateway.admin.bound import bind_all, bind_socket
from gateway.door import ADMIN, find_listening
from gateway.listeners import Listeners
from gateway.net.listener import ListenError
from gateway.settings.listen import ListenSettings
from tests.support.gateway import ANY_PORT, running_gateway

pytestmark = pytest.mark.asyncio


async def test_connection_is_taken_before_anything_answers():
    sock = await bind_socket("127.0.0.1", 0)
    _, writer = await asyncio.open_connection(*sock.getsockname())
    writer.close()
    sock.close()


async def test_port_in_use_is_told():
    sock = await bind_socket("127.0.0.1", 0)
    with pytest.raises(ListenError, match="admin"):
        await bind_socket(*sock.getsockname())
    sock.close()


async def test_of_addresses_one_of_which_is_taken_none_is_kept_or_noted(tmp_path, monkeypatch):
    made = []

    async def note(host, port):
        made.append(await bind_socket(host, port))
        return made[-1]

    monkeypatch.setattr("gateway.admin.bound.bind_socket", note)
    async with running_gateway(tmp_path) as gateway:
        listeners = Listeners(gateway.capacity)
        taken = await bind_socket("127.0.0.1", 0)
        addresses = [ANY_PORT, f"127.0.0.1:{taken.getsockname()[1]}"]
        with pytest.raises(ListenError):
            await bind_all(find_listening(ADMIN, [ListenSettings(address=each) for each in addresses]), listeners)
        assert [sock.fileno() for sock in made] == [-1]
        assert listeners.first() == {}
        taken.close()
