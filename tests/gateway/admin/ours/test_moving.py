from __future__ import annotations

import asyncio

import pytest

from tests.support.admin import declare, managed_gateway
from tests.support.admin_clients import publish

pytestmark = pytest.mark.asyncio


async def _count(client, queue):
    return (await client.get(f"/api/queues/%2F/{queue}")).json()["messages_ready"]


async def test_messages_are_moved_with_all_that_they_carry(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "a", "b")
        for body in ("1", "2", "3"):
            await publish(client, "amq.default", "a", body)
        answer = await client.post("/api/lmq/move", json={"source": "a", "destination": "b", "count": 2})
        assert answer.json() == {"moved": 2}
        assert (await _count(client, "a"), await _count(client, "b")) == (1, 2)
        assert (await client.post("/api/lmq/move", json={"source": "a", "destination": "a"})).json() == {"moved": 1}
        answer = await client.post("/api/lmq/move", json={"source": "a"})
        assert (answer.status_code, await _count(client, "a")) == (400, 1)
        assert (await client.post("/api/lmq/move", json={"source": "a", "destination": "c"})).status_code == 404


async def test_dead_letters_go_back_to_where_they_died(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "dead")
        arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        await client.put("/api/queues/%2F/jobs", json={"durable": True, "arguments": arguments})
        await publish(client, "amq.default", "jobs", "work")
        take = {"count": 1, "ackmode": "reject_requeue_false", "encoding": "auto"}
        await client.post("/api/queues/%2F/jobs/get", json=take)
        while not await _count(client, "dead"):
            await asyncio.sleep(0)
        assert (await client.post("/api/lmq/move", json={"source": "dead"})).json() == {"moved": 1}
        (back,) = (await client.post("/api/queues/%2F/jobs/get", json=take)).json()
        assert (back["payload"], back["properties"].get("headers")) == ("work", None)
