from __future__ import annotations

import pytest

from gateway.net.limits import ConnectionLimits
from gateway.net.listener import Listener, ListenError
from tests.support.connections import Site


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
