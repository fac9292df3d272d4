from __future__ import annotations

import asyncio
import contextlib
import logging

import pytest

from gateway.net.limits import TURNED_MAX, ConnectionLimits
from gateway.net.paces import AllPaces, ListenerRates
from gateway.settings.limits import AddressLimitsSettings
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
