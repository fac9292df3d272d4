from __future__ import annotations

import pytest

from tests.support.admin import make_client, make_view, managed_gateway
from tests.support.admin_clients import subscribe
from tests.support.logins import quick_hash

pytestmark = pytest.mark.asyncio


async def test_what_connects_in_a_loop_is_named(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        for _ in range(3):
            async with subscribe(gateway, "looping", "plant/#"):
                pass
        async with subscribe(gateway, "calm", "plant/#"):
            pass
        found = (await client.get("/api/lmq/churn")).json()
        (address,) = found["connections"]
        assert address == {"count": 4, "door": "mqtt", "host": "127.0.0.1", "outcome": "connected"}
        logins = [(one["client"], one["count"], one["outcome"]) for one in found["logins"] if one["door"] == "mqtt"]
        assert logins == [("looping", 3, "let in without a login"), ("calm", 1, "let in without a login")]
        assert (found["connections_missed_max"], found["logins_missed_max"]) == (0, 0)
        assert found["within_s"] <= 60
        (first,) = (await client.get("/api/lmq/churn?count=1")).json()["logins"]
        assert first["client"] == "looping"


async def test_clients_are_named_to_those_that_see_all(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        await client.put("/api/users/ann", json={"password_hash": quick_hash("x"), "tags": "management"})
        async with make_client(make_view(gateway), auth=("ann", "x")) as ann:
            assert (await ann.get("/api/lmq/churn")).status_code == 401
        async with make_client(make_view(gateway), auth=("ann", "wrong")) as ann:
            assert (await ann.get("/api/lmq/churn")).status_code == 401
        (refused,) = (await client.get("/api/lmq/churn")).json()["logins"]
        assert (refused["door"], refused["user"], refused["count"]) == ("admin", "ann", 1)
