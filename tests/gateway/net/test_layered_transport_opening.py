"""Connections that do not get past their layers: refused, broken off, stuck in a handshake."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import ssl

import pytest

from gateway.net.layered_transport import OPEN_MS
from gateway.net.limits import ConnectionLimits
from gateway.net.streams.layer import StreamError
from gateway.net.streams.proxy_header import ProxyHeader
from gateway.net.streams.websocket import WebSocketLayer
from tests.support.certificates import authority_file, client_files
from tests.support.connections import open_site, run_turns
from tests.support.tls_connections import close, connect, open_tls_site
from tests.support.waiting import until

pytestmark = pytest.mark.asyncio


async def test_clients_that_are_refused_cost_one_line_and_nobody_else_anything(caplog):
    caplog.set_level(logging.INFO, "gateway.net")
    async with open_tls_site(client_ca=authority_file()) as site:
        reader, writer = await connect(site, shows=client_files())
        with pytest.raises((ssl.SSLError, ConnectionError)):
            other_reader, other = await connect(site)
            other.write(b"x")
            await other_reader.readexactly(1)
        plain = socket.create_connection(site.address)
        plain.sendall(b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x00\x00\x00")
        await until(lambda: len(site.table) == 1 + 1)
        plain.close()
        await until(lambda: len(site.table) == 1)
        writer.write(b"still")
        assert await reader.readexactly(5) == b"still"
        assert site.refused == {"tls": 2}
        socket.create_connection(site.address).close()
        churn = site.endpoint.events.churn
        await until(lambda: len(churn.find_connections(9)[0]) == 4)
        assert [(one.outcome, count) for one, count in churn.find_connections(9)[0]] == [
            ("connected", 1),
            ("gone before its handshake was over", 1),
            ("tls: no TLS, but MQTT", 1),
            ("tls: peer did not return a certificate", 1),
        ]
        said = [record.getMessage() for record in caplog.records if "conn=1 " not in record.getMessage()]
        assert len(said) == 3
        assert said[0].startswith("refused connection door=test peer=127.0.0.1:")
        assert said[0].endswith("reason=tls: peer did not return a certificate")
        assert said[1].endswith("reason=tls: no TLS, but MQTT")
        assert len(site.handlers) == 1
        await close(writer)


async def test_a_handshake_that_stands_still_ends_in_time_and_counts_to_the_limit(caplog):
    caplog.set_level(logging.WARNING, "gateway.net")
    async with open_tls_site(limits=ConnectionLimits(count_max=3)) as site:
        stuck = [socket.create_connection(site.address) for _ in range(3)]
        stuck[0].sendall(b"\x16\x03\x01\x02\x00\x01")
        await until(lambda: len(site.table) == 3)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await connect(site)
        now_ms = site.clock.now_ms()
        site.timer.run_due(now_ms + OPEN_MS - 1_000)
        assert len(site.table) == 3
        site.timer.run_due(now_ms + OPEN_MS + 1_000)
        await until(lambda: not len(site.table))
        assert site.refused == {"connections_max": 1, "handshake": 3}
        assert site.handlers == []
        assert sum("reason=handshake: it takes too long" in record.getMessage() for record in caplog.records) == 3
        reader, writer = await connect(site)
        writer.write(b"x")
        assert await reader.readexactly(1) == b"x"
        await close(writer)
        for sock in stuck:
            sock.close()


@pytest.mark.parametrize(
    ("make_layer", "said"),
    [
        (lambda host: WebSocketLayer("/mqtt"), b""),
        (lambda host: WebSocketLayer("/mqtt"), b"GET /mqtt HTTP/1.1\r\nHost: x\r\n"),
        (lambda host: ProxyHeader(host, TRUSTED), b""),
        (lambda host: ProxyHeader(host, TRUSTED), b"PROXY TCP4 192.0.2.7"),
        (lambda host: ProxyHeader(host, TRUSTED), b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c"),
    ],
    ids=["websocket", "half a request", "proxy", "half a line", "half a header"],
)
async def test_a_beginning_that_stands_still_ends_in_time_whatever_the_layer(make_layer, said):
    async with open_site(make_layers=lambda host: [make_layer(host)]) as site:
        with socket.create_connection(site.address) as stuck:
            stuck.setblocking(False)
            await until(lambda: len(site.table) == 1)
            for byte in said:  # it drips, and that gains no time
                await asyncio.get_running_loop().sock_sendall(stuck, bytes([byte]))
                await run_turns()
            now_ms = site.clock.now_ms()
            site.timer.run_due(now_ms + OPEN_MS - 1_000)
            assert len(site.table) == 1
            site.timer.run_due(now_ms + OPEN_MS + 1_000)
            await until(lambda: not len(site.table))
            assert site.refused == {"handshake": 1}
            assert site.handlers == []


async def test_a_peer_that_leaves_during_the_handshake_is_forgotten(caplog):
    caplog.set_level(logging.INFO, "gateway.net")
    async with open_tls_site() as site:
        client = socket.create_connection(site.address)
        client.sendall(b"\x16\x03\x01\x02\x00\x01")
        await until(lambda: len(site.table) == 1)
        client.close()
        await until(lambda: not len(site.table))
        site.timer.run_due(site.clock.now_ms() + 2 * OPEN_MS)
        assert site.refused == {}
        (said,) = [record.getMessage() for record in caplog.records]
        assert said.startswith("disconnected conn=1")


async def test_layers_that_a_host_may_not_have_refuse_it():
    def make_layers(host):
        raise StreamError("proxy", f"{host} is not trusted")

    async with open_site(make_layers=make_layers) as site:
        reader, writer = await site.connect()
        assert await reader.read() == b""
        assert site.refused == {"proxy": 1}
        assert site.handlers == []
        writer.close()
        await until(lambda: not len(site.table))


async def test_a_fleet_that_comes_at_once_waits_for_its_turn_and_none_is_late():
    waiting = []

    async with open_tls_site() as site:
        site.endpoint.admission = type("ClosedDoor", (), {"may_enter": lambda _, newcomer: waiting.append(newcomer)})()
        task = asyncio.create_task(connect(site))
        await until(lambda: waiting)
        site.timer.run_due(site.clock.now_ms() + 2 * OPEN_MS)
        assert waiting[0].next_deadline_ms() is None
        waiting[0].admit()
        reader, writer = await task
        writer.write(b"x")
        assert await reader.readexactly(1) == b"x"
        await close(writer)


TRUSTED = [ipaddress.ip_network("127.0.0.0/8")]
