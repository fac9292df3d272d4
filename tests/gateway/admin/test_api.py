from __future__ import annotations

import httpx
import pytest

from gateway.admin.api import AdminView, describe_gateway, explain_topic, make_api
from gateway.settings import AdminSettings
from tests.support.gateway import ANY_PORT, running_gateway

pytestmark = pytest.mark.asyncio


async def _client(gateway):
    host, port = gateway.listening["admin"]
    return httpx.AsyncClient(base_url=f"http://{host}:{port}")


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


async def test_explain_names_queues_filters_and_readers(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        queue = b"%LMQ%mqtt%test"
        gateway.broker.open_queue(queue)
        gateway.broker.bind_filter(b"a/+/c", queue, hides_dollar=True)
        found = explain_topic(gateway.broker, "a/b/c")
        (explained,) = found.queues
        assert (explained.name, explained.filters, explained.readers) == (queue.decode(), ["a/+/c"], 0)
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
