from __future__ import annotations

import asyncio
import ipaddress

import pytest

from gateway.admin.carried import CarriedProtocol
from gateway.net.streams.layer import StreamError
from gateway.net.streams.proxy_header import ProxyHeader
from gateway.net.streams.tls import TlsLayer
from gateway.net.streams.tls_context import make_context
from tests.support.certificates import client_context, make_files

pytestmark = pytest.mark.asyncio


class Echo(asyncio.Protocol):
    """Says its peer's name, then what it hears; closes after `bye`."""

    def connection_made(self, transport):
        self.transport = transport
        transport.pause_reading()
        transport.resume_reading()
        name = transport.get_extra_info("peername")[0]
        transport.write(f"{name} {bool(transport.get_extra_info('sslcontext'))}\n".encode())

    def data_received(self, data):
        self.transport.write(data)
        assert self.transport.get_write_buffer_size() >= 0
        if data.endswith(b"bye"):
            self.transport.close()
            self.transport.close()
            assert self.transport.is_closing()
            self.transport.write(b"late")


class Site:
    def __init__(self, make_layers, is_full=lambda host: False):
        self.waiting = set()
        self.make = lambda: CarriedProtocol(make_layers, Echo, is_full, self.waiting)

    async def __aenter__(self):
        self.server = await asyncio.get_running_loop().create_server(self.make, "127.0.0.1", 0)
        return self.server.sockets[0].getsockname()

    async def __aexit__(self, *exc_info):
        self.server.close()
        async with asyncio.timeout(20):
            while self.waiting:
                await asyncio.sleep(0.001)


async def test_bytes_go_both_ways_through_the_layers_with_the_peer_that_the_proxy_told():
    context = make_context(make_files())
    networks = [ipaddress.ip_network("127.0.0.0/8")]
    async with Site(lambda host: [ProxyHeader(host, networks), TlsLayer(context)]) as address:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"PROXY TCP4 192.0.2.7 192.0.2.9 1 2\r\n")
        await writer.start_tls(client_context(), server_hostname="127.0.0.1")
        assert await reader.readline() == b"192.0.2.7 True\n"
        writer.write(b"x" * 100_000)
        assert await reader.readexactly(100_000) == b"x" * 100_000
        writer.write(b"bye")
        assert await reader.read() == b"bye"
        writer.close()


async def test_a_peer_that_ends_is_forgotten():
    context = make_context(make_files())
    async with Site(lambda _: [TlsLayer(context)]) as address:
        reader, writer = await asyncio.open_connection(*address, ssl=client_context())
        assert await reader.readline() == b"127.0.0.1 True\n"
        writer.close()
        await writer.wait_closed()


def refuse(host):
    raise StreamError("proxy", f"{host} is not trusted")


async def test_who_may_not_connect_or_is_one_too_many_is_closed(caplog):
    async with Site(refuse) as address:
        reader, writer = await asyncio.open_connection(*address)
        assert await reader.read() == b""
        writer.close()
    assert "reason=proxy: 127.0.0.1 is not trusted" in caplog.text
    async with Site(refuse, is_full=lambda host: True) as address:
        reader, writer = await asyncio.open_connection(*address)
        with pytest.raises(ConnectionResetError):
            assert await reader.read() == b""
            raise ConnectionResetError
        writer.close()
