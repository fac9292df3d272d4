from __future__ import annotations

import asyncio

import pytest

from gateway.net.limits import ConnectionLimits
from gateway.net.listener import Listener, ListenError
from tests.support.connections import Site, open_site


@pytest.mark.asyncio
async def test_port_in_use_is_said_in_one_line():
    site = Site(ConnectionLimits())
    first = Listener("mqtt", site.endpoint, "127.0.0.1", 0)
    host, port = await first.start()
    with pytest.raises(ListenError, match=rf"cannot listen for mqtt on {host}:{port}: the address is in use"):
        await Listener("mqtt", site.endpoint, host, port).start()
    first.stop()
    first.stop()


@pytest.mark.asyncio
async def test_address_that_is_not_ours_is_said_in_one_line():
    site = Site(ConnectionLimits())
    with pytest.raises(ListenError, match=r"192\.0\.2\.1:0"):
        await Listener("mqtt", site.endpoint, "192.0.2.1", 0).start()


@pytest.mark.asyncio
async def test_newcomers_wait_while_it_is_paused_and_come_in_then():
    async with open_site() as site:
        listener = Listener("mqtt", site.endpoint, "127.0.0.1", 0)
        address = await listener.start()
        first, first_writer = await asyncio.open_connection(*address)
        first_writer.write(b"a")
        assert await first.readexactly(1) == b"a"
        for _ in range(3):
            listener.pause()
            assert listener.waiting_count() == 0
            waiting, writer = await asyncio.open_connection(*address)
            writer.write(b"b")
            async with asyncio.timeout(20):
                while not listener.waiting_count():
                    await asyncio.sleep(0.01)
            first_writer.write(b"a")
            assert await first.readexactly(1) == b"a"
            assert len(site.handlers) == 1
            listener.resume()
            assert await waiting.readexactly(1) == b"b"
            writer.close()
            await site.handlers.pop().until("closed")
        listener.pause()
        listener.resume()
        listener.stop()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*address)
        first_writer.close()
