from __future__ import annotations

import pytest

from tests.support.admin import ELSEWHERE, declare, make_client, make_view, managed_gateway
from tests.support.logins import quick_hash

pytestmark = pytest.mark.asyncio
POLICY = {"pattern": "^a", "definition": {"max-length": 5, "ha-mode": "all"}, "priority": 2, "apply-to": "queues"}


async def test_a_policy_is_set_told_by_its_queues_and_deleted(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "a")
        assert (await client.put("/api/policies/%2F/p", json=POLICY)).status_code == 201
        assert (await client.put("/api/policies/%2F/p", json={**POLICY, "priority": 3})).status_code == 204
        operator = {"pattern": ".*", "definition": {"max-length": 3}}
        assert (await client.put("/api/operator-policies/%2F/o", json=operator)).status_code == 201
        found = (await client.get("/api/policies/%2F/p")).json()
        assert found == {
            **POLICY, "vhost": "/", "name": "p", "priority": 3, "lmq": {"without_effect": ["ha-mode"]}
        }  # fmt: skip
        queue = (await client.get("/api/queues/%2F/a")).json()
        assert (queue["policy"], queue["operator_policy"]) == ("p", "o")
        assert queue["effective_policy_definition"] == {"max-length": 3, "ha-mode": "all"}
        assert [one["name"] for one in (await client.get("/api/policies")).json()] == ["p"]
        assert [one["name"] for one in (await client.get("/api/operator-policies/%2F")).json()] == ["o"]
        assert (await client.delete("/api/policies/%2F/p")).status_code == 204
        assert (await client.delete("/api/policies/%2F/p")).status_code == 404
        assert (await client.get("/api/policies/none")).status_code == 404
        assert (await client.get("/api/queues/%2F/a")).json()["policy"] is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"definition": {"odd": 1}}, '[{<<"odd">>,1}] are not recognised policy settings'),
        ({"definition": {"max-length": "5"}}, '<<"5">> is not a valid maximum length'),
        ({"priority": "x"}, 'priority should be a number, actually was <<"x">>'),
    ],
)
async def test_what_may_not_be_is_refused_in_the_words_of_rabbitmq(tmp_path, change, reason):
    async with managed_gateway(tmp_path) as (_, client):
        answer = await client.put("/api/policies/%2F/p", json={**POLICY, **change})
        assert (answer.status_code, answer.json()["reason"]) == (400, f"Validation failed\n\n{reason}\n")
        assert (await client.put(f"/api/policies/%2F/{'x' * 256}", json=POLICY)).status_code == 400
        assert (await client.put("/api/policies/none/p", json=POLICY)).status_code == 404


async def test_only_administrators_set_policies(tmp_path):
    async with managed_gateway(tmp_path, peer=ELSEWHERE) as (_, client):
        assert (await client.put("/api/policies/%2F/p", json=POLICY)).status_code == 401
        assert (await client.delete("/api/operator-policies/%2F/p")).status_code == 401


async def test_policymakers_set_policies_where_they_have_permissions(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        for name, tag in (("pm", "policymaker"), ("looks", "management")):
            await client.put(f"/api/users/{name}", json={"password_hash": quick_hash("x"), "tags": tag})
            await client.put(f"/api/permissions/%2F/{name}", json={"configure": "", "write": "", "read": ""})
        await client.put("/api/vhosts/v")
        async with make_client(make_view(gateway), auth=("pm", "x")) as maker:
            assert (await maker.put("/api/policies/%2F/p", json=POLICY)).status_code == 201
            assert (await maker.delete("/api/policies/%2F/p")).status_code == 204
            answer = await maker.put("/api/policies/v/p", json=POLICY)
            assert (answer.status_code, answer.json()["reason"]) == (401, "user 'pm' has no permissions in vhost 'v'")
            assert (await maker.put("/api/operator-policies/%2F/p", json=POLICY)).status_code == 401
            assert (await maker.put("/api/parameters/shovel/%2F/p", json={})).status_code == 400  # no such plugin
            assert (await maker.put("/api/parameters/shovel/v/p", json={})).status_code == 401
            assert (await maker.put("/api/vhosts/w")).status_code == 401
        async with make_client(make_view(gateway), auth=("looks", "x")) as looker:
            answer = await looker.put("/api/policies/%2F/p", json=POLICY)
            assert (answer.status_code, answer.json()["reason"]) == (401, "neither an administrator nor a policymaker")
