from __future__ import annotations

import aio_pika
import aiormq
import pytest

from tests.support.admin import managed_gateway
from tests.support.logins import quick_hash

pytestmark = pytest.mark.asyncio
BOB = {"password_hash": quick_hash("secret"), "tags": ""}
ROW = {"configure": "", "write": "^a", "read": ".*"}
KEYS = {"exchange": "e", "write": "^{username}", "read": "^b"}


async def test_permissions_are_set_told_and_taken_back(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        await client.put("/api/users/bob", json=BOB)
        await client.put("/api/vhosts/v")
        assert (await client.put("/api/permissions/v/bob", json=ROW)).status_code == 201
        assert (await client.put("/api/permissions/v/bob", json=ROW)).status_code == 204
        told = [{"user": "bob", "vhost": "v", **ROW}]
        for path in ("/api/permissions", "/api/vhosts/v/permissions", "/api/users/bob/permissions"):
            assert (await client.get(path)).json() == told
        assert (await client.get("/api/vhosts/%2F/permissions")).json() == []
        assert (await client.delete("/api/permissions/v/bob")).status_code == 204
        assert (await client.delete("/api/permissions/v/bob")).status_code == 404
        assert (await client.get("/api/permissions/v/bob")).status_code == 404


async def test_permissions_on_routing_keys_are_set_told_and_taken_back(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        await client.put("/api/users/bob", json=BOB)
        assert (await client.put("/api/topic-permissions/%2F/bob", json=KEYS)).status_code == 201
        assert (await client.put("/api/topic-permissions/%2F/bob", json={**KEYS, "exchange": "f"})).status_code == 201
        told = [{"user": "bob", "vhost": "/", **KEYS, "exchange": name} for name in ("e", "f")]
        for path in (
            "/api/topic-permissions",
            "/api/vhosts/%2F/topic-permissions",
            "/api/users/bob/topic-permissions",
            "/api/topic-permissions/%2F/bob",
        ):
            assert (await client.get(path)).json() == told
        assert (await client.delete("/api/topic-permissions/%2F/bob/f")).status_code == 204
        assert (await client.delete("/api/topic-permissions/%2F/bob")).status_code == 204
        assert (await client.delete("/api/topic-permissions/%2F/bob")).status_code == 404


async def test_guest_that_is_let_into_a_new_virtual_host_keeps_the_first_until_somebody_says_otherwise(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        await client.put("/api/vhosts/v")
        every = {"configure": ".*", "write": ".*", "read": ".*"}
        assert (await client.put("/api/permissions/v/guest", json=every)).status_code == 201
        url = "amqp://guest:guest@{}:{}/".format(*gateway.listening["amqp"])
        for path in ("", "v"):
            async with await aio_pika.connect(url + path) as connection:
                await (await connection.channel()).declare_queue("q")
        assert (await client.put("/api/permissions/%2F/guest", json={**every, "configure": ""})).status_code == 201
        async with await aio_pika.connect(url) as connection:
            with pytest.raises(aiormq.exceptions.ChannelAccessRefused):
                await (await connection.channel()).declare_queue("r")


async def test_permissions_go_with_their_user_and_with_their_virtual_host(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        for user in ("ann", "bob"):
            await client.put(f"/api/users/{user}", json=BOB)
            await client.put("/api/vhosts/v")
            for vhost in ("v", "%2F"):
                await client.put(f"/api/permissions/{vhost}/{user}", json=ROW)
                await client.put(f"/api/topic-permissions/{vhost}/{user}", json=KEYS)
        await client.delete("/api/users/ann")
        await client.delete("/api/vhosts/v")
        for path in ("/api/permissions", "/api/topic-permissions"):
            assert [(row["user"], row["vhost"]) for row in (await client.get(path)).json()] == [("bob", "/")]


@pytest.mark.parametrize(
    ("path", "said", "code"),
    [
        ("/api/permissions/%2F/bob", {**ROW, "read": "("}, 400),
        ("/api/permissions/%2F/bob", {"read": ".*"}, 400),
        ("/api/permissions/%2F/eve", ROW, 404),
        ("/api/permissions/w/bob", ROW, 404),
        ("/api/topic-permissions/%2F/bob", {**KEYS, "write": "a**"}, 400),
        ("/api/topic-permissions/%2F/eve", KEYS, 404),
    ],
)
async def test_what_is_no_permission_is_refused(tmp_path, path, said, code):
    async with managed_gateway(tmp_path) as (_, client):
        await client.put("/api/users/bob", json=BOB)
        assert (await client.put(path, json=said)).status_code == code
