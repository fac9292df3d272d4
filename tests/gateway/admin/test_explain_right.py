"""What is told of rights is what the doors go by, and names the rule that decides."""

from __future__ import annotations

import pytest

from core.lmq.queue_name import amqp_queue_name, mqtt_queue_name
from tests.support.admin import managed_gateway
from tests.support.logins import quick_hash

pytestmark = pytest.mark.asyncio

RULES = [
    {"permit": "deny", "users": ["ann"], "topics": ["secret/#"]},
    {"permit": "allow", "clients": ["dev-*"], "topics": ["own/%c/#"]},
    {"permit": "allow", "groups": ["ops"], "topics": ["plant/#"]},
    {"permit": "allow", "addresses": ["10.0.0.0/8"], "names": ["jobs"]},
    {"permit": "allow", "doors": ["amqp"], "vhosts": ["v"], "names": ["q"], "actions": ["read"]},
]
AUTH = {"users": {"ann": {"password_hash": quick_hash("secret")}}, "rules": RULES, "default": "deny"}

BRIDGE_STATE = "$SYS/broker/connection/edge/state"  # clients may publish to it by MQTT alone

QUESTIONS = [  # what is asked, and whether it is allowed by what
    ({"action": "subscribe", "name": "secret/x", "user": "ann"}, False, "auth.rules[0]"),
    ({"action": "subscribe", "name": "#", "user": "ann"}, False, "auth.rules[0]"),
    ({"action": "subscribe", "name": "$share/g/secret/#", "user": "ann"}, False, "auth.rules[0]"),
    ({"action": "publish", "name": "secret/x", "user": "ann"}, False, "auth.rules[0]"),
    ({"action": "publish", "name": "own/dev-1/x", "user": "ann", "client": "dev-1"}, True, "auth.rules[1]"),
    ({"action": "publish", "name": "own/dev-2/x", "user": "ann", "client": "dev-1"}, False, "auth.default"),
    ({"action": "subscribe", "name": "plant/#", "user": "zoe", "group": ["ops"]}, True, "auth.rules[2]"),
    ({"action": "subscribe", "name": "plant/#", "user": "zoe", "group": ["others"]}, False, "auth.default"),
    ({"action": "read", "name": "jobs", "user": "ann", "address": "10.1.2.3", "door": "amqp"}, True, "auth.rules[3]"),
    ({"action": "read", "name": "jobs", "user": "ann", "address": "192.0.2.1", "door": "amqp"}, False, "auth.default"),
    ({"action": "read", "name": "q", "user": "ann", "vhost": "v", "door": "amqp"}, True, "auth.rules[4]"),
    ({"action": "read", "name": "q", "user": "ann", "door": "amqp"}, False, "auth.default"),
    ({"action": "enter", "vhost": "v", "user": "ann", "door": "amqp"}, True, "auth.rules[4]"),
    ({"action": "configure", "name": "q", "user": "ann", "vhost": "v", "door": "amqp"}, False, "auth.default"),
    ({"action": "publish", "name": "a", "user": ""}, False, "auth.default"),
    ({"action": "publish", "name": "$delayed/5/own/dev-1/x", "user": "ann", "client": "dev-1"}, True, "auth.rules[1]"),
    ({"action": "publish", "name": "$delayed/5/secret/x", "user": "ann"}, False, "auth.rules[0]"),
    ({"action": "publish", "name": BRIDGE_STATE, "user": "ann"}, False, "auth.default"),
    ({"action": "read", "name": "jobs", "user": "guest", "door": "amqp"}, False, "auth.default"),
]


@pytest.mark.parametrize(("question", "is_allowed", "by"), QUESTIONS)
async def test_rule_that_decides_is_told(tmp_path, question, is_allowed, by):
    async with managed_gateway(tmp_path, rights=AUTH) as (_, client):
        found = (await client.get("/api/explain/right", params=question)).json()
    assert (found["is_allowed"], found["by"]) == (is_allowed, by)
    assert found["verdict"].endswith(f" by {by}")
    assert (" not " in found["verdict"]) is not is_allowed


async def test_names_of_rocketmq_are_what_they_stand_for_at_other_doors(tmp_path):
    async with managed_gateway(tmp_path, rights=AUTH) as (_, client):

        async def ask(action, name, **more):
            asked = {"action": action, "name": name, "user": "ann", "door": "rocketmq", **more}
            found = (await client.get("/api/explain/right", params=asked)).json()
            return found["is_allowed"], found["by"]

        assert await ask("read", mqtt_queue_name(b"secret/#").decode()) == (False, "auth.rules[0]")
        assert await ask("write", mqtt_queue_name(b"secret/#").decode()) == (False, "auth.rules[0]")
        place = {"address": "10.0.0.1"}
        assert await ask("read", amqp_queue_name(b"/", b"jobs").decode(), **place) == (True, "auth.rules[3]")
        assert await ask("read", "%RETRY%jobs", **place) == (True, "auth.rules[3]")
        assert await ask("read", "LMQ_PARENT") == (False, "auth.default")


async def test_permissions_settings_and_names_that_nobody_has_are_told(tmp_path):
    rights = {"users": {"bob": {"password_hash": quick_hash("secret"), "may_publish": False}}, "mqtt_anonymous": False}
    async with managed_gateway(tmp_path, rights=rights) as (_, client):
        await client.put("/api/users/eve", json={"password": "x", "tags": ""})
        await client.put("/api/permissions/%2F/eve", json={"configure": "", "write": "^plant", "read": ".*"})

        async def ask(action, name, user):
            asked = {"action": action, "name": name, "user": user}
            return (await client.get("/api/explain/right", params=asked)).json()["verdict"]

        assert (
            await ask("publish", "a", "bob") == "user 'bob' may not publish to topic 'a' by auth.users.bob.may_publish"
        )
        assert await ask("publish", "plant/1", "eve") == (
            "user 'eve' may not publish to topic 'plant/1' by permissions of the user, "
            "write '^plant' in vhost '/' does not match 'amq.topic'"
        )
        assert await ask("read", "plant", "eve") == (
            "user 'eve' may read 'plant' in vhost '/' by permissions of the user, "
            "read '.*' in vhost '/' matches 'plant'"
        )
        assert await ask("publish", "a", "zoe") == (
            "user 'zoe' does not come in by this door; of one that a token or a back end lets in name its groups"
        )
        assert await ask("publish", "a", "") == "a client without a name does not come in by this door"


async def test_a_name_that_no_user_has_is_that_of_a_client_without_a_name_where_such_come_in(tmp_path):
    rights = {"rules": [{"permit": "deny", "users": [""], "topics": ["secret/#"]}]}
    async with managed_gateway(tmp_path, rights=rights) as (_, client):

        async def ask(name, **more):
            asked = {"action": "subscribe", "name": name, "user": "zoe", **more}
            return (await client.get("/api/explain/right", params=asked)).json()["verdict"]

        called = "a client called 'zoe', as any without a name,"
        assert await ask("plant/#") == f"{called} may subscribe to filter 'plant/#' by auth.default"
        assert await ask("secret/#") == f"{called} may not subscribe to filter 'secret/#' by auth.rules[0]"
        publish = {"door": "mqtt", "topic": "secret/a", "user": "zoe"}
        found = (await client.get("/api/explain/publish", params=publish)).json()
        assert (found["is_allowed"], found["verdict"]) == (
            False, "user 'zoe' may not publish to topic 'secret/a' by auth.rules[0]",
        )  # fmt: skip
        assert (await ask("plant/#", door="amqp")).startswith("user 'zoe' does not come in by this door")
        await client.put("/api/users/eve", json={"password": "x", "tags": ""})
        assert (await ask("plant/#")).startswith("user 'zoe' does not come in by this door")


async def test_guest_comes_from_this_machine_and_may_do_what_its_permissions_say(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        await client.put("/api/permissions/%2F/guest", json={"configure": "", "write": ".*", "read": ".*"})

        async def ask(action, **more):
            asked = {"action": action, "name": "q", "user": "guest", "door": "amqp", **more}
            return (await client.get("/api/explain/right", params=asked)).json()["verdict"]

        assert await ask("configure") == (
            "user 'guest' may not configure 'q' in vhost '/' by permissions of the user, "
            "configure '' in vhost '/' does not match 'q'"
        )
        assert (await ask("read", address="::1")).startswith("user 'guest' may read 'q'")
        assert (await ask("read", address="203.0.113.7")).startswith("user 'guest' does not come in by this door")


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ({"action": "publish", "name": "a/#"}, "is a filter"),
        ({"action": "publish", "name": "$events/a"}, "is the gateway's own"),
        ({"action": "publish", "name": "$delayed/1/$SYS/broker/a"}, "is the gateway's own"),
        ({"action": "publish", "name": BRIDGE_STATE, "door": "amqp"}, "is the gateway's own"),
        ({"action": "subscribe", "name": "a/#/b"}, "is not a filter: a # is not the last level"),
        ({"action": "read"}, "read needs a topic"),
        ({"action": "read", "name": "q", "address": "here"}, "here is not an address"),
        ({"action": "read", "name": "q", "user": "ann", "group": ["ops"]}, "are those that are known here"),
    ],
)
async def test_question_without_an_answer_is_refused_with_the_reason(tmp_path, question, why):
    async with managed_gateway(tmp_path, rights=AUTH) as (_, client):
        answer = await client.get("/api/explain/right", params=question)
    assert answer.status_code == 400
    assert why in answer.text


async def test_rights_of_others_are_for_those_that_see_all(tmp_path):
    users = {"ann": {"password_hash": quick_hash("secret"), "tags": ["management"]}}
    async with managed_gateway(tmp_path, rights={"users": users}, auth=("ann", "secret")) as (_, client):
        own = {"action": "publish", "name": "a", "user": "ann"}
        assert (await client.get("/api/explain/right", params=own)).status_code == 200
        assert (await client.get("/api/explain/right", params={**own, "user": "bob"})).status_code == 401
        assert (await client.get("/api/explain/right", params={**own, "user": ""})).status_code == 401
