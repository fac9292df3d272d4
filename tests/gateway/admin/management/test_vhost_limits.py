from __future__ import annotations

import pytest

from tests.support.admin import managed_gateway

pytestmark = pytest.mark.asyncio

WRONG = [("max-queues", {}), *(("max-queues", {"value": value}) for value in ("x", True, 1.0, None, 10**400, [1]))]


async def test_limits_are_set_told_and_taken_back(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        await client.put("/api/vhosts/v")
        for name, value in (("max-queues", 2), ("max-connections", 0)):
            assert (await client.put(f"/api/vhost-limits/v/{name}", json={"value": value})).status_code == 204
        told = [{"vhost": "v", "value": {"max-queues": 2, "max-connections": 0}}]
        assert (await client.get("/api/vhost-limits")).json() == told
        assert (await client.get("/api/vhost-limits/v")).json() == told
        assert (await client.get("/api/vhost-limits/%2F")).json() == []
        for _ in range(2):
            assert (await client.delete("/api/vhost-limits/v/max-queues")).status_code == 204
        await client.put("/api/vhost-limits/v/max-connections", json={"value": -5})
        assert (await client.get("/api/vhost-limits")).json() == []
        assert gateway.doors["amqp"].vhosts.find("v").profile.limits == {}


async def test_what_is_no_limit_is_refused(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        assert (await client.put("/api/vhost-limits/none/max-queues", json={"value": 1})).status_code == 404
        assert (await client.get("/api/vhost-limits/none")).status_code == 404
        for name, said in (("odd", {"value": 1}), *WRONG):
            answer = await client.put(f"/api/vhost-limits/%2F/{name}", json=said)
            assert 400 <= answer.status_code < 500


async def test_limits_are_told_in_pages(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        for number, vhost in enumerate(("v2", "v1", "other", "none")):
            await client.put(f"/api/vhosts/{vhost}")
            if vhost != "none":
                await client.put(f"/api/vhost-limits/{vhost}/max-queues", json={"value": number})
        page = (await client.get("/api/vhost-limits?page=1&page_size=2&name=v")).json()
        assert [one["vhost"] for one in page["items"]] == ["v1", "v2"]
        assert (page["total_count"], page["filtered_count"]) == (3, 2)
        found = (await client.get("/api/vhost-limits?sort=value.max-queues&sort_reverse=true&columns=vhost")).json()
        assert [one["vhost"] for one in found] == ["other", "v1", "v2"]
