from __future__ import annotations

import json

import pytest

from gateway.admin.api import make_api
from gateway.admin.changes_told import KINDS
from gateway.admin.live import LiveFeed
from gateway.admin.same_site import LOOKS
from gateway.auth.users import hash_password
from gateway.settings.audit import AuditSettings
from gateway.settings.models import AuthSettings, UserSettings
from tests.support.admin import declare, make_client, make_view, managed_gateway
from tests.support.admin_clients import subscribe

pytestmark = pytest.mark.asyncio


async def test_changes_by_the_api_are_told_with_user_and_names_and_never_a_password(tmp_path):
    path = tmp_path / "audit.jsonl"
    async with managed_gateway(tmp_path / "data", audit=AuditSettings(file=path)) as (gateway, client):
        assert (await client.put("/api/users/ann", json={"password": "hush-hush", "tags": ""})).status_code == 201
        said = {"configure": ".*", "write": ".*", "read": ".*"}
        assert (await client.put("/api/permissions/%2F/ann", json=said)).status_code == 201
        assert (await client.put("/api/queues/%2F/q", json={"durable": True})).status_code == 201
        assert (await client.delete("/api/queues/%2F/q/contents")).status_code == 204
        assert (await client.delete("/api/users/nobody")).status_code == 404
        assert (await client.post("/api/lmq/users/ann/disable")).status_code == 204
        assert (await client.post("/api/lmq/users/ann/enable")).status_code == 204
        assert (await client.post("/api/users/bulk-delete", json={"users": ["ann"]})).status_code == 204
        async with make_client(make_view(gateway), auth=("guest", "wrong")) as stranger:
            assert (await stranger.put("/api/users/eve", json={"password": "x", "tags": ""})).status_code == 401
    text = path.read_text()
    assert "hush" not in text
    lines = [json.loads(line) for line in text.splitlines()]
    assert [(line["event"], line["door"], line["user"]) for line in lines] == [
        ("user.created", "admin", "guest"),
        ("permission.created", "admin", "guest"),
        ("user.authentication.success", "amqp", "guest"),
        ("queue.created", "amqp", "guest"),
        ("user.authentication.success", "amqp", "guest"),
        ("queue.purged", "amqp", "guest"),
        ("user.disabled", "admin", "guest"),
        ("user.enabled", "admin", "guest"),
        ("user.deleted", "admin", "guest"),
        ("user.authentication.failure", "admin", ""),
    ]
    assert (lines[0]["name"], lines[0]["request"]) == ("ann", "PUT /api/users/ann")
    assert (lines[1]["vhost"], lines[1]["name"]) == ("/", "ann")
    assert (lines[6]["name"], lines[7]["name"]) == ("ann", "ann")
    assert lines[8]["names"] == ["ann"]
    assert all(line["peer"] == "127.0.0.1:40000" for line in lines)


async def test_change_that_somebody_may_not_make_is_told(tmp_path):
    told = []
    rights = AuthSettings(users={"mo": UserSettings(tags=("monitoring",), password_hash=hash_password("mo"))})
    async with managed_gateway(tmp_path / "data", rights=rights, auth=("mo", "mo")) as (gateway, client):
        gateway.authenticator.events.listen(told.append)
        assert (await client.delete("/api/users/ann")).status_code == 401
        assert (await client.get("/api/users")).status_code == 401
    denied = [event for event in told if event.actor.door == "admin"]  # others may come by to this port
    assert [(event.kind, event.actor.user, event.fields["name"]) for event in denied] == [
        ("access.denied", "mo", "/api/users/ann")
    ]


CHANGES = [  # of rights and limits: what is asked, and what is told
    ("PUT", "/api/lmq/rules/no", {"permit": "deny", "topics": ["a"]}, "rule.set"),
    ("POST", "/api/lmq/rules/no/move", {}, "rule.moved"),
    ("DELETE", "/api/lmq/rules/no", None, "rule.deleted"),
    ("PUT", "/api/vhosts/v", {}, "vhost.created"),
    ("PUT", "/api/vhost-limits/v/max-queues", {"value": 1}, "vhost.limits.set"),
    ("DELETE", "/api/vhost-limits/v/max-queues", None, "vhost.limits.cleared"),
    ("DELETE", "/api/vhosts/v", None, "vhost.deleted"),
    ("PUT", "/api/users/ann", {"password": "x", "tags": "management"}, "user.created"),
    ("PUT", "/api/user-limits/ann/max-connections", {"value": 1}, "user.limits.set"),
    ("DELETE", "/api/user-limits/ann/max-connections", None, "user.limits.cleared"),
    ("PUT", "/api/permissions/%2F/ann", {"configure": "", "write": "", "read": ""}, "permission.created"),
    ("DELETE", "/api/permissions/%2F/ann", None, "permission.deleted"),
    ("PUT", "/api/topic-permissions/%2F/ann", {"exchange": "e", "write": "", "read": ""}, "topic.permission.created"),
    ("DELETE", "/api/topic-permissions/%2F/ann", None, "topic.permission.deleted"),
    ("PUT", "/api/lmq/users/ann/password", {"password": "y"}, "user.password.changed"),
    ("PUT", "/api/lmq/users/ann/tags", {"tags": ["monitoring"]}, "user.tags.set"),
    ("POST", "/api/definitions", {"users": []}, "definitions.imported"),
    ("DELETE", "/api/connections/username/ann", None, "connection.turned.out"),
    ("POST", "/api/lmq/move", {"source": "a", "destination": "b"}, "messages.moved"),
    ("POST", "/api/lmq/tokens", {"name": "ci", "scopes": ["read"], "user": "ann"}, "token.created"),
    ("DELETE", "/api/lmq/tokens/ci", None, "token.revoked"),
    ("DELETE", "/api/lmq/sessions/pump", None, "session.ended"),
    ("POST", "/api/lmq/groups/workers/reset", {"queue": "T/0", "offset": 0}, "group.reset"),
    ("PUT", "/api/policies/%2F/p", {"pattern": "x", "definition": {"max-length": 1}}, "policy.set"),
    ("DELETE", "/api/policies/%2F/p", None, "policy.cleared"),
    ("DELETE", "/api/users/ann", None, "user.deleted"),
]


async def test_each_change_of_rights_and_limits_is_told_once(tmp_path):
    told = []
    async with managed_gateway(tmp_path / "data") as (gateway, client):
        gateway.authenticator.events.listen(told.append)
        for queue in ("a", "b"):
            declare(gateway, queue)
        async with subscribe(gateway, "pump", "plant/+"):
            pass
        gateway.broker.consumer_offsets.commit(b"workers", b"T/0", 0)
        for method, path, body, kind in CHANGES:
            told.clear()
            answer = await client.request(method, path, json=body)
            assert answer.status_code < 300, (path, answer.text)
            assert [str(event.kind) for event in told if event.actor.door == "admin"] == [kind], path
            if kind == "session.ended":
                assert (told[0].actor.user, told[0].fields["client"]) == ("guest", "pump")


async def test_what_has_no_row_is_told_with_its_path_and_each_row_is_of_a_route(tmp_path):
    told = []
    async with managed_gateway(tmp_path / "data") as (gateway, client):
        view = make_view(gateway)
        gateway.authenticator.events.listen(told.append)
        assert (await client.post("/api/lmq/retention")).status_code == 200
        assert [event.kind for event in told] == ["admin.changed"]
        assert told[0].fields == {"request": "POST /api/lmq/retention"}
        schema = make_api(view, LiveFeed(view)).openapi()
    changing = {
        (method.upper(), path)
        for path, methods in schema["paths"].items()
        for method in methods
        if method.upper() not in LOOKS
    }
    assert set(KINDS) <= changing
