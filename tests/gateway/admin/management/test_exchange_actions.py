from __future__ import annotations

import pytest

from tests.support.admin import managed_gateway

pytestmark = pytest.mark.asyncio
X = "/api/exchanges/%2F/x"


async def test_an_exchange_is_made_seen_to_be_the_same_and_deleted(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        wanted = {"type": "topic", "durable": True, "arguments": {"alternate-exchange": "amq.fanout"}}
        assert (await client.put(X, json=wanted)).status_code == 201
        assert (await client.put(X, json=wanted)).status_code == 204
        found = (await client.get(X)).json()
        assert (found["type"], found["arguments"]) == ("topic", {"alternate-exchange": "amq.fanout"})
        answer = await client.put(X, json={"type": "direct"})
        assert answer.json()["reason"].startswith("inequivalent arg 'type' for exchange 'x'")
        answer = await client.put("/api/exchanges/%2F/y", json={"type": "odd"})
        assert (answer.status_code, answer.json()["reason"]) == (400, "unknown exchange type 'odd'")
        assert (await client.put("/api/exchanges/%2F/amq.new", json={})).status_code == 401
        assert (await client.delete("/api/exchanges/%2F/amq.topic")).status_code == 401
        assert (await client.delete(X, params={"if-unused": "true"})).status_code == 204
        assert (await client.delete(X)).status_code == 404
