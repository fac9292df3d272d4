from __future__ import annotations

import pytest

from gateway.admin.ours.sessions import SessionRoster
from gateway.admin.rosters.newer import TAKEN_A_STEP
from tests.support.admin import managed_gateway
from tests.support.admin_clients import publish, subscribe

pytestmark = pytest.mark.asyncio


async def test_sessions_tell_what_they_wait_for_and_are_ended(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        async with subscribe(gateway, "pump/1", "plant/+", "plant/2"):
            (found,) = (await client.get("/api/lmq/sessions")).json()
            assert (found["client"], found["connected"], found["persistent"]) == ("pump/1", True, True)
            assert found["subscriptions"] == 2
        await publish(client, "amq.topic", "plant.2", "x")
        shown = (await client.get("/api/lmq/sessions/pump%2F1")).json()
        assert (shown["connected"], shown["connection"]) == (False, 0)
        waiting = {one["filter"]: one["waiting"] for one in shown["subscription_details"]}
        assert waiting == {"plant/+": 1, "plant/2": 1}
        found = (await client.get("/api/lmq/subscriptions?sort=waiting&client=pump/1")).json()
        assert {one["filter"] for one in found} == waiting.keys()
        assert (await client.get("/api/lmq/subscriptions?client=other")).json() == []
        assert (await client.delete("/api/lmq/sessions/pump%2F1")).status_code == 204
        assert (await client.get("/api/lmq/sessions/pump%2F1")).status_code == 404
        assert (await client.delete("/api/lmq/sessions/pump%2F1")).status_code == 404


async def test_a_session_is_ended_with_its_connection(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client), subscribe(gateway, "pump", "plant/+") as reader:
        assert (await client.delete("/api/lmq/sessions/pump")).status_code == 204
        assert await reader.read() == b""
        assert (await client.get("/api/lmq/sessions")).json() == []


async def test_sessions_come_and_go_between_the_steps_of_a_look_at_many(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, _):
        table = gateway.doors["mqtt"].sessions
        for number in range(2 * TAKEN_A_STEP):
            table.create(b"c%d" % number, b"", 0)
        part = SessionRoster(table).open("mqtt")
        looking = part.arrivals()
        next(looking)
        table.create(b"late", b"", 0)
        for _ in looking:
            pass
        for _ in part.arrivals():
            pass
        names = [part.name(number) for number in range(part.size)]
        assert names == [*(f"c{number}" for number in range(2 * TAKEN_A_STEP)), "late"]


async def test_subscriptions_are_sorted_by_each_column_whether_their_session_is_loaded_or_not(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        async with subscribe(gateway, "away", "plant/+", "b/1"):
            pass
        async with subscribe(gateway, "there", "a/1", "plant/2"):
            await publish(client, "amq.topic", "plant.2", "x")
            rows = (await client.get("/api/lmq/subscriptions")).json()
            assert [row["filter"] for row in rows] == ["a/1", "b/1", "plant/+", "plant/2"]
            for column in ("filter", "client", "qos", "waiting", "inflight", "next_offset", "light_queue"):
                for reverse in (False, True):
                    path = f"/api/lmq/subscriptions?sort={column}&sort_reverse={reverse}"
                    found = [row[column] for row in (await client.get(path)).json()]
                    assert found == sorted((row[column] for row in rows), reverse=reverse)
            strange = (await client.get("/api/lmq/subscriptions?sort=misspelt")).json()
            assert [row["filter"] for row in strange] == [row["filter"] for row in rows]
