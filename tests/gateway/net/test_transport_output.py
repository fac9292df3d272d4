"""What is written to a peer: in order, bounded, and before the end."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct

import pytest

from gateway.net.transport import HIGH_WATER_BYTES, UNREAD_BYTES_MAX
from tests.support.connections import open_site, run_turns

pytestmark = pytest.mark.asyncio


async def until_lost(site):
    async with asyncio.timeout(20):
        while len(site.table):
            await asyncio.sleep(0)


@pytest.mark.parametrize("is_paused", [False, True])
async def test_last_words_reach_a_peer_that_is_still_sending(is_paused):
    async with open_site() as site:
        site.prepare = lambda handler: setattr(handler, "echoes", False)
        client, handler = await site.connect_socket()
        loop = asyncio.get_running_loop()
        if is_paused:
            handler.transport.pause_reading()
        more = loop.create_task(loop.sock_sendall(client, bytes(8 << 20)))
        await asyncio.sleep(0)
        handler.transport.write(b"bye")
        handler.transport.finish()
        count = handler.calls.count("data")
        await asyncio.wait_for(more, 20)
        assert await loop.sock_recv(client, 10) == b"bye"
        assert await loop.sock_recv(client, 10) == b""
        assert handler.calls.count("data") == count
        assert len(site.table) == 1
        client.close()
        await until_lost(site)


async def test_a_peer_that_does_not_end_is_waited_for_only_so_long():
    async with open_site() as site:
        client, handler = await site.connect_socket()
        handler.transport.finish()
        handler.transport.finish()
        assert handler.transport.next_deadline_ms() is not None
        handler.transport.on_deadline(handler.transport.next_deadline_ms())
        await until_lost(site)
        assert handler.calls.count("closed") == 1
        client.close()


async def test_nobody_waits_for_a_peer_that_has_ended():
    async with open_site() as site:
        site.prepare = lambda handler: setattr(handler, "closes_at_eof", False)
        client, handler = await site.connect_socket()
        client.shutdown(socket.SHUT_WR)
        await handler.until("eof")
        handler.transport.finish()
        await until_lost(site)
        client.close()


async def test_output_over_the_high_water_mark_is_told_and_told_again_when_it_fell():
    async with open_site() as site:
        site.prepare = lambda handler: setattr(handler, "echoes", False)
        client, handler = await site.connect_socket()
        loop = asyncio.get_running_loop()
        sent = 0
        while handler.transport.is_writable:
            handler.transport.write(bytes(HIGH_WATER_BYTES))
            sent += HIGH_WATER_BYTES
            await asyncio.sleep(0)
        got = 0
        while got < sent:
            got += len(await loop.sock_recv(client, 1 << 20))
        await handler.until("writable")
        assert handler.transport.is_writable
        client.close()


async def test_answers_that_the_peer_does_not_read_stay_bounded_and_all_come_once_it_does():
    async with open_site() as site:
        client, handler = await site.connect_socket()
        loop = asyncio.get_running_loop()
        sent = bytearray(b"x")
        block = bytes(range(256)) * 256
        with contextlib.suppress(TimeoutError):
            while len(sent) < 64 << 20:  # it ends long before: what the system's buffers take too
                await asyncio.wait_for(loop.sock_sendall(client, block), 0.5)
                sent += block
        behind = len(handler.received)
        await run_turns()
        assert len(handler.received) == behind  # nothing more is read
        assert behind < UNREAD_BYTES_MAX + (16 << 20)  # the system's own buffers, at both ends, hold some 10 MB
        got = bytearray()
        while len(got) < len(sent):  # a part of one more block may be there
            got += await asyncio.wait_for(loop.sock_recv(client, 1 << 20), 20)
        assert got[: len(sent)] == sent
        client.close()


@pytest.mark.parametrize("size", [300, 70_000, 3_000_000])
async def test_bytes_arrive_in_order_whether_the_socket_took_them_or_they_had_to_wait(size):
    async with open_site() as site:
        site.prepare = lambda handler: setattr(handler, "echoes", False)
        client, handler = await site.connect_socket()
        loop = asyncio.get_running_loop()
        sent, got = bytearray(), bytearray()
        for step in range(50):
            for number in range(20):
                if handler.transport.is_writable:
                    data = bytes([(step * 20 + number) % 251]) * (size - step)
                    sent += data
                    scratch = bytearray(data)
                    handler.transport.write(data if number % 2 else memoryview(scratch))
                    scratch[:] = bytes(len(scratch))  # what is not `bytes` may be used again
                with contextlib.suppress(BlockingIOError):
                    got += client.recv(1 << 20)  # there is room again, which the loop does not know yet
            while len(got) < len(sent) - size * (step % 3):
                got += await loop.sock_recv(client, 1 << 20)
        while len(got) < len(sent):
            got += await loop.sock_recv(client, 1 << 20)
        assert got == sent
        client.close()


async def test_output_to_a_peer_that_broke_off_ends_the_connection_once():
    async with open_site() as site:
        client, handler = await site.connect_socket()
        handler.transport.pause_reading()  # so that only a write can find it out
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        while "closed" not in handler.calls:
            handler.transport.write(b"y" * 1_000)
            await asyncio.sleep(0)
        handler.transport.write(b"too late")
        assert handler.calls == ["data", "closed"]
        assert len(site.table) == 0


async def test_written_bytes_are_sent_before_a_close_and_none_after():
    async with open_site() as site:
        reader, writer = await site.connect()
        writer.write(b"x")
        await reader.readexactly(1)
        transport = site.handlers[0].transport
        scratch = bytearray(b"farewell")
        transport.write(memoryview(scratch))
        scratch[:] = b"????????"
        transport.close()
        transport.write(b"too late")
        transport.close()
        assert await reader.read() == b"farewell"
        writer.close()


async def test_a_peer_that_sends_no_more_is_answered_before_the_close():
    async with open_site() as site:
        site.prepare = lambda handler: setattr(handler, "closes_at_eof", False)
        reader, writer = await site.connect()
        writer.write(b"x")
        writer.write_eof()
        assert await reader.readexactly(1) == b"x"
        (handler,) = site.handlers
        await handler.until("eof")
        transport = handler.transport
        for change in (transport.pause_reading, transport.resume_reading, transport.hold_reading):
            change()
        transport.release_reading()
        await run_turns()
        assert handler.calls == ["data", "eof"]
        transport.write(b"late")
        transport.close()
        assert await reader.read() == b"late"
        await handler.until("closed")
        writer.close()


async def test_a_peer_that_sends_no_more_is_not_kept_for_answers_that_never_come():
    async with open_site() as site:
        site.prepare = lambda handler: setattr(handler, "closes_at_eof", False)
        reader, writer = await site.connect()
        writer.write(b"x")
        await reader.readexactly(1)
        writer.write_eof()
        (handler,) = site.handlers
        await handler.until("eof")
        deadline_ms = handler.transport.next_deadline_ms()
        assert site.clock.now_ms() + 4_000 < deadline_ms <= site.clock.now_ms() + 5_000
        site.timer.run_due(deadline_ms - 300)
        assert "closed" not in handler.calls
        site.timer.run_due(deadline_ms + 500)
        await handler.until("closed")
        assert "timer" not in handler.calls
        writer.close()


async def test_close_of_a_peer_that_reads_nothing_ends_in_time():
    async with open_site() as site:
        reader, writer = await site.connect()
        writer.write(b"x")
        await reader.readexactly(1)
        handler = site.handlers[0]
        reader._transport.pause_reading()
        while handler.transport.is_writable:
            handler.transport.write(bytes(HIGH_WATER_BYTES))
            await asyncio.sleep(0)
        handler.transport.close()
        deadline_ms = handler.transport.next_deadline_ms()
        assert deadline_ms > site.clock.now_ms() + 4_000
        site.timer.run_due(deadline_ms + 500)
        await handler.until("closed")
        writer.transport.abort()
