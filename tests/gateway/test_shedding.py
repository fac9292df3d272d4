"""Where memory or connections run out, new work is shed first; connected clients go on, and all is well afterwards."""

from __future__ import annotations

import asyncio

import pytest
from pamqp.commands import Connection

from gateway.settings.limits import LimitsSettings
from tests.support import amqp, mqtt
from tests.support.gateway import make_settings, running_gateway

pytestmark = pytest.mark.asyncio

QUOTA_EXCEEDED = 0x97
TOO_LITTLE = 1 << 20  # any gateway has more


class Client:
    """One of MQTT 5."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    async def say(self, packet):
        """Send a packet, and return the one that comes back."""
        self.writer.write(packet)
        return await self.hear()

    async def hear(self):
        """Return the next packet, all of which are small here."""
        async with asyncio.timeout(60):
            head = await self.reader.readexactly(2)
            return head + await self.reader.readexactly(head[1])

    def close(self):
        self.writer.close()


async def dial(gateway, name="mqtt"):
    return Client(*await asyncio.open_connection(*gateway.listening[name]))


async def code_of_newcomer(gateway):
    client = await dial(gateway)
    code = (await client.say(mqtt.connect_5(b"newcomer")))[3]
    client.close()
    return code


async def told_by_amqp(gateway):
    """Return the reply code and text that a client of AMQP hears when it opens the virtual host."""
    client = await dial(gateway, "amqp")
    said = Connection.StartOk({}, "PLAIN", "\0guest\0guest", "en_US"), Connection.TuneOk(10, 131_072, 0)
    said = [amqp.method(0, one) for one in (*said, Connection.Open("/"), Connection.CloseOk())]
    client.writer.write(b"".join([amqp.PROTOCOL_HEADER, *said]))
    async with asyncio.timeout(60):
        data = await client.reader.read()
    client.close()
    _, close = amqp.decode_frames(data)[-1]
    return close.reply_code, close.reply_text


async def is_refused(gateway, name):
    client = await dial(gateway, name)
    async with asyncio.timeout(60):
        data = await client.reader.read()
    client.close()
    return data == b""


async def until(condition):
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0)


async def test_low_memory_holds_publishers_back_refuses_newcomers_and_lets_those_who_are_in_go_on(tmp_path):
    async with running_gateway(tmp_path, limits=LimitsSettings(memory_bytes_max=0)) as gateway:
        reader, publisher = await dial(gateway), await dial(gateway)
        for number, client in enumerate((reader, publisher)):
            await client.say(mqtt.connect_5(b"c%d" % number))
        assert (await reader.say(mqtt.subscribe_5(1, (b"t", 1))))[-1] == 1
        await gateway.reload(make_settings(tmp_path, limits=LimitsSettings(memory_bytes_max=TOO_LITTLE)))
        gateway.memory.look(gateway.clock.now_ms())  # as it does each second
        assert await code_of_newcomer(gateway) == QUOTA_EXCEEDED
        low = 506, "RESOURCE_ERROR - memory is low: no new connections, try again later"
        assert await told_by_amqp(gateway) == low
        for name in ("broker", "namesrv"):
            assert await is_refused(gateway, name)
        assert (await publisher.say(mqtt.publish_5(b"t", b"x", qos=1, packet_id=1)))[4] == QUOTA_EXCEEDED
        assert await reader.say(mqtt.PINGREQ) == mqtt.PINGRESP
        reasons = [door.metrics.refused.get("memory") for door in gateway.doors.values()]
        assert reasons == [1, 1, 2]
        await gateway.reload(make_settings(tmp_path, limits=LimitsSettings(memory_bytes_max=0)))
        gateway.memory.look(gateway.clock.now_ms())
        assert await code_of_newcomer(gateway) == 0
        assert await publisher.say(mqtt.publish_5(b"t", b"y", qos=1, packet_id=2)) == mqtt.puback(2)
        assert (await reader.hear())[-1:] == b"y"  # and not what was refused
        for client in (reader, publisher):
            client.close()


async def test_connections_of_all_doors_have_a_maximum_and_those_that_are_open_stay(tmp_path):
    async with running_gateway(tmp_path, limits=LimitsSettings(connections_max=2)) as gateway:
        device, service = await dial(gateway), await dial(gateway, "amqp")
        await device.say(mqtt.connect_5(b"device"))
        await until(lambda: len(gateway.connections) == 2)
        assert await code_of_newcomer(gateway) == QUOTA_EXCEEDED
        full = 530, "NOT_ALLOWED - connection refused: connection limit is reached"
        assert await told_by_amqp(gateway) == full
        assert await is_refused(gateway, "broker")
        assert await device.say(mqtt.PINGREQ) == mqtt.PINGRESP
        service.close()
        await until(lambda: len(gateway.connections) == 1)
        assert await code_of_newcomer(gateway) == 0
        device.close()
