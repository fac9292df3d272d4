from __future__ import annotations

import asyncio

import pytest

from tests.support.admin import managed_gateway
from tests.support.admin_clients import publish

pytestmark = pytest.mark.asyncio


async def _make(client, name, **arguments):
    await client.put(
        f"/api/queues/%2F/{name}", json={"arguments": {f"x-{key}": value for key, value in arguments.items()}}
    )


async def test_queues_that_dead_letters_come_to_are_listed_with_where_they_come_from(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        assert (await client.get("/api/lmq/dead-letters")).json() == []
        for exchange in ("dlx", "inner"):
            await client.put(f"/api/exchanges/%2F/{exchange}", json={"type": "fanout"})
        await _make(client, "dead")
        await _make(client, "graves")
        await client.post("/api/bindings/%2F/e/dlx/e/inner", json={})
        await client.post("/api/bindings/%2F/e/inner/e/dlx", json={})  # a ring
        await client.post("/api/bindings/%2F/e/inner/q/graves", json={})
        await _make(client, "jobs", **{"dead-letter-exchange": "dlx"})
        await _make(client, "mail", **{"dead-letter-exchange": "", "dead-letter-routing-key": "dead"})
        await _make(client, "lost", **{"dead-letter-exchange": "nowhere"})
        await publish(client, "amq.default", "mail", "x")
        got = {"count": 1, "ackmode": "reject_requeue_false", "encoding": "auto"}
        await client.post("/api/queues/%2F/mail/get", json=got)
        async with asyncio.timeout(10):
            while not (await client.get("/api/queues/%2F/dead")).json()["messages"]:
                await asyncio.sleep(0)
        found = {one["name"]: one for one in (await client.get("/api/lmq/dead-letters")).json()}
        assert {name: one["from"] for name, one in found.items()} == {"dead": ["mail"], "graves": ["jobs"]}
        assert (found["dead"]["messages"], found["graves"]["messages"]) == (1, 0)
        async with asyncio.timeout(10):  # the letter may be on its way
            while not found["dead"]["oldest_at_ms"]:
                found = {one["name"]: one for one in (await client.get("/api/lmq/dead-letters")).json()}
        assert (await client.post("/api/lmq/move", json={"source": "dead"})).json() == {
            "moved": 1,
            "left": 0,
            "reasons": [],
        }
        assert (await client.get("/api/queues/%2F/mail")).json()["messages"] == 1


async def test_topics_of_dead_letters_of_groups_are_listed(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        gateway.doors["rocketmq"].topics.open_dead(b"billing")
        gateway.broker.intern_queue(b"%DLQ%billing/0")
        (only,) = (await client.get("/api/lmq/dead-letters")).json()
        assert (only["name"], only["door"], only["from"], only["messages"]) == (
            "%DLQ%billing",
            "rocketmq",
            ["billing"],
            0,
        )
