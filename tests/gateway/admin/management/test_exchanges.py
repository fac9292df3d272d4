from __future__ import annotations

import pytest

from tests.support.admin import make_view, managed_gateway

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


async def test_how_fast_an_exchange_goes_is_told_there_and_of_its_virtual_host(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        view = make_view(gateway)
        await client.put("/api/exchanges/%2F/busy", json={"type": "fanout"})
        for queue in ("a", "b"):
            await client.put(f"/api/queues/%2F/{queue}", json={})
            await client.post(f"/api/bindings/%2F/e/busy/q/{queue}", json={})
        await view.activity.look()
        said = {"properties": {}, "routing_key": "k", "payload": "x", "payload_encoding": "string"}
        for _ in range(3):
            await client.post("/api/exchanges/%2F/busy/publish", json=said)
        told = (await client.get("/api/exchanges/%2F/busy")).json()["message_stats"]
        assert (told["publish_in"], told["publish_out"]) == (3, 6)
        assert told["publish_in_details"] == {"rate": 0.0}
        await view.activity.look()
        sorted_by = {"sort": "message_stats.publish_out_details.rate", "sort_reverse": "true", "page": 1}
        first, second, *_ = (await client.get("/api/exchanges", params=sorted_by)).json()["items"]
        assert first["name"] == "busy"
        rates = [first["message_stats"][f"publish_{end}_details"]["rate"] for end in ("in", "out")]
        assert rates[1] == pytest.approx(2 * rates[0], abs=0.2)
        assert rates[0] > 0
        assert second["message_stats"]["publish_in"] == 0
        vhost = (await client.get("/api/vhosts/%2F")).json()["message_stats"]
        assert (vhost["publish"], vhost["publish_details"]) == (3, {"rate": rates[0]})
        await view.activity.look()
        told = (await client.get("/api/exchanges/%2F/busy")).json()["message_stats"]
        assert (told["publish_in"], told["publish_in_details"]) == (3, {"rate": 0.0})
