"""Files of definitions as RabbitMQ 3.13 and 4 export them: what is loaded, and what is listed as not."""

from __future__ import annotations

import json

import pytest

from tests.support.admin import managed_gateway
from tests.support.sources import ROOT

FILES = ROOT / "tests" / "data" / "definitions-of-rabbitmq"
VERSIONS = ("3.13.7", "4.1.0")
COUNTS = {
    "users": 2, "permissions": 1, "topic_permissions": 1, "vhosts": 2, "parameters": 2, "policies": 4, "queues": 6,
    "exchanges": 6, "bindings": 8,
}  # fmt: skip
LISTED = [
    "federation-upstream in vhost 'shop': it has no meaning here",
    "global parameter 'cluster_name': it has no meaning here",
    "global parameter 'internal_cluster_id': it has no meaning here",
    "parameter 'away' of shovel in vhost 'shop': it has no meaning here",
    "parameter 'up' of federation-upstream in vhost 'shop': it has no meaning here",
    "permissions of user 'guest' in vhost '/': ",
    "policy 'far' in vhost 'shop': [{<<\"federation-upstream-set\">>,<<\"all\">>}] are not recognised policy settings",
    "user 'guest': here guest comes in from this machine only",
]
OF_VERSION = {
    "3.13.7": [
        "global parameter 'mqtt_port_to_vhost_mapping': it has no meaning here",
    ],
    "4.1.0": [
        "exchange 'jms' in vhost 'shop': there is no type 'x-jms-topic' here",
        "global parameter 'cluster_tags': it has no meaning here",
        "protection from deletion of vhost 'shop': there is none here",
    ],
}

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("version", VERSIONS)
async def test_file_of_a_newer_rabbitmq_is_loaded_and_what_is_not_is_listed(tmp_path, version):
    async with managed_gateway(tmp_path) as (gateway, client):
        text = (FILES / f"{version}.json").read_text()
        answer = await client.post("/api/definitions", content=text)
        assert answer.status_code == 200, answer.text
        listed = sorted(answer.json()["not_imported"])
        wanted = sorted([*LISTED[1:], *OF_VERSION[version]])
        assert len(listed) == len(wanted), listed
        assert all(one.startswith(start) for one, start in zip(listed, wanted, strict=True)), listed
        assert answer.json()["imported"] == COUNTS
        vhost = gateway.doors["amqp"].vhosts.find("shop")
        profile = ("orders and bills", ("prod", "eu"), -1, 50, "quorum")
        assert vhost.profile == profile
        terms = {queue.name: queue.terms for queue in vhost}
        assert (terms["orders"].delivery_limit, terms["orders"].length_max) == (5, 100_000)
        assert (terms["orders"].dead_letter_exchange, terms["orders"].is_refusing) == ("dead", True)
        assert (terms["bills"].message_ttl_ms, terms["bills"].length_max) == (60_000, 1_000)
        assert terms["plain"].priority_max == 5
        types = {one["name"]: one["type"] for one in (await client.get("/api/queues/shop")).json()}
        assert types == {
            "orders": "quorum", "bills": "classic", "plain": "classic", "log": "stream", "dead": "classic",
            "untyped": "quorum",
        }  # fmt: skip
        assert vhost.policies.find_alternate("shop", "orders.topic") == "dead"


@pytest.mark.parametrize("version", VERSIONS)
async def test_what_was_loaded_is_exported_and_loaded_as_the_same(tmp_path, version):
    async with managed_gateway(tmp_path / "one") as (_, client):
        await client.post("/api/definitions", content=(FILES / f"{version}.json").read_text())
        text = (await client.get("/api/definitions")).text
    async with managed_gateway(tmp_path / "two") as (_, client):
        answer = await client.post("/api/definitions", content=text)
        assert answer.json()["not_imported"] == []
        assert json.loads((await client.get("/api/definitions")).text) == json.loads(text)


@pytest.mark.parametrize("version", VERSIONS)
async def test_users_log_in_by_the_hashes_of_the_file(tmp_path, version):
    async with managed_gateway(tmp_path) as (_, client):
        await client.post("/api/definitions", content=(FILES / f"{version}.json").read_text())
        assert (await client.get("/api/whoami", auth=("app", "apple"))).json()["name"] == "app"
        assert (await client.get("/api/overview", auth=("app", "wrong"))).status_code == 401
