from __future__ import annotations

import pytest

from gateway.auth.users import hash_password
from gateway.settings.models import AuthSettings, UserSettings
from tests.support.admin import declare, managed_gateway

pytestmark = pytest.mark.asyncio
Q = "/api/queues/%2F/q"


async def test_a_queue_is_made_seen_to_be_the_same_and_deleted(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        wanted = {"durable": "true", "arguments": {"x-max-length": 10, "x-queue-type": "quorum"}, "node": "any"}
        assert (await client.put(Q, json=wanted)).status_code == 201
        assert (await client.put(Q, json=wanted)).status_code == 204
        found = (await client.get(Q)).json()
        assert (found["durable"], found["arguments"]) == (True, {"x-max-length": 10, "x-queue-type": "quorum"})
        answer = await client.put(Q, json={"arguments": []})
        assert (answer.status_code, answer.json()["error"]) == (400, "bad_request")
        assert answer.json()["reason"].startswith("inequivalent arg 'durable' for queue 'q' in vhost '/'")
        assert (await client.delete(Q, params={"if-empty": "true", "if-unused": "true"})).status_code == 204
        assert (await client.delete(Q)).status_code == 404


async def test_a_body_is_json_whatever_its_header_says(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        assert (await client.put(Q, content=b"{}", headers=form)).status_code == 201
        answer = await client.put(Q, content=b"{", headers=form)
        assert (answer.status_code, answer.json()["error"]) == (400, "bad_request")


async def test_a_queue_is_purged_and_needs_no_mirror(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "q")
        message = {"routing_key": "q", "payload": "hi", "payload_encoding": "string", "properties": {}}
        await client.post("/api/exchanges/%2F/amq.default/publish", json=message)
        answer = await client.delete(Q, params={"if-empty": "true"})
        assert (answer.status_code, answer.json()["reason"]) == (400, "queue 'q' in vhost '/' not empty")
        assert (await client.get(Q)).json()["messages"] == 1
        assert (await client.delete(f"{Q}/contents")).status_code == 204
        assert (await client.get(Q)).json()["messages"] == 0
        assert (await client.post(f"{Q}/actions", json={"action": "sync"})).status_code == 204


async def test_rights_are_those_of_the_user(tmp_path):
    user = UserSettings(password_hash=hash_password("x"), may_configure=False, tags=("management",))
    rights = AuthSettings(users={"ann": user})
    async with managed_gateway(tmp_path, auth=("ann", "x"), rights=rights) as (_, client):
        answer = await client.put(Q, json={})
        assert (answer.status_code, answer.json()["error"]) == (401, "not_authorized")
        assert "configure access to queue 'q' in vhost '/' refused" in answer.json()["reason"]
    async with managed_gateway(tmp_path, auth=None) as (_, client):
        assert (await client.put(Q, json={})).status_code == 401
