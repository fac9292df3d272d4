"""Files of definitions as RabbitMQ 3.8, 3.13 and 4 export them: what is loaded, and what is listed as not."""

from __future__ import annotations

import json

import pytest

from tests.support.admin import managed_gateway
from tests.support.sources import ROOT

FILES = ROOT / "tests" / "data" / "definitions-of-rabbitmq"
VERSIONS = ("3.13.7", "4.1.0")
ALL = ("3.8.34", *VERSIONS)
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


@pytest.mark.parametrize("version", ALL)
async def test_the_second_import_of_a_file_changes_nothing(tmp_path, version):
    async with managed_gateway(tmp_path) as (gateway, client):
        text = (FILES / f"{version}.json").read_text()
        first = (await client.post("/api/definitions", content=text)).json()
        exported = (await client.get("/api/definitions")).text
        name = next(vhost.name for vhost in gateway.doors["amqp"].vhosts if vhost.name != "/")
        queues = {queue.name: queue for queue in gateway.doors["amqp"].vhosts.find(name)}
        assert (await client.post("/api/definitions", content=text)).json() == first
        assert (await client.get("/api/definitions")).text == exported
        assert {queue.name: queue for queue in gateway.doors["amqp"].vhosts.find(name)} == queues  # the very same


async def test_file_of_rabbitmq_3_8_is_loaded_and_what_is_not_is_listed(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        answer = (await client.post("/api/definitions", content=(FILES / "3.8.34.json").read_text())).json()
        assert answer["imported"] == {
            "users": 1, "permissions": 1, "topic_permissions": 1, "vhosts": 2, "parameters": 2, "policies": 2,
            "queues": 3, "exchanges": 2, "bindings": 4,
        }  # fmt: skip
        listed = sorted(answer["not_imported"])
        assert [one.partition(": ")[0] for one in listed] == [
            "global parameter 'cluster_name'",
            "global parameter 'internal_cluster_id'",
            "permissions of user 'ancient' in vhost 'mills'",
            "permissions of user 'guest' in vhost '/'",
            "topic permissions of user 'app' at exchange 'mill.events' in vhost 'mills'",
            "user 'ancient'",
            "user 'guest'",
        ]
        assert "'(?<!secret)$' is not a regular expression" in listed[4]
        vhost = gateway.doors["amqp"].vhosts.find("mills")
        assert vhost.profile.connections_max == 20
        terms = {queue.name: queue.terms for queue in vhost}
        assert [terms["mill.readings"].message_ttl_ms, terms["late"].priority_max] == [90_000, 3]
        assert [terms["late"].length_max, terms["mill.readings"].length_max] == [5_000, -1]  # one policy holds
        users = {one["name"]: one["tags"] for one in (await client.get("/api/users")).json()}
        assert users["app"] == ["monitoring", "policymaker"]
        assert (await client.get("/api/whoami", auth=("app", "apple"))).status_code == 200
        rights = gateway.authenticator.find_rights("amqp", "app")
        assert rights.may_write(b"mills", b"mill.events")
        assert not rights.may_write(b"mills", b"amq.topic")
        assert rights.may_write_key(b"mills", b"mill.events", b"mill.7.alarm")
        assert not rights.may_write_key(b"mills", b"mill.events", b"mill.x.alarm")
        assert not rights.may_read_key(b"mills", b"mill.events", b"mill.7.alarm")  # it is not understood, so nothing


async def test_policies_that_look_ahead_at_the_start_hold_and_those_that_look_around_elsewhere_are_listed(tmp_path):
    patterns = {"ahead": "^(?!tmp\\.)(?=.*ed$)", "later": "^orders(?!\\.old)", "behind": "(?<!\\.old)$"}
    policies = [
        {"vhost": "/", "name": name, "pattern": pattern, "apply-to": "queues", "definition": {"max-length": 7}}
        for name, pattern in patterns.items()
    ]
    queues = [{"name": name, "vhost": "/", "durable": True} for name in ("stored", "tmp.stored", "orders")]
    async with managed_gateway(tmp_path) as (gateway, client):
        answer = (await client.post("/api/definitions", json={"policies": policies, "queues": queues})).json()
        assert answer["imported"] == {"policies": 1, "queues": 3}
        assert [one.partition(": ")[0] for one in answer["not_imported"]] == [
            "policy 'later' in vhost '/'", "policy 'behind' in vhost '/'",
        ]  # fmt: skip
        assert all("it may look ahead right behind a ^ at its start" in one for one in answer["not_imported"])
        lengths = {queue.name: queue.terms.length_max for queue in gateway.doors["amqp"].vhost}
        assert lengths == {"stored": 7, "tmp.stored": -1, "orders": -1}
        assert [one["name"] for one in (await client.get("/api/policies")).json()] == ["ahead"]


async def test_an_import_takes_rights_away_whose_expression_it_does_not_understand(tmp_path):
    """The user had all of them before; RabbitMQ would have replaced them."""
    async with managed_gateway(tmp_path) as (gateway, client):
        users = [{"name": "eve", "password_hash": "", "tags": ""}]
        names = {"user": "eve", "vhost": "/", "configure": "", "write": ".*", "read": ".*"}
        await client.post("/api/definitions", json={"users": users, "permissions": [names]})
        assert gateway.authenticator.find_rights("amqp", "eve").may_write(b"/", b"secret")
        looking = {**names, "write": "^x(?!secret)"}
        keys = {"user": "eve", "vhost": "/", "exchange": "amq.topic", "write": "(?<!secret)$", "read": ".*"}
        file = {"permissions": [looking], "topic_permissions": [keys]}
        answer = (await client.post("/api/definitions", json=file)).json()
        assert len(answer["not_imported"]) == 2
        rights = gateway.authenticator.find_rights("amqp", "eve")
        assert not any(rights.may_write(b"/", name) for name in (b"secret", b"x", b"xy", b"amq.topic"))
        assert not any(rights.may_write_key(b"/", b"amq.topic", key) for key in (b"", b"a", b"a.secret"))
        assert rights.may_read(b"/", b"secret")
