from __future__ import annotations

import pytest

from tests.support.admin import declare, managed_gateway

pytestmark = pytest.mark.asyncio


async def test_the_overview_counts_what_there_is(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "a", "b")
        gateway.broker.metrics.door("mqtt").messages_in += 3
        found = (await client.get("/api/overview")).json()
        assert found["object_totals"]["queues"] == 2
        assert found["queue_totals"] == {"messages": 0, "messages_ready": 0, "messages_unacknowledged": 0}
        assert found["message_stats"]["publish"] == 3
        assert {one["protocol"] for one in found["listeners"]} >= {"mqtt", "amqp"}
        assert found["lmq"]["doors"]["mqtt"]["messages_in"] == 3
        assert found["lmq"]["uptime_ms"] == 7


async def test_there_is_one_node(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        (node,) = (await client.get("/api/nodes")).json()
        assert node["running"] is True
        assert (await client.get(f"/api/nodes/{node['name']}")).json()["disk_free_limit"] == node["disk_free_limit"]
        assert (await client.get("/api/nodes/other@host")).status_code == 404


async def test_the_node_tells_its_memory_and_who_tried_to_log_in(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        (node,) = (await client.get("/api/nodes")).json()
        where = f"/api/nodes/{node['name']}/memory"
        memory = (await client.get(where)).json()["memory"]
        assert memory["total"]["rss"] == memory["other_system"] > 1 << 20
        assert memory["binary"] == 0
        assert (await client.get("/api/nodes/other/memory")).status_code == 404
        assert (await client.get("/api/overview", auth=("guest", "wrong"))).status_code == 401
        found = {one["protocol"]: one for one in (await client.get(f"/api/auth/attempts/{node['name']}")).json()}
        admin = found["admin"]
        assert admin["auth_attempts_failed"] == 1
        assert admin["auth_attempts"] == admin["auth_attempts_succeeded"] + 1
        assert (await client.get("/api/auth/attempts/other")).status_code == 404
