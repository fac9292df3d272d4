"""How many connections one address may have, all doors together; a refused client is told, counted and let in later."""

from __future__ import annotations

import asyncio

import pytest

from gateway.settings.limits import AddressLimitsSettings, LimitsSettings
from tests.support import mqtt
from tests.support.gateway import make_settings, running_gateway

pytestmark = pytest.mark.asyncio

QUOTA_EXCEEDED = 0x97


def limits(**address):
    return LimitsSettings(address=AddressLimitsSettings(**address))


async def is_refused(address, said=b""):
    """Return whether the gateway closes a connection that says nothing, or nothing that it knows."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        writer.write(said)
        return await reader.read() == b""
    finally:
        writer.close()


async def mqtt_code(address):
    reader, writer = await asyncio.open_connection(*address)
    writer.write(mqtt.connect_5(b"one-more"))
    answer = await reader.readexactly(5)
    writer.close()
    return answer[3]


async def test_connections_of_one_address_count_together_and_one_more_is_refused_at_each_door(tmp_path):
    async with running_gateway(tmp_path, limits=limits(connections_max=3)) as gateway:
        doors = [gateway.listening[name] for name in ("mqtt", "amqp", "broker")]
        streams = [await asyncio.open_connection(*address) for address in doors]
        async with asyncio.timeout(60):
            while len(gateway.connections) < len(streams):
                await asyncio.sleep(0)
            assert await mqtt_code(gateway.listening["mqtt"]) == QUOTA_EXCEEDED
            assert not await is_refused(gateway.listening["amqp"], b"not AMQP")  # it is told which protocol to speak
            for name in ("broker", "namesrv"):
                assert await is_refused(gateway.listening[name])
        refused = {door.name: dict(door.metrics.refused) for door in gateway.doors.values()}
        assert refused == {
            "mqtt": {"address_connections_max": 1},
            "amqp": {"address_connections_max": 1},
            "rocketmq": {"address_connections_max": 2},
        }
        _, writer = streams[1]
        writer.close()
        async with asyncio.timeout(60):
            while any(connection.door == "amqp" for connection in gateway.connections):
                await asyncio.sleep(0)
            assert await mqtt_code(gateway.listening["mqtt"]) == 0
        for _, writer in (streams[0], streams[2]):
            writer.close()


@pytest.mark.parametrize("settings", [{}, {"connections_max": 1, "exempt": ["127.0.0.0/8"]}])
async def test_another_number_counts_at_once_and_some_networks_have_any(tmp_path, settings):
    async with running_gateway(tmp_path, limits=limits(connections_max=1)) as gateway:
        _, writer = await asyncio.open_connection(*gateway.listening["amqp"])
        async with asyncio.timeout(60):
            while len(gateway.connections) < 1:
                await asyncio.sleep(0)
            assert await mqtt_code(gateway.listening["mqtt"]) == QUOTA_EXCEEDED
            await gateway.reload(make_settings(tmp_path, limits=limits(**settings)))
            assert await mqtt_code(gateway.listening["mqtt"]) == 0
        writer.close()
