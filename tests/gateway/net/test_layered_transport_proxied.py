"""The addresses of peers behind a proxy."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import socket
import struct

import pytest

from gateway.address import is_loopback
from gateway.net.limits import ConnectionLimits
from gateway.net.paces import AllPaces
from gateway.net.streams.proxy_header import ProxyHeader
from gateway.settings.limits import AddressLimitsSettings
from tests.support.connections import open_site
from tests.support.waiting import until

pytestmark = pytest.mark.asyncio

TRUSTED = [ipaddress.ip_network("127.0.0.0/8")]


def open_proxied_site(limits=None):
    return open_site(limits, make_layers=lambda host: [ProxyHeader(host, TRUSTED)], is_proxied=True)


def told(host, port=40_000):
    return f"PROXY TCP4 {host} 192.0.2.99 {port} 1883\r\n".encode()


async def test_a_peer_has_the_address_that_its_proxy_tells():
    async with open_proxied_site() as site:
        reader, writer = await site.connect()
        writer.write(told("192.0.2.7") + b"hello")
        assert await reader.readexactly(5) == b"hello"
        transport = site.handlers[0].transport
        assert transport.peer == "192.0.2.7:40000"
        assert transport.peer_host == b"\xc0\x00\x02\x07\x00\x00\x9c\x40"
        assert transport.local_address == ("192.0.2.99", 1883)
        writer.write(b"more")
        assert await reader.readexactly(4) == b"more"
        writer.close()
        await site.handlers[0].until("closed")


async def test_limits_of_hosts_are_for_those_behind_the_proxy():
    async with open_proxied_site(ConnectionLimits(host_count_max=1)) as site:
        peers = []
        for host in ("192.0.2.1", "192.0.2.2", "192.0.2.1"):
            reader, writer = await site.connect()
            writer.write(told(host) + b"x")
            peers.append((reader, writer))
        assert [await reader.readexactly(1) for reader, _ in peers[:2]] == [b"x", b"x"]
        with contextlib.suppress(ConnectionResetError):
            assert await peers[2][0].read() == b""
        assert site.refused == {"host_connections_max": 1}
        for _, writer in peers:
            writer.close()
        await until(lambda: not len(site.table))
        reader, writer = await site.connect()
        writer.write(told("192.0.2.1") + b"x")
        assert await reader.readexactly(1) == b"x"
        writer.close()


async def test_rates_of_hosts_are_for_those_behind_the_proxy():
    async with open_proxied_site() as site:
        limits = AddressLimitsSettings(connects_rate=1, messages_rate=7)
        site.endpoint.paces = AllPaces(limits, lambda: 0).of("test", 0)
        peers = []
        for host in ("192.0.2.1", "192.0.2.2", "192.0.2.1"):
            reader, writer = await site.connect()
            writer.write(told(host) + b"x")
            peers.append((reader, writer))
        assert [await reader.readexactly(1) for reader, _ in peers[:2]] == [b"x", b"x"]
        with contextlib.suppress(ConnectionResetError):
            assert await peers[2][0].read() == b""
        assert site.refused == {"address_connects_rate": 1}
        assert [handler.transport.shared.incoming[0].messages[0].per_s for handler in site.handlers] == [7, 7]
        for _, writer in peers:
            writer.close()


async def test_who_does_not_say_for_whom_is_not_taken_for_somebody_on_this_machine():
    async with open_proxied_site() as site:
        reader, writer = await site.connect()
        writer.write(b"PROXY UNKNOWN\r\nx")
        assert await reader.readexactly(1) == b"x"
        peer = site.handlers[0].transport.peer
        assert peer.startswith("via 127.0.0.1:")
        assert not is_loopback(peer)
        writer.close()


async def test_a_check_that_is_gone_before_it_is_looked_at_is_not_refused(caplog):
    caplog.set_level(logging.INFO)
    async with open_proxied_site() as site:
        with socket.create_connection(site.address) as check:  # as HAProxy checks: the header, then a reset
            check.sendall(told("192.0.2.7"))
            check.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        reader, writer = await site.connect()  # taken behind it
        writer.write(told("192.0.2.8") + b"x")
        assert await reader.readexactly(1) == b"x"
        assert site.refused == {}
        assert len(site.table) == 1
        assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []
        writer.close()
