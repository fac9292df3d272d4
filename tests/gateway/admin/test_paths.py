from __future__ import annotations

import pytest

from tests.support.admin import declare, managed_gateway


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["a/b", "a%2Fb", "ü ?#", "%"])
async def test_a_name_in_a_path_may_have_any_character(tmp_path, name):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, name)
        escaped = "".join(f"%{octet:02X}" for octet in name.encode())
        assert (await client.get(f"/api/queues/%2F/{escaped}")).json()["name"] == name


@pytest.mark.asyncio
async def test_a_slash_at_the_end_of_a_path_says_nothing(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "q")
        for path in ("overview", "queues", "queues/%2F", "queues/%2F/q", "exchanges/%2F", "exchanges/%2F/amq.direct"):
            plain, ended = [await client.get(f"/api/{path}{end}") for end in ("", "/")]
            assert (ended.status_code, ended.json().__class__) == (200, plain.json().__class__)
        assert [one["name"] for one in (await client.get("/api/queues/%2F/")).json()] == ["q"]
        assert len((await client.get("/api/exchanges/%2F/")).json()) == len((await client.get("/api/exchanges")).json())
        assert (await client.get("/api/exchanges/%2F//")).json()["name"] == ""
        for path in ("metrics", "healthz", "readyz"):
            assert (await client.get(f"/{path}/")).status_code == 200, path
        docs = await client.get("/api/docs/", follow_redirects=True)
        assert (docs.url.path, docs.text) == ("/api/docs", (await client.get("/api/docs")).text)
        for path in ("queues/%2F/none/", "vhosts/none/", "nothing/", "queues/%2F//"):
            assert (await client.get(f"/api/{path}")).status_code == 404
        assert (await client.put("/api/queues/%2F/made/", json={})).status_code == 201
        assert (await client.delete("/api/queues/%2F/made/")).status_code == 204
        assert (await client.get("/api/queues/%2F/made")).status_code == 404
        assert (await client.delete("/api/queues/%2F/")).status_code == 405
