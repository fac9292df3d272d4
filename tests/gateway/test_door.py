from __future__ import annotations

import pytest

from gateway.settings import MqttSettings
from tests.support.gateway import make_settings, running_gateway

pytestmark = pytest.mark.asyncio


async def test_doors_listen_by_the_names_that_operators_know(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        names = {name: [listen.name for listen in door.listens()] for name, door in gateway.doors.items()}
    assert names == {"mqtt": ["mqtt"], "amqp": ["amqp"], "rocketmq": ["broker", "namesrv"]}


async def test_doors_have_the_metrics_of_their_name(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        for name, door in gateway.doors.items():
            assert door.name == name
            assert door.metrics is gateway.broker.metrics.door(name)


async def test_other_limits_hold_after_a_reload(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        assert {door.limits.connections_max for door in gateway.doors.values()} == {0}
        await gateway.reload(make_settings(tmp_path, mqtt=MqttSettings(listen="127.0.0.1:0", connections_max=5)))
        assert gateway.doors["mqtt"].limits.connections_max == 5
