from __future__ import annotations

import pytest

from gateway.net.limits import ConnectionLimits
from gateway.net.listener import Listener, ListenError, format_address, parse_address
from tests.support.connections import Site


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:1883", ("127.0.0.1", 1883)),
        ("[::1]:0", ("::1", 0)),
        (":5672", ("", 5672)),
        ("off", None),
    ],
)
def test_addresses_are_host_and_port_or_off(text, address):
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "1883", "host:", "host:-1", "host:65536", "host:\u0661"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ValueError, match="HOST:PORT"):
        parse_address(text)


def test_ipv6_hosts_are_written_in_brackets():
    assert format_address("::1", 1883) == "[::1]:1883"
    assert format_address("127.0.0.1", 1883) == "127.0.0.1:1883"


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
