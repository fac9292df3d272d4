from __future__ import annotations

import pytest

from tests.support.admin import managed_gateway

pytestmark = pytest.mark.asyncio


async def test_exchanges_are_told_with_rabbitmqs_names(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        found = (await client.get("/api/exchanges")).json()
        assert [(one["name"], one["type"]) for one in found] == [
            ("", "direct"),
            ("amq.direct", "direct"),
            ("amq.fanout", "fanout"),
            ("amq.headers", "headers"),
            ("amq.match", "headers"),
            ("amq.rabbitmq.trace", "topic"),
            ("amq.topic", "topic"),
        ]
        assert (await client.get("/api/exchanges/%2F")).json() == found
        one = (await client.get("/api/exchanges/%2F/amq.default")).json()
        assert one == found[0] | {"lmq": {"alternate_exchange": None}}
        assert (await client.get("/api/exchanges/%2F/amq.topic?columns=name")).json() == {"name": "amq.topic"}


async def test_the_policy_of_an_exchange_is_told(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        assert (await client.get("/api/exchanges/%2F/amq.fanout")).json()["policy"] is None
        said = {"pattern": "^amq\\.f", "definition": {"alternate-exchange": "amq.direct"}, "apply-to": "exchanges"}
        assert (await client.put("/api/policies/%2F/spare", json=said)).status_code == 201
        found = (await client.get("/api/exchanges?columns=name,policy")).json()
        assert [one["name"] for one in found if one["policy"] == "spare"] == ["amq.fanout"]
        told = (await client.get("/api/exchanges/%2F/amq.fanout?columns=lmq")).json()
        assert told == {"lmq": {"alternate_exchange": "amq.direct"}}
        said = {"type": "fanout", "arguments": {"alternate-exchange": "amq.topic"}}
        assert (await client.put("/api/exchanges/%2F/own", json=said)).status_code == 201
        own = (await client.get("/api/exchanges/%2F/own")).json()
        assert own["lmq"] == {"alternate_exchange": "amq.topic"}
