"""Connections over TLS: what a handler sees is what it sees without."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import ssl

import pytest

from core.metrics import LoopMetrics
from gateway.address import is_loopback
from gateway.net.shares import READS_NS, Shares
from gateway.net.transport import HIGH_WATER_BYTES, UNREAD_BYTES_MAX
from tests.support.certificates import authority_file, client_files
from tests.support.connections import open_site, run_turns
from tests.support.tls_connections import close, connect, open_tls_site
from tests.support.waiting import until

pytestmark = pytest.mark.asyncio


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
            got += await asyncio.wait_for(reader.read(1 << 20), 20)
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
