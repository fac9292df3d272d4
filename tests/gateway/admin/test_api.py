from __future__ import annotations

from contextlib import AsyncExitStack

import aio_pika
import aiomqtt
import httpx
import pytest

from gateway.admin.api import AdminView, describe_gateway, explain_topic, make_api
from gateway.settings import AdminSettings
from tests.support.gateway import ANY_PORT, running_gateway

pytestmark = pytest.mark.asyncio


async def _client(gateway):
    host, port = gateway.listening["admin"]
    return httpx.AsyncClient(base_url=f"http://{host}:{port}")


async def _take(message):
    await message.ack()


async def test_health_says_whether_it_lives_and_takes_work(tmp_path):
    async with (
        running_gateway(tmp_path, admin=AdminSettings(listen=ANY_PORT)) as gateway,
        await _client(gateway) as client,
    ):
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        assert (await client.get("/readyz")).status_code == 200
        gateway.is_ready = False
        assert (await client.get("/readyz")).status_code == 503
        assert (await client.get("/healthz")).status_code == 200


async def test_readiness_says_that_the_disk_is_low_and_stays_so_that_consumers_come(tmp_path):
    async with (
        running_gateway(tmp_path, free_bytes=lambda: 7, admin=AdminSettings(listen=ANY_PORT)) as gateway,
        await _client(gateway) as client,
    ):
        answer = await client.get("/readyz")
        assert (answer.status_code, answer.json()) == (200, {"status": "ready", "disk": "low"})
        overview = (await client.get("/api/overview")).json()
        assert (overview["disk"], overview["disk_free_bytes"]) == ("low", 7)
        samples = (await client.get("/metrics")).text
        assert "lmq_disk_free_bytes 7.0" in samples
        assert "lmq_disk_low 1.0" in samples


async def test_overview_counts_by_door(tmp_path):
    async with running_gateway(tmp_path, admin=AdminSettings(listen=ANY_PORT)) as gateway:
        door = gateway.broker.metrics.door("mqtt")
        door.messages_in += 3
        door.drop("slow_subscriber", 2)
        async with await _client(gateway) as client:
            found = (await client.get("/api/overview")).json()
        assert found["doors"]["mqtt"]["messages_in"] == 3
        assert found["doors"]["mqtt"]["dropped"] == {"slow_subscriber": 2}
        assert found["is_ready"] is True


async def test_explain_names_filters_bindings_and_readers_of_each_door(tmp_path):
    async with running_gateway(tmp_path) as gateway, AsyncExitStack() as clients:
        host, port = gateway.listening["mqtt"]
        for name in ("one", "two"):
            client = await clients.enter_async_context(aiomqtt.Client(host, port, identifier=name))
            await client.subscribe("a/+/c")
        async with aiomqtt.Client(host, port, identifier="away", clean_session=False) as client:
            await client.subscribe("a/+/c", qos=1)
        url = "amqp://guest:guest@{}:{}/".format(*gateway.listening["amqp"])
        channel = await (await clients.enter_async_context(await aio_pika.connect(url))).channel()
        queue = await channel.declare_queue("work.shared", durable=True)
        for key in ("a.*.c", "#.c"):
            await queue.bind("amq.topic", key)
        await queue.consume(_take)
        found = explain_topic(gateway.broker, "a/b/c")
        assert [queue.model_dump() for queue in found.queues] == [
            {
                "name": "%LMQ%amqp%|2f%work|2eshared",
                "filters": ["#/c", "a/+/c"],
                "bindings": ["amq.topic #.c", "amq.topic a.*.c"],
                "subscriptions": 2,
                "readers": 1,
                "max_offset": 0,
            },
            {
                "name": "%LMQ%mqtt%a%|p%c",
                "filters": ["a/+/c"],
                "bindings": [],
                "subscriptions": 3,
                "readers": 2,
                "max_offset": 0,
            },
        ]
        assert [queue.bindings for queue in explain_topic(gateway.broker, "x/c").queues] == [["amq.topic #.c"]]
        assert explain_topic(gateway.broker, "a/b").queues == []


async def test_explain_wants_a_topic(tmp_path):
    async with (
        running_gateway(tmp_path, admin=AdminSettings(listen=ANY_PORT)) as gateway,
        await _client(gateway) as client,
    ):
        assert (await client.get("/api/explain")).status_code == 422
        assert (await client.get("/api/explain", params={"topic": "a"})).json()["queues"] == []


async def test_api_describes_itself(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        view = AdminView(gateway.broker, is_ready=lambda: True, uptime_ms=lambda: 7)
        paths = make_api(view).openapi()["paths"]
        assert {"/healthz", "/readyz", "/metrics", "/api/overview", "/api/explain"} <= set(paths)
        assert describe_gateway(view).uptime_ms == 7
