from __future__ import annotations

import pytest

from gateway.auth.user_quotas import NAMES
from tests.support.admin import managed_gateway

pytestmark = pytest.mark.asyncio
LIMITS = "/api/user-limits"
ALL = {"configure": ".*", "write": ".*", "read": ".*"}


async def test_limits_are_set_told_taken_back_and_go_with_their_user(tmp_path):
    async with managed_gateway(tmp_path / "data") as (gateway, client):
        told = []
        gateway.authenticator.events.listen(told.append)
        assert (await client.put("/api/users/ann", json={"password": "x", "tags": ""})).status_code == 201
        assert (await client.put(f"{LIMITS}/ann/max-connections", json={"value": 5})).status_code == 204
        assert (await client.put(f"{LIMITS}/ann/max-channels", json={"value": 7})).status_code == 204
        expected = [{"user": "ann", "value": {"max-connections": 5, "max-channels": 7}}]
        assert (await client.get(LIMITS)).json() == (await client.get(f"{LIMITS}/ann")).json() == expected
        assert (await client.get("/api/users/ann")).json()["limits"] == expected[0]["value"]
        assert gateway.authenticator.quotas.find("ann").connections_max == 5
        assert (await client.delete(f"{LIMITS}/ann/max-channels")).status_code == 204
        assert (await client.get(f"{LIMITS}/ann")).json() == [{"user": "ann", "value": {"max-connections": 5}}]
        assert (await client.get(f"{LIMITS}/guest")).json() == []
        fields = [(event.kind, event.fields["name"], event.fields.get("limit")) for event in told]
        assert fields[1] == ("user.limits.set", "ann", "max-connections")
        assert fields[3] == ("user.limits.cleared", "ann", "max-channels")
        wrong = (("ann/odd", 1, 400), ("ann/messages-rate", 0, 400), ("eve/max-channels", 1, 404))
        too_large = [(f"ann/{name}", value, 400) for name in NAMES for value in (1 << 53, 1 << 63, 10**400)]
        for path, value, code in (*wrong, *too_large):
            assert (await client.put(f"{LIMITS}/{path}", json={"value": value})).status_code == code
        for value in ("7", True, 7.5):
            assert (await client.put(f"{LIMITS}/ann/max-channels", json={"value": value})).status_code == 400
    async with managed_gateway(tmp_path / "data") as (gateway, client):
        assert gateway.authenticator.quotas.find("ann").connections_max == 5
        assert (await client.delete("/api/users/ann")).status_code == 204
        assert (await client.get(LIMITS)).json() == []


async def test_a_user_that_a_kill_brings_back_has_the_limits_still(tmp_path):
    async with managed_gateway(tmp_path / "data") as (gateway, client):
        assert (await client.put("/api/users/ann", json={"password": "x", "tags": ""})).status_code == 201
        assert (await client.put("/api/permissions/%2F/ann", json=ALL)).status_code == 201
        assert (await client.put(f"{LIMITS}/ann/max-connections", json={"value": 5})).status_code == 204
        steps = gateway.authenticator.stored.delete_user("ann")
        next(steps)  # of two, behind each of which a commit may begin
        assert gateway.authenticator.quotas.stored == {}
        tables = [dict(gateway.broker.table(name).items()) for name in ("auth_users", "user_limits")]
        assert [len(rows) for rows in tables] == [1, 1]
        assert list(steps) == []
        assert not any(dict(gateway.broker.table(name).items()) for name in ("auth_users", "user_limits"))


async def test_limits_are_told_in_pages(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        for number, user in enumerate(("bob", "ann", "eve")):
            await client.put(f"/api/users/{user}", json={"password": "x", "tags": ""})
            await client.put(f"{LIMITS}/{user}/max-channels", json={"value": 9 - number})
        page = (await client.get(f"{LIMITS}?page=1&page_size=2&columns=user")).json()
        assert (page["items"], page["page_count"]) == ([{"user": "ann"}, {"user": "bob"}], 2)
        found = (await client.get(f"{LIMITS}?sort=value.max-channels&name=e&use_regex=true")).json()
        assert [one["user"] for one in found] == ["eve"]
