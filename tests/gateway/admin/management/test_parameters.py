from __future__ import annotations

import pytest

from tests.support.admin import managed_gateway

pytestmark = pytest.mark.asyncio


async def test_plugins_have_no_parameters(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        for where in (
            "parameters",
            "parameters/federation",
            "parameters/shovel/%2F",
            "extensions",
            "user-limits",
            "feature-flags",
        ):
            answer = await client.get(f"/api/{where}")
            assert (answer.status_code, answer.json()) == (200, []), where
        assert (await client.get("/api/parameters/shovel/nowhere")).status_code == 404
        assert (await client.get("/api/parameters/shovel/%2F/one")).json()["error"] == "Object Not Found"
        assert (await client.delete("/api/parameters/shovel/%2F/one")).status_code == 404
        refused = await client.put("/api/parameters/shovel/%2F/one", json={"value": {}})
        assert (refused.status_code, "component shovel not found" in refused.json()["reason"]) == (400, True)


async def test_the_cluster_has_a_name(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        name = (await client.get("/api/cluster-name")).json()["name"]
        assert (await client.get("/api/global-parameters")).json() == [{"name": "cluster_name", "value": name}]
        assert (await client.get("/api/global-parameters/cluster_name")).json()["value"] == name
        assert (await client.get("/api/global-parameters/other")).status_code == 404
        assert (await client.put("/api/global-parameters/cluster_name", json={"value": "x"})).status_code == 400
        assert (await client.post("/api/rebalance/queues")).status_code == 204
        assert (await client.get("/api/auth")).json() == {"oauth_enabled": False}


async def test_what_is_not_there_is_said_as_rabbitmq_says_it(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        answer = await client.get("/api/shovels")
        assert (answer.status_code, answer.json()) == (404, {"error": "Object Not Found", "reason": "Not Found"})
        answer = await client.delete("/api/overview")
        assert (answer.status_code, answer.json()["error"]) == (405, "Method Not Allowed")
