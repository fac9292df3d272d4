from __future__ import annotations

import pytest

from tests.support.admin import declare, make_client, make_view, managed_gateway
from tests.support.admin_clients import publish, subscribe
from tests.support.logins import quick_hash

pytestmark = pytest.mark.asyncio


async def test_what_holds_the_oldest_messages_is_told_first(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "forgotten", "late", "empty")
        async with subscribe(gateway, "away", "plant/#"):
            pass
        await publish(client, "amq.default", "forgotten", "1")
        await publish(client, "amq.topic", "plant.1", "2")
        for body in ("3", "4"):
            await publish(client, "amq.default", "late", body)
        found = (await client.get("/api/lmq/held")).json()
        told = [(one["kind"], one["name"], one["vhost"], one["offset"], one["waiting"]) for one in found["items"]]
        assert told == [("queue", "forgotten", "/", 0, 1), ("session", "away", "", 0, 1), ("queue", "late", "/", 0, 2)]
        places = [one["place"] for one in found["items"]]
        assert places == sorted(places)
        assert found["log_bytes"] > places[-1]
        assert all(one["stored_at_ms"] > 0 for one in found["items"])
        shown = (await client.get(f"/api/lmq/messages/{places[1]}")).json()
        assert shown["topic"] == "plant/1"
        page = (await client.get("/api/lmq/held?page=1&page_size=2&sort=waiting&sort_reverse=true&columns=name")).json()
        assert page["items"] == [{"name": "late"}, {"name": "away"}]
        assert (page["total_count"], page["filtered_count"], page["page_count"]) == (3, 3, 2)
        assert (page["log_bytes"], page["not_looked_at"]) == (found["log_bytes"], 0)
        page = (await client.get("/api/lmq/held?page=1&name=at")).json()
        assert ([one["name"] for one in page["items"]], page["filtered_count"]) == (["late"], 1)
        await client.delete("/api/queues/%2F/forgotten/contents")
        (first,) = (await client.get("/api/lmq/held?count=1")).json()["items"]
        assert first["name"] == "away"
        await client.put("/api/users/ann", json={"password_hash": quick_hash("x"), "tags": "management"})
        async with make_client(make_view(gateway), auth=("ann", "x")) as ann:
            assert (await ann.get("/api/lmq/held")).status_code == 401
