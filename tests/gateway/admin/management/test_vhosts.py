from __future__ import annotations

import asyncio

import aio_pika
import pytest

from tests.support.admin import ELSEWHERE, declare, managed_gateway

pytestmark = pytest.mark.asyncio


async def test_virtual_host_is_made_told_and_deleted(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        assert (await client.put("/api/vhosts/of%2Fplant")).status_code == 201
        said = {"description": "of the plant", "tags": "a, b"}
        assert (await client.put("/api/vhosts/of%2Fplant", json=said)).status_code == 204
        found = (await client.get("/api/vhosts/of%2Fplant")).json()
        assert found["metadata"] == {
            "description": "of the plant", "tags": ["a", "b"], "default_queue_type": "undefined"
        }  # fmt: skip
        assert (found["name"], found["tags"], found["tracing"]) == ("of/plant", ["a", "b"], False)
        assert found["lmq"] == {"queues": 0, "connections": 0, "limits": {}, "has_mqtt_topics": False}
        assert [one["name"] for one in (await client.get("/api/vhosts")).json()] == ["/", "of/plant"]
        assert (await client.delete("/api/vhosts/of%2Fplant")).status_code == 204
        assert (await client.delete("/api/vhosts/of%2Fplant")).status_code == 404
        assert [vhost.name for vhost in gateway.doors["amqp"].vhosts] == ["/"]


async def test_what_is_not_said_stays_and_what_cannot_be_is_refused(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        await client.put("/api/vhosts/v", json={"description": "d", "tags": ["a"]})
        await client.put("/api/vhosts/v", json={"tags": [], "description": None})
        assert (await client.put("/api/vhosts/v", json={"tags": None})).status_code == 204
        assert gateway.doors["amqp"].vhosts.find("v").profile == ("d", (), -1, -1, "")
        for said in ({"default_queue_type": "odd"}, {"tracing": True}, {"tags": 7}):
            assert 400 <= (await client.put("/api/vhosts/v", json=said)).status_code < 500
        assert (await client.put(f"/api/vhosts/{'x' * 256}")).status_code == 400


async def test_default_type_of_queues_is_said_kept_and_taken_back(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        await client.put("/api/vhosts/v", json={"default_queue_type": "quorum"})
        await client.put("/api/vhosts/v", json={"description": "d"})
        assert (await client.get("/api/vhosts/v")).json()["default_queue_type"] == "quorum"
        await client.put("/api/queues/v/q", json={"durable": True})
        assert (await client.get("/api/queues/v/q")).json()["type"] == "quorum"
        await client.put("/api/vhosts/v", json={"default_queue_type": "classic"})
        assert gateway.doors["amqp"].vhosts.find("v").profile.queue_type == ""


async def test_deletion_closes_connections_and_the_next_one_of_the_name_is_empty(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        await client.put("/api/vhosts/v")
        url = "amqp://guest:guest@{}:{}/v".format(*gateway.listening["amqp"])
        connection = await aio_pika.connect(url)
        queue = await (await connection.channel()).declare_queue("q", durable=True)
        assert queue.declaration_result.message_count == 0
        assert (await client.get("/api/vhosts/v")).json()["lmq"]["connections"] == 1
        assert (await client.delete("/api/vhosts/v")).status_code == 204
        async with asyncio.timeout(10):
            while not connection.transport.connection.is_closed:
                await asyncio.sleep(0)
        assert (await client.get("/api/queues/v")).status_code == 404
        assert (await client.put("/api/vhosts/v")).status_code == 201
        assert (await client.get("/api/queues/v")).json() == []
        declare(gateway, "kept")
        assert len((await client.get("/api/queues")).json()) == 1


async def test_only_administrators_change_them(tmp_path):
    async with managed_gateway(tmp_path, auth=None) as (_, client):
        assert (await client.get("/api/vhosts")).status_code == 200
        assert (await client.put("/api/vhosts/v")).status_code == 401
        assert (await client.delete("/api/vhosts/%2F")).status_code == 401
    async with managed_gateway(tmp_path, peer=ELSEWHERE) as (_, client):
        assert (await client.put("/api/vhosts/v")).status_code == 401


async def test_virtual_hosts_tell_their_messages(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        for vhost, count in (("v", 3), ("%2F", 1)):
            await client.put(f"/api/vhosts/{vhost}")
            await client.put(f"/api/queues/{vhost}/q", json={"durable": True})
            for _ in range(count):
                said = {"routing_key": "q", "payload": "x", "payload_encoding": "string", "properties": {}}
                assert (await client.post(f"/api/exchanges/{vhost}/amq.default/publish", json=said)).json()["routed"]
        url = "amqp://guest:guest@{}:{}/v".format(*gateway.listening["amqp"])
        connection = await aio_pika.connect(url)
        queue = await (await connection.channel()).get_queue("q")
        held = await queue.get()
        names = ("name", "messages", "messages_ready", "messages_unacknowledged")
        found = (await client.get("/api/vhosts")).json()
        assert [tuple(one[name] for name in names) for one in found] == [("/", 1, 1, 0), ("v", 3, 2, 1)]
        assert (await client.get("/api/vhosts/v")).json()["messages"] == 3
        await held.ack()
        await connection.close()
