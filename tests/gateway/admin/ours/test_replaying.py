from __future__ import annotations

import pytest

from tests.support.admin import declare, managed_gateway
from tests.support.admin_clients import add_user, publish

pytestmark = pytest.mark.asyncio

TAKE = {"count": 50, "ackmode": "ack_requeue_false", "encoding": "auto"}


async def _take(client, queue):
    """Take all messages of a queue; return their bodies."""
    return [one["payload"] for one in (await client.post(f"/api/queues/%2F/{queue}/get", json=TAKE)).json()]


async def _replay(client, **wanted):
    return await client.post("/api/lmq/replay", json=wanted)


async def test_messages_that_were_consumed_come_once_more_from_an_offset_on(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "jobs")
        for body in "abcde":
            await publish(client, "amq.default", "jobs", body)
        assert await _take(client, "jobs") == list("abcde")
        answer = await _replay(client, source="jobs", offset=2)
        assert answer.json() == {"replayed": 3, "left": 0, "next_offset": 5}
        assert await _take(client, "jobs") == list("cde")
        answer = await _replay(client, source="jobs", offset=0, count=2)
        assert answer.json() == {"replayed": 2, "left": 0, "next_offset": 2}
        assert await _take(client, "jobs") == list("ab")


async def test_messages_are_replayed_into_another_queue_and_stay_where_they_are(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "jobs", "bench")
        sent = {
            "routing_key": "jobs",
            "payload": "a",
            "payload_encoding": "string",
            "properties": {"message_id": "m1", "headers": {"kind": "job", "CC": ["elsewhere"]}},
        }
        await client.post("/api/exchanges/%2F/amq.default/publish", json=sent)
        answer = await _replay(client, source="jobs", destination="bench", at_ms=0)
        assert answer.json() == {"replayed": 1, "left": 0, "next_offset": 1}
        (there,) = (await client.post("/api/queues/%2F/bench/get", json=TAKE)).json()
        assert (there["payload"], there["properties"]["message_id"]) == ("a", "m1")
        assert there["properties"]["headers"] == {"kind": "job"}
        assert await _take(client, "jobs") == ["a"]


async def test_nothing_is_replayed_where_nothing_is(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "jobs")
        assert (await _replay(client, source="jobs", offset=0)).json() == {"replayed": 0, "left": 0, "next_offset": 0}
        await publish(client, "amq.default", "jobs", "a")
        assert (await _replay(client, source="jobs", offset=7)).json()["replayed"] == 0


async def test_a_replay_that_cannot_be_is_refused_in_words(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "jobs")
        assert (await _replay(client, source="jobs")).status_code == 400
        assert (await _replay(client, source="jobs", offset=1, at_ms=1)).status_code == 400
        assert (await _replay(client, source="none", offset=0)).status_code == 404
        assert (await _replay(client, source="jobs", destination="none", offset=0)).status_code == 404


async def test_a_queue_with_priorities_is_replayed_in_the_order_in_which_messages_came(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        await client.put("/api/queues/%2F/jobs", json={"durable": True, "arguments": {"x-max-priority": 3}})
        await client.put("/api/queues/%2F/bench", json={"durable": True})
        for body, priority in zip("abcd", (1, 3, 0, 3), strict=True):
            sent = {"routing_key": "jobs", "payload": body, "payload_encoding": "string"}
            await client.post(
                "/api/exchanges/%2F/amq.default/publish", json={**sent, "properties": {"priority": priority}}
            )
        assert await _take(client, "jobs") == list("bdac")
        first = (await _replay(client, source="jobs", destination="bench", offset=0, count=2)).json()
        rest = (await _replay(client, source="jobs", destination="bench", offset=first["next_offset"])).json()
        assert (first["replayed"], rest["replayed"]) == (2, 2)
        assert await _take(client, "bench") == list("abcd")
        for at_ms, count in ((0, 4), (1 << 62, 0)):
            answer = await _replay(client, source="jobs", destination="bench", at_ms=at_ms)
            assert answer.json()["replayed"] == count
            again = await _replay(client, source="jobs", destination="bench", offset=answer.json()["next_offset"])
            assert again.json()["replayed"] == 0


async def test_a_message_of_another_user_is_left_where_it_is(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "jobs", "bench")
        await add_user(client, "ann", "administrator")
        await client.put("/api/permissions/%2F/ann", json={"configure": "", "write": ".*", "read": ".*"})
        sent = {"routing_key": "jobs", "payload": "a", "payload_encoding": "string", "properties": {"user_id": "guest"}}
        await client.post("/api/exchanges/%2F/amq.default/publish", json=sent)
        await publish(client, "amq.default", "jobs", "b")
        wanted = {"source": "jobs", "destination": "bench", "offset": 0}
        answer = await client.post("/api/lmq/replay", json=wanted, auth=("ann", "ann"))
        assert answer.json() == {"replayed": 1, "left": 1, "next_offset": 2}
        assert await _take(client, "bench") == ["b"]


async def test_a_user_without_rights_is_told_no_offset(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "jobs")
        await publish(client, "amq.default", "jobs", "a")
        await add_user(client, "ann", "management")
        for rights in (
            {"configure": "", "write": ".*", "read": "^other$"},
            {"configure": "", "write": "", "read": ".*"},
        ):
            await client.put("/api/permissions/%2F/ann", json=rights)
            refused = await client.post("/api/lmq/replay", json={"source": "jobs", "offset": 0}, auth=("ann", "ann"))
            assert refused.status_code == 401, rights
        await client.put("/api/permissions/%2F/ann", json={"configure": "", "write": ".*", "read": "^other$"})
        for start in ({"offset": 9}, {"at_ms": 1 << 50}):
            refused = await client.post("/api/lmq/replay", json={"source": "jobs", **start}, auth=("ann", "ann"))
            assert (refused.status_code, "next_offset" in refused.json()) == (401, False), start


async def test_a_replay_that_ends_early_says_where_to_go_on(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "jobs")
        limits = {"x-max-length": 2, "x-overflow": "reject-publish"}
        await client.put("/api/queues/%2F/small", json={"durable": True, "arguments": limits})
        for body in "abcd":
            await publish(client, "amq.default", "jobs", body)
        full = await _replay(client, source="jobs", destination="small", offset=0)
        assert full.status_code == 503
        assert "2 were replayed before it, 0 left; go on at offset 2" in full.json()["reason"]
        assert await _take(client, "small") == ["a", "b"]
        answer = await _replay(client, source="jobs", destination="small", offset=2)
        assert answer.json() == {"replayed": 2, "left": 0, "next_offset": 4}
