"""What is read of a peer: while it is not paused or held, and by the share of a turn."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from core.metrics import LoopMetrics
from gateway.net.limits import ConnectionLimits
from gateway.net.shares import READS_NS, Shares
from tests.support.connections import open_site, run_turns

pytestmark = pytest.mark.asyncio


async def test_paused_reading_takes_nothing_until_resumed():
    async with open_site() as site:
        reader, writer = await site.connect()
        writer.write(b"x")
        await reader.readexactly(1)
        transport = site.handlers[0].transport
        transport.pause_reading()
        transport.pause_reading()
        writer.write(b"y")
        await run_turns()
        assert site.handlers[0].received == b"x"
        transport.resume_reading()
        assert await reader.readexactly(1) == b"y"
        writer.close()


async def test_what_is_held_back_is_read_only_when_it_is_released_and_not_paused():
    async with open_site() as site:
        reader, writer = await site.connect()
        writer.write(b"a")
        assert await reader.readexactly(1) == b"a"
        transport = site.handlers[0].transport
        transport.hold_reading()
        transport.hold_reading()
        transport.pause_reading()
        transport.resume_reading()
        writer.write(b"b")
        transport.write(b"!")
        assert await reader.readexactly(1) == b"!"
        assert site.handlers[0].received == b"a"
        transport.pause_reading()
        transport.release_reading()
        transport.write(b"!")
        assert await reader.readexactly(1) == b"!"
        assert site.handlers[0].received == b"a"
        transport.resume_reading()
        assert await reader.readexactly(1) == b"b"
        transport.release_reading()
        writer.write(b"c")
        assert await reader.readexactly(1) == b"c"
        writer.close()
        await site.handlers[0].until("closed")


async def test_connection_whose_handler_left_work_is_not_read_before_it_went_on():
    async with open_site() as site:
        site.prepare = lambda handler: setattr(handler, "steps", 3)
        reader, writer = await site.connect()
        writer.write(b"a")
        assert await reader.readexactly(1) == b"a"
        (handler,) = site.handlers
        writer.write(b"b")
        writer.write_eof()
        assert await reader.read() == b"b"
        await handler.until("closed")
        assert handler.calls == ["data", "on", "on", "on", "data", "on", "on", "on", "eof", "closed"]
        writer.close()


async def test_others_are_read_between_the_steps_of_one():
    async with open_site() as site:
        site.prepare = lambda handler: setattr(handler, "steps", 1_000_000)
        busy_reader, busy = await site.connect()
        busy.write(b"a")
        assert await busy_reader.readexactly(1) == b"a"
        site.prepare = lambda handler: None
        reader, writer = await site.connect()
        for _ in range(3):
            writer.write(b"b")
            assert await reader.readexactly(1) == b"b"
        assert site.handlers[0].left > 0
        for each in (busy, writer):
            each.close()


@pytest.mark.parametrize("name", ["pause", "hold"])
async def test_work_that_is_left_waits_while_reading_is_paused_or_held(name):
    async with open_site() as site:
        site.prepare = lambda handler: setattr(handler, "steps", 2)
        reader, writer = await site.connect()
        writer.write(b"a")
        while not site.handlers or not site.handlers[0].calls:
            await asyncio.sleep(0)
        (handler,) = site.handlers
        transport = handler.transport
        (transport.pause_reading if name == "pause" else transport.hold_reading)()
        assert await reader.readexactly(1) == b"a"
        writer.write(b"b")
        await run_turns()
        assert handler.calls == ["data"]
        (transport.resume_reading if name == "pause" else transport.release_reading)()
        assert await reader.readexactly(1) == b"b"
        assert handler.calls[:4] == ["data", "on", "on", "data"]
        writer.close()


async def test_what_is_read_when_the_turn_is_full_is_handled_in_the_next_and_in_order():
    async with open_site() as site:
        moments = itertools.count(0, READS_NS)  # each share fills a turn
        site.endpoint.shares = Shares(asyncio.get_running_loop().call_soon, LoopMetrics(), moments.__next__)
        clients = [await site.connect() for _ in range(5)]
        for word in (b"hello ", b"again"):
            for _, writer in clients:
                writer.write(word)
            for reader, _ in clients:
                assert await reader.readexactly(len(word)) == word
        assert [bytes(handler.received) for handler in site.handlers] == [b"hello again"] * 5
        for _, writer in clients:
            writer.close()


async def test_connection_that_is_lost_while_work_is_left_is_closed_and_does_not_go_on():
    async with open_site() as site:
        site.prepare = lambda handler: setattr(handler, "steps", 1_000_000)
        _, writer = await site.connect()
        writer.write(b"a")
        while not site.handlers or "on" not in site.handlers[0].calls:
            await asyncio.sleep(0)
        (handler,) = site.handlers
        handler.transport.abort()
        await handler.until("closed")
        await run_turns()
        assert handler.calls[-1] == "closed"
        writer.close()


async def test_ends_that_a_turn_has_no_room_for_are_told_in_later_ones():
    async with open_site() as site:
        clients = [await site.connect() for _ in range(5)]
        for reader, writer in clients:
            writer.write(b"x")
            assert await reader.readexactly(1) == b"x"
        moments = itertools.count(0, READS_NS)  # each of them fills a turn
        site.endpoint.shares = Shares(asyncio.get_running_loop().call_soon, LoopMetrics(), moments.__next__)
        for _, writer in clients[:-1]:
            writer.write_eof()
        clients[-1][1].transport.abort()
        for handler in site.handlers:
            await handler.until("closed")
        assert [handler.calls for handler in site.handlers[:-1]] == [["data", "eof", "closed"]] * 4
        assert site.endpoint.connections == 0
        assert len(site.endpoint.table) == 0
        for _, writer in clients:
            writer.close()


async def test_what_a_handler_left_is_done_though_the_peer_ended_when_the_turn_was_full():
    async with open_site() as site:
        site.prepare = lambda handler: setattr(handler, "closes_at_eof", False)
        moments = itertools.count(0, READS_NS)
        site.endpoint.shares = Shares(asyncio.get_running_loop().call_soon, LoopMetrics(), moments.__next__)
        reader, writer = await site.connect()
        writer.write(b"x")
        assert await reader.readexactly(1) == b"x"
        (handler,) = site.handlers
        writer.write_eof()
        await handler.until("eof")
        handler.left = 1
        handler.transport.request_turn()
        await handler.until("on")
        assert handler.calls == ["data", "eof", "on"]
        handler.transport.abort()
        await handler.until("closed")
        writer.close()


async def test_a_place_is_free_as_soon_as_its_connection_is_gone_though_the_turn_is_full():
    async with open_site(ConnectionLimits(host_count_max=1)) as site:
        reader, writer = await site.connect()
        writer.write(b"x")
        assert await reader.readexactly(1) == b"x"
        site.endpoint.shares = Shares(lambda _turn: None, LoopMetrics(), lambda: READS_NS)
        site.endpoint.shares.end_aside(0)  # a turn that is full, and none comes after it
        transport = site.handlers[0].transport
        transport.abort()
        while transport.fileno() >= 0:
            await asyncio.sleep(0)
        _, another = await site.connect()
        async with asyncio.timeout(20):
            while len(site.handlers) == 1:
                await asyncio.sleep(0)
        assert site.refused == {}
        assert site.endpoint.connections == 1
        assert "closed" not in site.handlers[0].calls
        another.close()
        writer.close()
