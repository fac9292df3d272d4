"""Connections over TLS: what a handler sees is what it sees without."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import itertools
import logging
import os
import socket
import ssl

import pytest

from core.metrics import LoopMetrics
from gateway.address import is_loopback
from gateway.limits_settings import AddressLimitsSettings
from gateway.net.layered_transport import OPEN_MS
from gateway.net.limits import ConnectionLimits
from gateway.net.paces import AllPaces
from gateway.net.shares import READS_NS, Shares
from gateway.net.streams.layer import StreamError
from gateway.net.streams.proxy_header import ProxyHeader
from gateway.net.streams.tls import TlsLayer, TlsTerms
from gateway.net.streams.tls_context import make_context
from gateway.net.streams.websocket import WebSocketLayer
from gateway.net.transport import HIGH_WATER_BYTES, UNREAD_BYTES_MAX
from tests.support.certificates import authority_file, client_context, client_files, make_files
from tests.support.connections import open_site, run_turns

pytestmark = pytest.mark.asyncio


def open_tls_site(*, is_optional=False, names_user=False, limits=None, **files):
    context = make_context(make_files(**files))
    terms = TlsTerms(is_optional=is_optional, user_from="common_name" if names_user else None)
    return open_site(limits, make_layers=lambda _: [TlsLayer(context, terms)])


async def connect(site, **options):
    return await site.connect(ssl=client_context(**options))


async def until(condition):
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.001)


async def close(writer):
    writer.close()
    with contextlib.suppress(OSError, ssl.SSLError):
        await writer.wait_closed()


async def test_bytes_go_to_the_handler_and_back_and_both_ends_close_in_order():
    async with open_tls_site() as site:
        reader, writer = await connect(site)
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        (handler,) = site.handlers
        assert handler.transport.peer == f"127.0.0.1:{writer.get_extra_info('sockname')[1]}"
        assert handler.transport.local_address == site.address
        assert handler.transport.peer_name == ""
        await close(writer)
        await handler.until("closed")
        assert handler.calls == ["data", "eof", "closed"]
        assert len(site.table) == 0


async def test_much_goes_both_ways():
    async with open_tls_site() as site:
        reader, writer = await connect(site)
        sent = bytes(range(256)) * 40_000
        reading = asyncio.create_task(reader.readexactly(len(sent)))
        for at in range(0, len(sent), 100_000):
            writer.write(sent[at : at + 100_000])
            await writer.drain()
        assert await reading == sent
        assert len(site.handlers[0].calls) < len(sent) // 16_384  # by the read, not by the record
        await close(writer)


async def test_the_verified_name_of_a_client_is_there_before_it_says_anything():
    async with open_tls_site(client_ca=authority_file(), names_user=True) as site:
        names = []
        site.prepare = lambda handler: names.append(handler.transport.peer_name)
        _, writer = await connect(site, shows=client_files())
        await until(lambda: names)
        assert names == ["sensor-1"]
        await close(writer)


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


async def test_plain_peers_are_served_beside_tls_where_that_is_allowed():
    async with open_tls_site(is_optional=True) as site:
        plain_reader, plain = await site.connect()
        plain.write(b"plain")
        assert await plain_reader.readexactly(5) == b"plain"
        reader, writer = await connect(site)
        writer.write(b"secret")
        assert await reader.readexactly(6) == b"secret"
        plain.write(b"more")
        assert await plain_reader.readexactly(4) == b"more"
        plain.close()
        await site.handlers[0].until("closed")
        assert site.handlers[0].calls == ["data", "data", "eof", "closed"]
        await close(writer)


async def test_a_damaged_record_ends_a_connection_that_has_a_handler():
    async with open_tls_site() as site:
        reader, writer = await connect(site)
        writer.write(b"x")
        assert await reader.readexactly(1) == b"x"
        os.write(writer.get_extra_info("socket").fileno(), b"\x17\x03\x03\x00\x20" + bytes(32))
        (handler,) = site.handlers
        await handler.until("closed")
        assert handler.transport.end_reason.startswith("tls: ")
        assert site.refused == {}
        await close(writer)


async def test_answers_that_the_peer_does_not_read_stay_bounded_and_all_come_once_it_does():
    async with open_tls_site() as site:
        reader, writer = await connect(site)
        block = bytes(range(256)) * 256
        reader._transport.pause_reading()
        writer.transport.set_write_buffer_limits(1 << 16)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 64 << 20:  # it ends long before
                writer.write(block)
                sent += len(block)
                await asyncio.wait_for(writer.drain(), 0.5)
        (handler,) = site.handlers
        behind = len(handler.received)
        await run_turns()
        assert len(handler.received) == behind
        assert behind < UNREAD_BYTES_MAX + (16 << 20)
        reader._transport.resume_reading()
        got = bytearray()
        while len(got) < sent:
            got += await asyncio.wait_for(reader.read(1 << 20), 5)
        assert got == block * (sent // len(block))
        await close(writer)


async def test_high_water_is_told_and_told_again_when_it_fell():
    async with open_tls_site() as site:
        site.prepare = lambda handler: setattr(handler, "echoes", False)
        reader, writer = await connect(site)
        writer.write(b"x")
        await until(lambda: site.handlers and site.handlers[0].calls)
        (handler,) = site.handlers
        reader._transport.pause_reading()
        sent = 0
        while handler.transport.is_writable:
            handler.transport.write(bytes(HIGH_WATER_BYTES))
            sent += HIGH_WATER_BYTES
            await asyncio.sleep(0)
        reader._transport.resume_reading()
        assert await reader.readexactly(sent) == bytes(sent)
        await handler.until("writable")
        await close(writer)


async def test_last_words_and_the_end_reach_a_peer_that_is_still_sending():
    async with open_tls_site() as site:
        site.prepare = lambda handler: setattr(handler, "echoes", False)
        reader, writer = await connect(site)
        writer.write(b"x")
        await until(lambda: site.handlers and site.handlers[0].calls)
        (handler,) = site.handlers
        writer.write(bytes(1 << 20))
        handler.transport.write(b"bye")
        handler.transport.finish()
        handler.transport.write(b"too late")
        assert await reader.read() == b"bye"
        await close(writer)
        await until(lambda: not len(site.table))


async def test_work_that_is_left_is_done_before_more_is_taken_and_before_the_end_is_told():
    async with open_tls_site() as site:
        site.prepare = lambda handler: setattr(handler, "steps", 3)
        reader, writer = await connect(site)
        writer.write(b"a")
        assert await reader.readexactly(1) == b"a"
        (handler,) = site.handlers
        await until(lambda: handler.left == 0)
        writer.write(b"b")
        writer.transport.close()  # its end comes with the byte
        await handler.until("closed")
        assert handler.calls == ["data", "on", "on", "on", "data", "on", "on", "on", "eof", "closed"]


async def test_the_end_is_told_only_when_reading_is_not_paused():
    async with open_tls_site() as site:
        reader, writer = await connect(site)
        writer.write(b"a")
        assert await reader.readexactly(1) == b"a"
        (handler,) = site.handlers
        handler.look = handler.transport.pause_reading  # while it takes the last bytes
        writer.write(b"b")
        writer.transport.close()
        await until(lambda: handler.received == b"ab")
        await run_turns()
        assert "eof" not in handler.calls
        handler.transport.resume_reading()
        await handler.until("closed")
        assert handler.calls == ["data", "data", "eof", "closed"]


async def test_reads_wait_for_their_share_of_a_turn():
    async with open_tls_site() as site:
        moments = itertools.count(0, READS_NS)  # each share fills a turn
        site.endpoint.shares = Shares(asyncio.get_running_loop().call_soon, LoopMetrics(), moments.__next__)
        clients = await asyncio.gather(*(connect(site) for _ in range(5)))
        for word in (b"hello ", b"again"):
            for _, writer in clients:
                writer.write(word)
            for reader, _ in clients:
                assert await reader.readexactly(len(word)) == word
        assert [bytes(handler.received) for handler in site.handlers] == [b"hello again"] * 5
        for _, writer in clients:
            await close(writer)


async def test_handler_that_fails_at_once_costs_its_own_connection_only(caplog):
    caplog.set_level(logging.CRITICAL, "gateway.net.transport")

    def fail(handler):
        raise RuntimeError("a fault in the handler")

    async with open_tls_site() as site:
        site.prepare = fail
        with contextlib.suppress(OSError, ssl.SSLError, asyncio.IncompleteReadError):
            reader, writer = await connect(site)
            writer.write(b"x")
            await reader.readexactly(1)
        await until(lambda: not len(site.table))
        site.prepare = lambda handler: None
        reader, writer = await connect(site)
        writer.write(b"x")
        assert await reader.readexactly(1) == b"x"
        await close(writer)


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


async def test_much_that_comes_in_small_pieces_lets_others_have_their_turn():
    async with open_tls_site() as site:
        moments = itertools.count(0, READS_NS)  # a share is over whenever it is asked
        site.endpoint.shares = Shares(asyncio.get_running_loop().call_soon, LoopMetrics(), moments.__next__)
        reader, writer = await connect(site)
        site.prepare = lambda handler: None
        for _ in range(2_000):
            writer.transport.write(b"x")
        assert await reader.readexactly(2_000) == b"x" * 2_000
        (handler,) = site.handlers
        assert handler.calls.count("data") > 10
        writer.write(b"y")
        writer.transport.close()
        await handler.until("closed")
        assert handler.received == b"x" * 2_000 + b"y"


async def test_a_handler_that_asks_for_a_turn_gets_it_before_more_is_unpacked():
    async with open_tls_site() as site:
        reader, writer = await connect(site)
        writer.write(b"x")
        assert await reader.readexactly(1) == b"x"
        (handler,) = site.handlers
        handler.left = 2
        handler.transport.request_turn()
        writer.write(b"y")
        assert await reader.readexactly(1) == b"y"
        assert handler.calls == ["data", "on", "on", "data"]
        await close(writer)


# Who is behind a proxy

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


async def test_connections_by_a_unix_socket_are_of_this_machine(tmp_path):
    path = tmp_path / "door.sock"
    async with open_site(host=f"unix:{path}") as site:
        assert site.address == (f"unix:{path}", 0)
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        transport = site.handlers[0].transport
        assert transport.peer == "unix:0"
        assert is_loopback(transport.peer)
        assert transport.local_address == ("", 0)
        site.listener.pause()
        _, waiting = await asyncio.open_unix_connection(path)
        waiting.write(b"x")
        site.listener.resume()
        await until(lambda: len(site.handlers) == 2)
        for each in (writer, waiting):
            each.close()
        await until(lambda: not len(site.table))
