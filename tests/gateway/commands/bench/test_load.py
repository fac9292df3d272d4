from __future__ import annotations

import pytest

from gateway.commands.bench.load import run
from gateway.commands.bench.plan import Plan
from gateway.commands.doors.place import Door, Place
from gateway.commands.doors.traffic import LinkError
from gateway.settings.models import AuthSettings
from tests.support.gateway import running_gateway

pytestmark = pytest.mark.asyncio


def place(gateway, door):
    host, port = gateway.listening["namesrv" if door is Door.ROCKETMQ else door.value]
    return Place(door, host, port, None, None, "/", None, None)


@pytest.mark.parametrize(
    ("door", "qos"),
    [
        (Door.MQTT, 0),
        (Door.MQTT, 1),
        (Door.MQTT, 2),
        (Door.AMQP, 0),
        (Door.AMQP, 1),
        (Door.ROCKETMQ, 0),
        (Door.ROCKETMQ, 1),
    ],
)
async def test_all_that_is_published_comes_and_is_timed(tmp_path, door, qos):
    async with running_gateway(tmp_path) as gateway:
        plan = Plan("bench", 2, 2, 301, size=40, qos=qos, window=50)
        told = await run(place(gateway, door), plan)
        copies = 1 if door is Door.AMQP else 2
        assert told["publishers"]["messages"] == 301
        assert told["consumers"]["messages"] == 301 * copies
        assert told["consumers"]["p50_ms"] is not None
        assert (told["publishers"]["p50_ms"] is None) == (qos == 0)
        assert told["publishers"]["rate"] > 0


async def test_a_rate_is_kept_to_and_large_bodies_go_in_several_frames(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        told = await run(place(gateway, Door.AMQP), Plan("bench", 1, 1, 5, size=300_000))
        assert told["consumers"]["messages"] == 5
        told = await run(place(gateway, Door.MQTT), Plan("bench", 2, 0, 40, rate=200.0))
        assert told["publishers"]["seconds"] > 0.15


@pytest.mark.parametrize("door", list(Door))
async def test_a_server_that_is_not_there_or_lets_nobody_in_is_told(tmp_path, door):
    nowhere = Place(door, "127.0.0.1", 1, None, None, "/", None, None)
    with pytest.raises(LinkError, match="connect") as failed:
        await run(nowhere, Plan("bench", 1, 0, 1))
    assert failed.value.code == 6
    closed = AuthSettings(mqtt_anonymous=False, amqp_guest=False, rocketmq_anonymous=False)
    async with running_gateway(tmp_path, auth=closed) as gateway:
        with pytest.raises(LinkError):
            await run(place(gateway, door), Plan("bench", 0 if door is Door.MQTT else 1, 1, 1))
