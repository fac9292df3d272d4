from __future__ import annotations

import asyncio
from urllib.parse import quote

import pytest

from gateway.settings.models import AuthSettings
from tests.support.admin import declare, managed_gateway
from tests.support.admin_clients import add_user, publish

pytestmark = pytest.mark.asyncio


async def _count(client, queue):
    return (await client.get(f"/api/queues/%2F/{quote(queue, safe='')}")).json()["messages_ready"]


async def test_messages_are_moved_with_all_that_they_carry(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "a", "b")
        for body in ("1", "2", "3"):
            await publish(client, "amq.default", "a", body)
        answer = await client.post("/api/lmq/move", json={"source": "a", "destination": "b", "count": 2})
        assert answer.json() == {"moved": 2, "left": 0, "reasons": []}
        assert (await _count(client, "a"), await _count(client, "b")) == (1, 2)
        assert (await client.post("/api/lmq/move", json={"source": "a", "destination": "a"})).json() == {
            "moved": 1,
            "left": 0,
            "reasons": [],
        }
        answer = await client.post("/api/lmq/move", json={"source": "a"})
        assert (answer.status_code, await _count(client, "a")) == (400, 1)
        assert (await client.post("/api/lmq/move", json={"source": "a", "destination": "c"})).status_code == 404


LETTERS = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
TAKE = {"count": 9, "ackmode": "ack_requeue_false", "encoding": "auto"}


async def _dying(client, queue, **arguments):
    """Make a queue whose letters come to `dead`."""
    wanted = {"durable": True, "arguments": LETTERS | arguments}
    assert (await client.put(f"/api/queues/%2F/{quote(queue, safe='')}", json=wanted)).status_code == 201


async def _send(client, queue, body, **properties):
    wanted = {"routing_key": queue, "payload": body, "payload_encoding": "string", "properties": properties}
    assert (await client.post("/api/exchanges/%2F/amq.default/publish", json=wanted)).json()["routed"]


async def _kill(client, queue, body, **properties):
    """Publish a message to a queue, and reject it there."""
    await _send(client, queue, body, **properties)
    before = await _count(client, "dead")
    await client.post(f"/api/queues/%2F/{quote(queue, safe='')}/get", json=TAKE | {"ackmode": "reject_requeue_false"})
    while await _count(client, "dead") == before:
        await asyncio.sleep(0)


async def _take(client, queue):
    return (await client.post(f"/api/queues/%2F/{quote(queue, safe='')}/get", json=TAKE)).json()


async def test_headers_of_the_application_go_back_with_a_dead_letter(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "dead")
        await _dying(client, "jobs")
        await _kill(client, "jobs", "work", headers={"x-request-id": "7", "x-retries": 3, "plain": "a"})
        assert (await client.post("/api/lmq/move", json={"source": "dead"})).json()["moved"] == 1
        (back,) = await _take(client, "jobs")
        assert back["properties"]["headers"] == {"x-request-id": "7", "x-retries": 3, "plain": "a"}


async def test_a_letter_that_cannot_go_back_stays_and_those_behind_it_go(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "dead")
        await _dying(client, "w1")
        await _dying(client, "w2")
        for queue, body in (("w1", "a"), ("w2", "b"), ("w2", "c"), ("w1", "d"), ("w2", "e")):
            await _kill(client, queue, body)
        await client.delete("/api/queues/%2F/w1")
        done = (await client.post("/api/lmq/move", json={"source": "dead"})).json()
        assert done == {"moved": 3, "left": 2, "reasons": ["no queue 'w1'"]}
        answer = await client.post("/api/lmq/move", json={"source": "dead"})
        assert (answer.status_code, answer.json()["reason"]) == (400, "moved 0, 2 left: no queue 'w1'")
        assert [one["payload"] for one in await _take(client, "w2")] == ["b", "c", "e"]
        assert [one["payload"] for one in await _take(client, "dead")] == ["a", "d"]


async def test_a_moved_message_goes_to_its_destination_alone(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "dead", "from", "to", "other")
        await _dying(client, "jobs")
        await _send(client, "from", "m", headers={"CC": ["other"], "x-a": "b"})
        assert len(await _take(client, "other")) == 1
        assert (await client.post("/api/lmq/move", json={"source": "from", "destination": "to"})).json()["moved"] == 1
        (moved,) = await _take(client, "to")
        assert moved["properties"]["headers"] == {"x-a": "b"}
        await _kill(client, "jobs", "m", headers={"CC": ["other"]})
        await _take(client, "other")
        assert (await client.post("/api/lmq/move", json={"source": "dead"})).json()["moved"] == 1
        assert (await _count(client, "jobs"), await _count(client, "other")) == (1, 0)


async def test_what_a_publisher_wrote_sends_nothing_anywhere(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "dead")
        await _dying(client, "jobs")
        await _dying(client, "payments")
        said = {"x-first-death-queue": "payments", "x-first-death-reason": "rejected", "x-first-death-exchange": ""}
        last = {name.replace("first", "last"): value for name, value in said.items()}
        entry = {"queue": "payments", "reason": "rejected", "exchange": "", "count": 1, "routing-keys": ["payments"]}
        all_of_it = {**said, **last, "x-death": [entry]}
        await _send(client, "dead", "forged", headers=said)
        await _send(client, "dead", "forged", headers=all_of_it)
        await _send(client, "dead", "forged", headers={**all_of_it, "LMQ_DIED": "%2F/payments"})
        answer = await client.post("/api/lmq/move", json={"source": "dead"})
        assert (answer.status_code, answer.json()["reason"]) == (
            400,
            "moved 0, 3 left: the gateway cannot tell where they died: give a destination",
        )
        await _kill(client, "jobs", "forged, then dead", headers={**all_of_it, "LMQ_DIED": "%2F/payments"})
        assert (await client.post("/api/lmq/move", json={"source": "dead"})).json()["moved"] == 1
        counts = {queue: await _count(client, queue) for queue in ("payments", "dead", "jobs")}
        assert counts == {"payments": 0, "dead": 3, "jobs": 1}


async def test_a_letter_goes_back_whatever_queues_send_theirs_by_now(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "dead")
        await _dying(client, "jobs/of:1")
        await _kill(client, "jobs/of:1", "work")
        await client.delete("/api/queues/%2F/jobs%2Fof:1")
        declare(gateway, "jobs/of:1")
        assert (await client.post("/api/lmq/move", json={"source": "dead"})).json()["moved"] == 1
        assert (await _count(client, "jobs/of:1"), await _count(client, "dead")) == (1, 0)


async def test_a_letter_goes_back_to_the_first_of_the_queues_that_it_died_in(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "dead")
        await _dying(client, "later", **{"x-message-ttl": 1})
        await _dying(client, "jobs", **{"x-dead-letter-routing-key": "later"})
        await _kill(client, "jobs", "work")
        assert (await client.post("/api/lmq/move", json={"source": "dead"})).json()["moved"] == 1
        assert [one["payload"] for one in await _take(client, "jobs")] == ["work"]


async def test_an_administrator_without_rights_is_told_what_is_missing(tmp_path):
    async with managed_gateway(tmp_path, rights=AuthSettings(default="deny")) as (gateway, client):
        declare(gateway, "from", "to")
        wanted = {"source": "from", "destination": "to"}
        answer = await client.post("/api/lmq/move", json=wanted)
        told = "tags give no rights on messages; 'lmq grant guest --vhost / --all' does, or 'lmq rule add"
        assert answer.status_code == 401
        assert answer.json()["reason"].startswith(
            f"access to vhost '/' refused for user 'guest' by auth.default: {told}"
        )
        reason = (await client.get("/api/lmq/retained/a")).json()["reason"]
        assert reason.startswith(f"subscribe access to topic 'a' refused for user 'guest' by auth.default: {told}")
        rule = {"permit": "allow", "users": ["guest"]}
        assert (await client.put("/api/lmq/rules/mine", json=rule)).status_code == 201
        assert (await client.get("/api/lmq/retained/a")).status_code == 404
        await _send(client, "from", "m")
        assert (await client.post("/api/lmq/move", json=wanted)).json()["moved"] == 1
        assert (await client.delete("/api/lmq/rules/mine")).status_code == 204
        rights = {"configure": ".*", "write": ".*", "read": ".*"}
        assert (await client.put("/api/permissions/%2F/guest", json=rights)).status_code in {201, 204}
        assert (await client.get("/api/lmq/retained/a")).status_code == 404
        wanted = {"source": "to", "destination": "from"}
        assert (await client.post("/api/lmq/move", json=wanted)).json()["moved"] == 1


async def test_a_message_of_another_user_by_its_user_id_stays(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "from", "to")
        await _send(client, "from", "mine", user_id="guest")
        await add_user(client, "bob", "administrator", read=".*")
        wanted = {"source": "from", "destination": "to"}
        answer = await client.post("/api/lmq/move", json=wanted, auth=("bob", "bob"))
        assert "user_id is 'guest', and only that user may publish so" in answer.json()["reason"]
        assert await _count(client, "from") == 1


async def test_dead_letters_go_back_to_where_they_died(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "dead")
        arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        await client.put("/api/queues/%2F/jobs", json={"durable": True, "arguments": arguments})
        await publish(client, "amq.default", "jobs", "work")
        take = {"count": 1, "ackmode": "reject_requeue_false", "encoding": "auto"}
        await client.post("/api/queues/%2F/jobs/get", json=take)
        while not await _count(client, "dead"):
            await asyncio.sleep(0)
        assert (await client.post("/api/lmq/move", json={"source": "dead"})).json() == {
            "moved": 1,
            "left": 0,
            "reasons": [],
        }
        (back,) = (await client.post("/api/queues/%2F/jobs/get", json=take)).json()
        assert (back["payload"], back["properties"].get("headers")) == ("work", None)
