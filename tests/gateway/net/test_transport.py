from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import socket
import struct

import pytest

from core.metrics import LoopMetrics
from gateway.limits_settings import AddressLimitsSettings
from gateway.net.limits import TURNED_MAX, ConnectionLimits
from gateway.net.paces import AllPaces, ListenerRates
from gateway.net.shares import READS_NS, Shares
from gateway.net.transport import HIGH_WATER_BYTES, UNREAD_BYTES_MAX
from tests.support.connections import RecordingHandler, open_site, run_turns

pytestmark = pytest.mark.asyncio


async def test_bytes_go_to_the_handler_and_back():
    async with open_site() as site:
        reader, writer = await site.connect()
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        (handler,) = site.handlers
        assert handler.transport.conn_id == 1
        assert handler.transport.peer == f"127.0.0.1:{writer.get_extra_info('sockname')[1]}"
        assert handler.transport.peer_host[:4] == b"\x7f\x00\x00\x01"
        assert handler.transport.local_address == site.address
        writer.close()
        await handler.until("closed")
        assert len(site.table) == 0
        assert handler.calls == ["data", "eof", "closed"]


async def test_connection_has_the_rates_of_its_address_and_of_the_one_that_it_came_to():
    async with open_site() as site:
        paces = AllPaces(AddressLimitsSettings(bytes_out_rate=7), site.clock.now_ms).of("test", 0)
        site.endpoint.paces = paces.at(ListenerRates(messages=9))
        reader, writer = await site.connect()
        writer.write(b"x")
        assert await reader.readexactly(1) == b"x"
        shared = site.handlers[0].transport.shared
        assert [rate.per_s for rates in shared.incoming for rate in rates.messages] == [9]
        assert [rate.per_s for rates in shared.outgoing for rate in rates.sizes] == [7]
        writer.close()
        await site.handlers[0].until("closed")


async def test_operators_who_listen_are_told_of_a_connection_when_it_comes_and_when_it_goes():
    async with open_site() as site:
        told = []
        site.endpoint.events.listen(told.append)
        _, writer = await site.connect()
        writer.write(b"x")
        while not site.handlers:
            await asyncio.sleep(0)
        (handler,) = site.handlers
        handler.transport.end_reason = "enough"
        handler.transport.close()
        writer.close()
        await handler.until("closed")
        await run_turns()
        assert [(event.kind, event.actor.conn_id, event.fields) for event in told] == [
            ("connection.created", 1, {}),
            ("connection.closed", 1, {"reason": "enough"}),
        ]


class ClosedDoor:
    """Lets nobody in until it is told to."""

    def __init__(self):
        self.waiting = []

    def may_enter(self, newcomer):
        self.waiting.append(newcomer)
        return False


async def test_newcomer_that_has_to_wait_is_heard_whole_and_is_not_late():
    async with open_site() as site:
        door = site.endpoint.admission = ClosedDoor()
        site.prepare = lambda handler: setattr(handler, "deadline_ms", site.clock.now_ms() + 1_000)
        reader, writer = await site.connect()
        writer.write(b"hello ")
        while not door.waiting:
            await asyncio.sleep(0)
        writer.write(b"again")
        await run_turns()
        (handler,) = site.handlers
        assert handler.calls == []
        assert handler.transport.next_deadline_ms() is None
        door.waiting[0].admit()
        assert handler.transport.next_deadline_ms() == handler.deadline_ms
        assert await reader.readexactly(11) == b"hello again"
        writer.write(b"!")
        assert await reader.readexactly(1) == b"!"
        assert len(door.waiting) == 1
        writer.close()


async def test_newcomer_that_is_gone_before_its_turn_is_not_heard():
    async with open_site() as site:
        door = site.endpoint.admission = ClosedDoor()
        _, writer = await site.connect()
        writer.write(b"hello")
        while not door.waiting:
            await asyncio.sleep(0)
        (handler,) = site.handlers
        handler.transport.abort()
        await handler.until("closed")
        door.waiting[0].admit()
        assert handler.calls == ["closed"]
        writer.close()


async def test_connection_is_logged_when_it_comes_and_when_it_goes_with_the_reason(caplog):
    caplog.set_level(logging.INFO, "gateway.net.transport")
    async with open_site() as site:
        site.prepare = lambda handler: setattr(handler, "echoes", False)
        _, writer = await site.connect()
        writer.write(b"x")
        writer.close()
        while not site.handlers:
            await asyncio.sleep(0)
        await site.handlers[0].until("closed")
        client, handler = await site.connect_socket()
        handler.transport.end_reason = "enough"
        handler.transport.close()
        await handler.until("closed")
        client.close()
    said = [record.getMessage() for record in caplog.records]
    first, second = (f"door=test peer={handler.transport.peer}" for handler in site.handlers)
    assert said == [
        f"connected conn=1 {first}",
        f"disconnected conn=1 {first} reason=closed by the peer",
        f"connected conn=2 {second}",
        f"disconnected conn=2 {second} reason=enough",
    ]


async def until_lost(site):
    async with asyncio.timeout(5):
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
        await asyncio.wait_for(more, 5)
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


async def test_handler_that_fails_costs_its_own_connection_only(caplog):
    caplog.set_level(logging.CRITICAL, "gateway.net.transport")
    async with open_site() as site:
        good_reader, good_writer = await site.connect()
        good_writer.write(b"1")
        await good_reader.readexactly(1)
        site.prepare = lambda handler: setattr(handler, "fails_on", ("data",))
        bad_reader, bad_writer = await site.connect()
        bad_writer.write(b"x")
        with pytest.raises(ConnectionResetError):
            assert await bad_reader.read() == b""
            raise ConnectionResetError
        bad_writer.close()
        good_writer.write(b"2")
        assert await good_reader.readexactly(1) == b"2"
        assert site.handlers[1].calls == ["data", "closed"]
        good_writer.close()


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
            got += await asyncio.wait_for(loop.sock_recv(client, 1 << 20), 5)
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


async def test_deadline_of_a_handler_is_met_once():
    async with open_site() as site:
        site.prepare = lambda handler: setattr(handler, "deadline_ms", site.clock.now_ms() + 1_000)
        reader, writer = await site.connect()
        writer.write(b"x")
        await reader.readexactly(1)
        handler = site.handlers[0]
        at_ms = handler.deadline_ms
        site.timer.run_due(at_ms - 300)
        assert "timer" not in handler.calls
        site.timer.run_due(at_ms + 500)
        site.timer.run_due(at_ms + 1_000)
        assert handler.calls.count("timer") == 1
        writer.close()


async def test_deadline_that_comes_nearer_outside_of_a_call_is_met():
    async with open_site() as site:
        _, writer = await site.connect()
        writer.write(b"x")
        while not site.handlers:
            await asyncio.sleep(0)
        handler = site.handlers[0]
        await handler.until("data")
        handler.deadline_ms = site.clock.now_ms()
        handler.transport.deadline_changed()
        site.timer.run_due(handler.deadline_ms + 500)
        assert "timer" in handler.calls
        writer.close()


async def test_connection_over_the_limit_is_closed_and_counted():
    async with open_site(ConnectionLimits(count_max=1)) as site:
        reader, writer = await site.connect()
        writer.write(b"x")
        await reader.readexactly(1)
        second_reader, second_writer = await site.connect()
        with pytest.raises(ConnectionResetError):
            assert await second_reader.read() == b""
            raise ConnectionResetError
        assert site.refused == {"connections_max": 1}
        came, _ = site.endpoint.events.churn.find_connections(9)
        assert {(one.host, one.outcome): count for one, count in came}["127.0.0.1", "connections_max"] == 1
        assert len(site.handlers) == 1
        second_writer.close()
        writer.close()
        await site.handlers[0].until("closed")
        third_reader, third_writer = await site.connect()
        third_writer.write(b"y")
        assert await third_reader.readexactly(1) == b"y"
        third_writer.close()


async def test_connection_over_the_limit_is_told_so_where_the_door_tells(caplog):
    caplog.set_level(logging.INFO, "gateway.net")
    limits = ConnectionLimits(count_max=1)
    async with open_site(limits) as site:
        turned = []

        def turn_away(transport):
            turned.append(RecordingHandler(transport))
            turned[-1].look = transport.close if not transport.write(b"full") else None
            return turned[-1]

        site.endpoint.turn_away = turn_away
        reader, writer = await site.connect()
        writer.write(b"x")
        await reader.readexactly(1)
        second_reader, second_writer = await site.connect()
        second_writer.write(b"hello")
        assert await second_reader.readexactly(4) == b"full"
        await turned[0].until("closed")
        assert turned[0].transport.refusal == "connections_max"
        assert bytes(turned[0].received) == b"hello"
        assert (limits.count, limits.turned_count, site.refused) == (1, 0, {"connections_max": 1})
        limits.turned_count = TURNED_MAX
        third_reader, third_writer = await site.connect()
        with contextlib.suppress(ConnectionResetError):
            assert await third_reader.read() == b""
        assert len(turned) == 1
        for one in (writer, second_writer, third_writer):
            one.close()
        await site.handlers[0].until("closed")
        assert limits.count == 0
    said = [record.getMessage() for record in caplog.records]
    assert sum("refused connection" in line for line in said) == 2
    assert sum(line.startswith(("connected", "disconnected")) for line in said) == 2


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
