from __future__ import annotations

import asyncio

import httpx
import pytest

from lmq import Producer
from tests.support.admin import managed_gateway
from tests.support.admin_clients import add_user, connect

pytestmark = pytest.mark.asyncio


async def _delay(gateway, *topics):
    """Publish to `$delayed/…` at QoS 1."""
    async with connect(gateway, "pump-7") as (reader, writer):
        for number, topic in enumerate(topics, 1):
            name = topic.encode()
            content = len(name).to_bytes(2, "big") + name + number.to_bytes(2, "big") + b"body"
            writer.write(bytes((0x32, len(content))) + content)
            assert (await reader.readexactly(4))[0] == 0x40


async def _list(client, **asked):
    return (await client.get("/api/lmq/delayed", params=asked)).json()


async def _listed(client, count):
    """Return the list once so many wait: a message is taken in when the engine has told of it, which may be later."""
    async with asyncio.timeout(30):
        while len((found := await _list(client))["items"]) < count:
            await asyncio.sleep(0)
    return found


async def test_messages_that_wait_are_listed_by_door_and_name_a_page_at_a_time(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        await _delay(gateway, "$delayed/3600/plant/1", "$delayed/60/plant/2", "$delayed/999999/plant/far")
        host, port = gateway.listening["namesrv"]
        async with Producer(f"{host}:{port}") as producer:
            await producer.send("Orders", b"new", delay=900, properties={"a": "b"})
        exchange = {"type": "x-delayed-message", "durable": True, "arguments": {"x-delayed-type": "direct"}}
        assert (await client.put("/api/exchanges/%2F/late", json=exchange)).status_code == 201
        body = {"routing_key": "jobs", "payload": "work", "payload_encoding": "string"}
        delayed = {**body, "properties": {"headers": {"x-delay": 400_000}}}
        await client.post("/api/exchanges/%2F/late/publish", json=delayed)
        found = await _listed(client, 5)
        assert [item["to"] for item in found["items"]] == ["plant/2", "late jobs", "Orders", "plant/1", "plant/far"]
        assert (found["waiting"], found["next"]) == (5, None)
        first = found["items"][0]
        assert (first["door"], first["client"], first["body"], first["body_bytes"]) == ("mqtt", "pump-7", "body", 4)
        assert 0 < first["due_at_ms"] - first["stored_at_ms"] <= 60_000
        assert found["items"][2]["properties"]["a"] == "b"
        assert [item["to"] for item in (await _list(client, door="amqp"))["items"]] == ["late jobs"]
        assert len((await _list(client, name="plant"))["items"]) == 3
        pages, after = [], {}
        while after is not None:
            page = await _list(client, count=2, **after)
            pages += [item["id"] for item in page["items"]]
            after = page["next"] and {"after": page["next"]}
        assert pages == [item["id"] for item in found["items"]]
        one = (await client.get(f"/api/lmq/delayed/{first['id']}")).json()
        assert one == first


async def test_one_is_taken_back_once(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        await _delay(gateway, "$delayed/3600/a", "$delayed/3600/b", "$delayed/999999/far")
        ids = {item["to"]: item["id"] for item in (await _listed(client, 3))["items"]}
        for name in ("a", "far"):
            assert (await client.delete(f"/api/lmq/delayed/{ids[name]}")).status_code == 204
            assert (await client.delete(f"/api/lmq/delayed/{ids[name]}")).status_code == 404
        assert [item["to"] for item in (await _list(client))["items"]] == ["b"]
        for wrong in ("7-7", "99999-1"):
            assert (await client.delete(f"/api/lmq/delayed/{wrong}")).status_code == 404
        for wrong in ("x", "7", "7-x", "-"):
            assert (await client.get(f"/api/lmq/delayed/{wrong}")).status_code == 400


async def test_it_is_for_those_who_log_in(tmp_path):
    async with managed_gateway(tmp_path, auth=None) as (_, client):
        assert (await client.get("/api/lmq/delayed")).status_code == 401
        assert (await client.delete("/api/lmq/delayed/7-7")).status_code == 401


async def test_one_that_may_not_read_where_messages_go_sees_none_and_cancels_none(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        await _delay(gateway, "$delayed/3600/plant/1")
        host, port = gateway.listening["namesrv"]
        async with Producer(f"{host}:{port}") as producer:
            await producer.send("Orders", b"new", delay=900)
        exchange = {"type": "x-delayed-message", "durable": True, "arguments": {"x-delayed-type": "topic"}}
        for name in ("late", "later"):
            assert (await client.put(f"/api/exchanges/%2F/{name}", json=exchange)).status_code == 201
            body = {"routing_key": "jobs", "payload": "work", "payload_encoding": "string"}
            delayed = {**body, "properties": {"headers": {"x-delay": 4_000_000}}}
            await client.post(f"/api/exchanges/%2F/{name}/publish", json=delayed)
        ids = {item["to"]: item["id"] for item in (await _listed(client, 4))["items"]}
        assert len(ids) == 4
        for tag in ("management", "policymaker", "monitoring"):
            await add_user(client, tag, tag)
            eve = httpx.BasicAuth(tag, tag)
            assert (await client.get("/api/lmq/delayed", auth=eve)).json()["items"] == []
            for one in ids.values():
                for ask in (client.get, client.delete):
                    answer = await ask(f"/api/lmq/delayed/{one}", auth=eve)
                    assert (answer.status_code, "body" in answer.json()) == (401, False)
        await add_user(client, "worker", "management", read="^late$")
        worker = httpx.BasicAuth("worker", "worker")
        seen = (await client.get("/api/lmq/delayed", auth=worker)).json()["items"]
        assert [(one["to"], one["body"]) for one in seen] == [("late jobs", "work")]
        assert (await client.get(f"/api/lmq/delayed/{ids['late jobs']}", auth=worker)).status_code == 200
        assert (await client.delete(f"/api/lmq/delayed/{ids['late jobs']}", auth=worker)).status_code == 401
        await add_user(client, "buyer", "management", read="^(Orders|amq.topic)$")
        seen = (await client.get("/api/lmq/delayed", auth=httpx.BasicAuth("buyer", "buyer"))).json()["items"]
        assert [one["to"] for one in seen] == ["Orders", "plant/1"]


async def test_a_message_that_waits_behind_a_binding_is_listed_by_the_exchanges_that_it_waits_at(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        for name in ("late", "later"):
            exchange = {"type": "x-delayed-message", "durable": True, "arguments": {"x-delayed-type": "direct"}}
            assert (await client.put(f"/api/exchanges/%2F/{name}", json=exchange)).status_code == 201
            bound = await client.post(f"/api/bindings/%2F/e/amq.direct/e/{name}", json={"routing_key": "jobs"})
            assert bound.status_code == 201
        body = {"routing_key": "jobs", "payload": "work", "payload_encoding": "string"}
        delayed = {**body, "properties": {"headers": {"x-delay": 400_000}}}
        await client.post("/api/exchanges/%2F/amq.direct/publish", json=delayed)
        (item,) = (await _listed(client, 1))["items"]
        assert (item["to"], item["body"]) == ("late,later jobs", "work")
        for name, read in (("binder", "^later$"), ("other", "^amq")):
            await add_user(client, name, "management", read=read)
            seen = (await client.get("/api/lmq/delayed", auth=httpx.BasicAuth(name, name))).json()["items"]
            assert len(seen) == (name == "binder")  # where it goes counts, not where it came from
        assert (await client.delete(f"/api/lmq/delayed/{item['id']}")).status_code == 204
        assert (await _list(client))["items"] == []
