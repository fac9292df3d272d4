from __future__ import annotations

import pytest

from gateway.admin.ours.api_tokens import DAY_S, TokenBody
from gateway.auth.users import hash_password
from gateway.settings.models import AuthSettings, UserSettings
from tests.support.admin import ELSEWHERE, declare, make_client, make_view, managed_gateway

pytestmark = pytest.mark.asyncio
TOKENS = "/api/lmq/tokens"


def _bearer(gateway, text, peer=ELSEWHERE):
    client = make_client(make_view(gateway), auth=None, peer=peer)
    client.headers["Authorization"] = f"Bearer {text}"
    return client


async def _add(client, *scopes, name="ci", **more):
    answer = await client.post(TOKENS, json={"name": name, "scopes": scopes, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()["token"]


async def test_token_is_told_once_lets_in_from_anywhere_and_is_revoked(tmp_path):
    async with managed_gateway(tmp_path / "data") as (gateway, client):
        text = await _add(client, "administrator")
        (listed,) = (await client.get(TOKENS)).json()
        assert text not in str(listed)
        assert (listed["name"], listed["user"], listed["scopes"]) == ("ci", "guest", ["administrator"])
        async with _bearer(gateway, text) as program:
            assert (await program.get("/api/whoami")).json()["name"] == "guest"
            assert (await program.put("/api/queues/%2F/q", json={"durable": True})).status_code == 201
            said = {"properties": {}, "routing_key": "q", "payload": "m", "payload_encoding": "string"}
            assert (await program.post("/api/exchanges/%2F/amq.default/publish", json=said)).json() == {"routed": True}
            assert (await program.get("/api/users")).status_code == 200
            assert (await client.delete(f"{TOKENS}/ci")).status_code == 204
            assert (await program.get("/api/whoami")).status_code == 401
        assert (await client.delete(f"{TOKENS}/ci")).status_code == 404


async def test_token_is_for_its_scopes_alone(tmp_path):
    async with managed_gateway(tmp_path / "data") as (gateway, client):
        told = []
        gateway.authenticator.events.listen(told.append)
        declare(gateway, "q")
        reading, queues = await _add(client, "read"), await _add(client, "queues", "tokens", name="queues")
        async with _bearer(gateway, reading) as program:
            assert (await program.get("/api/queues/%2F/q")).status_code == 200
            assert (await program.get("/api/overview")).status_code == 200
            assert (await program.get("/api/whoami")).status_code == 200
            for method, path in (
                ("GET", "/api/users"),
                ("GET", "/api/users/"),
                ("GET", "/api/definitions"),
                ("GET", TOKENS),
                ("GET", "/api/lmq/messages?queue=q"),
                ("GET", "/api/lmq/delayed"),
                ("GET", "/api/lmq/retained/t"),
                ("PUT", "/api/lmq/log-levels"),
                ("POST", "/api/lmq/retention"),
                ("DELETE", "/api/queues/%2F/q"),
                ("PUT", "/api/users/ann"),
            ):
                answer = await program.request(method, path, json={})
                why = answer.json()["reason"]
                assert (answer.status_code, why) == (401, "the token is not for this: its scopes are read"), path
        assert told[0].fields["name"] == "ci"
        assert [(event.kind, event.fields["name"]) for event in told[2:]] == [
            ("access.denied", "/api/lmq/log-levels"),
            ("access.denied", "/api/lmq/retention"),
            ("access.denied", "/api/queues/%2F/q".replace("%2F", "/")),
            ("access.denied", "/api/users/ann"),
        ]
        async with _bearer(gateway, queues) as program:
            assert (await program.delete("/api/queues/%2F/q/contents")).status_code == 204
            assert (await program.put("/api/users/ann", json={"password": "x", "tags": ""})).status_code == 401
            for path in ("/api/queues/%2F/q/get", "/api/queues/%2F/q/get/"):
                assert (await program.post(path, json={"count": 1})).status_code == 401, path
            for path in ("/api/overview", "/api/connections", "/api/nodes", "/api/vhosts", "/api/lmq/sessions"):
                answer = await program.get(path)  # which a token that reads may look at
                why = answer.json()["reason"]
                assert (answer.status_code, why.startswith("the token is not for this")) == (401, True), path
            more = {"name": "more", "scopes": ["administrator"]}
            assert (await program.post(TOKENS, json=more)).status_code == 401
            assert (await program.post(TOKENS, json={**more, "scopes": ["queues"]})).status_code == 201
            assert (await program.delete(f"{TOKENS}/ci")).status_code == 401


async def test_token_is_never_more_than_its_user_is_now(tmp_path):
    users = {"ann": UserSettings(password_hash=hash_password("ann"), tags=("administrator",))}
    rights = AuthSettings(users=users)
    async with managed_gateway(tmp_path / "data", rights=rights, auth=("ann", "ann")) as (gateway, client):
        assert (await client.put("/api/users/bob", json={"password": "b", "tags": "monitoring"})).status_code == 201
        text = await _add(client, "administrator", user="bob")
        async with _bearer(gateway, text) as program:
            assert (await program.get("/api/overview")).status_code == 200
            assert (await program.get("/api/users")).status_code == 401
            assert (await client.put("/api/lmq/users/bob/tags", json={"tags": []})).status_code == 204
            assert (await program.get("/api/overview")).status_code == 401
        assert (await client.delete("/api/users/bob")).status_code == 204
        assert (await client.put("/api/users/bob", json={"password": "b", "tags": "administrator"})).status_code == 201
        async with _bearer(gateway, text) as program:
            assert (await program.get("/api/overview")).status_code == 401
        assert (await client.post(TOKENS, json={"name": "x", "scopes": ["read"], "user": "eve"})).status_code == 400
        assert (await client.post(TOKENS, json={"name": "x", "scopes": ["all"]})).status_code == 400
        _ = await _add(client, "read", name="twice")
        assert (await client.post(TOKENS, json={"name": "twice", "scopes": ["read"]})).status_code == 400


async def test_token_for_messages_looks_at_those_that_wait_and_are_kept_too(tmp_path):
    async with managed_gateway(tmp_path / "data") as (gateway, client):
        async with _bearer(gateway, await _add(client, "messages")) as program:
            assert (await program.get("/api/lmq/delayed")).status_code == 200
            assert (await program.get("/api/lmq/retained/t")).status_code == 404
        async with _bearer(gateway, await _add(client, "gateway", name="keeper")) as program:
            assert (await program.get("/api/lmq/log-levels")).status_code == 200
            assert (await program.get("/api/lmq/delayed")).status_code == 401


@pytest.mark.parametrize("text", ["bad", "lmq_bad", "a.b.c"])
async def test_token_that_is_none_is_refused_as_a_token(tmp_path, text, caplog):
    async with managed_gateway(tmp_path / "data") as (gateway, _), _bearer(gateway, text) as program:
        answer = await program.get("/api/overview")
        assert (answer.status_code, answer.json()["reason"]) == (401, "the token lets nobody in")
    assert "wrong user name" not in caplog.text


async def test_the_end_of_a_token_is_a_number_and_nothing_that_could_be_taken_for_one(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        for said in (False, True, "60", 1.5, -1):
            answer = await client.post(TOKENS, json={"name": "ci", "scopes": ["read"], "ends_in_s": said})
            assert answer.status_code == 400, answer.text
        assert (await client.get(TOKENS)).json() == []
        assert await _add(client, "read", ends_in_s=0)
        assert await _add(client, "read", name="other", ends_in_s=60.0)


async def test_the_bounds_of_an_end_are_described():
    described = TokenBody.model_json_schema()["properties"]["ends_in_s"]
    assert (described["type"], described["minimum"], described["maximum"]) == ("integer", 0, 3_650 * DAY_S)
