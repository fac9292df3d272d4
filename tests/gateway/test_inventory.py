from __future__ import annotations

import asyncio

import pytest

from gateway.inventory import describe_connection, text_of
from tests.support.gateway import running_gateway
from tests.support.mqtt_door import MemoryTransport


def test_connection_that_nobody_came_in_by_has_no_user():
    entry = describe_connection(MemoryTransport(7), None, "")
    assert (entry.user, entry.client, entry.bytes_in, entry.bytes_out) == (None, "", 0, 0)
    assert entry.name == "127.0.0.1:40007 -> 127.0.0.1:1883"


def test_names_of_any_bytes_are_text():
    assert text_of("größe".encode() + b"\xff") == "größe\\xff"


@pytest.mark.asyncio
async def test_each_door_has_an_inventory_of_its_connections(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        streams = [await asyncio.open_connection(*gateway.listening[name]) for name in ("mqtt", "amqp", "broker")]
        while len(gateway.connections) < 3:
            await asyncio.sleep(0.01)
        streams[1][1].write(b"AMQP\0\0\x09\x01")
        said = await streams[1][0].readexactly(7)
        said += await streams[1][0].readexactly(int.from_bytes(said[3:7], "big") + 1)
        for door, (_, writer) in zip(gateway.doors.values(), streams, strict=True):
            (entry,) = door.inventory().connections()
            assert entry.peer == "{}:{}".format(*writer.get_extra_info("sockname"))
            assert 0 <= gateway.clock.now_ms() - entry.since_ms < 60_000
            if door.name == "amqp":
                assert (entry.bytes_in, entry.bytes_out) == (8, len(said))
            writer.close()
