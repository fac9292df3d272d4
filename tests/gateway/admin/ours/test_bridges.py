from __future__ import annotations

import pytest

from tests.gateway.bridges.conftest import free_port
from tests.support.admin import make_client, make_view, managed_gateway
from tests.support.admin_clients import publish
from tests.support.gateway import running_gateway
from tests.support.logins import quick_hash
from tests.support.waiting import until

pytestmark = pytest.mark.asyncio
UP = {"filter": "up/#", "direction": "out", "qos": 1}


async def test_a_bridge_that_does_not_stand_says_why_and_what_waits(tmp_path):
    address = f"127.0.0.1:{free_port()}"
    bridges = {"cloud": {"address": address, "topics": [UP], "retry_min_ms": 100, "retry_max_ms": 100}}
    async with running_gateway(tmp_path, bridges=bridges) as gateway, make_client(make_view(gateway)) as client:
        counts = gateway.broker.metrics.bridge("cloud")
        await until(lambda: counts.failures > 0)
        for _ in range(3):
            await publish(client, "amq.topic", "up.1", "x")
        (bridge,) = (await client.get("/api/lmq/bridges")).json()
        assert (bridge["name"], bridge["address"], bridge["connected"]) == ("cloud", address, False)
        assert "refused" in bridge["cause"]
        assert (bridge["waiting"], bridge["messages_out"], bridge["failures"] > 0) == (3, 0, True)
        host, port = address.split(":")
        async with running_gateway(tmp_path / "there", mqtt={"listen": f"{host}:{port}"}):
            await until(lambda: counts.messages_out == 3)
            asked = {"name": "cl", "page": 1, "sort": "waiting"}
            (bridge,) = (await client.get("/api/lmq/bridges", params=asked)).json()["items"]
            told = (bridge["connected"], bridge["cause"], bridge["messages_out"])
            assert told == (True, "", 3)
            await until(lambda: _waits(gateway) == 0)


def _waits(gateway):
    owed = gateway.doors["mqtt"].inventory().subscriptions("$bridge/cloud")
    return sum(one.max_offset - one.next_offset + one.inflight for one in owed)


async def test_bridges_are_told_to_those_that_see_all(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        assert (await client.get("/api/lmq/bridges")).json() == []
        await client.put("/api/users/ann", json={"password_hash": quick_hash("x"), "tags": "management"})
        async with make_client(make_view(gateway), auth=("ann", "x")) as ann:
            assert (await ann.get("/api/lmq/bridges")).status_code == 401
