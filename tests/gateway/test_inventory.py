from __future__ import annotations

import asyncio
import weakref

import pytest

from gateway.inventory import describe_connection, take_each, text_of
from tests.support.gateway import running_gateway
from tests.support.mqtt_door import MemoryTransport


class Thing:
    """Anything that is freed at once when nobody holds it."""


def test_each_is_given_once_and_let_go_of_when_the_next_one_is_asked_for():
    things = [Thing() for _ in range(3)]
    known = [weakref.ref(thing) for thing in things]
    each = take_each(things)
    first = next(each)
    things.clear()
    for left in (3, 2, 1):
        assert sum(one() is not None for one in known) == left
        first = next(each, None)
    assert first is None
    assert [one() for one in known] == [None] * 3


def test_they_are_given_in_their_order_and_what_comes_meanwhile_is_not():
    things = dict.fromkeys("cab")
    each = take_each(things)
    given = [next(each)]
    things["d"] = None
    assert [*given, *each] == ["c", "a", "b"]


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
