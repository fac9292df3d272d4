from __future__ import annotations

import httpx
import pytest

from gateway.settings.models import AdminSettings
from tests.support.gateway import ANY_PORT, running_gateway

pytestmark = pytest.mark.asyncio


async def test_routes_answer_what_is_asked_and_refuse_the_rest_with_the_reason(tmp_path):
    async with running_gateway(tmp_path, admin=AdminSettings(listen=ANY_PORT)) as gateway:
        host, port = gateway.listening["admin"]
        async with httpx.AsyncClient(base_url=f"http://{host}:{port}/api", timeout=20) as client:
            for question in ({}, {"topic": "a", "exchange": "x"}, {"topic": "a/#"}):
                assert (await client.get("/explain", params=question)).status_code == 400
            for question in ({"exchange": "none"}, {"exchange": "", "vhost": "none"}):
                for path in ("/explain", "/explain/publish"):
                    answer = await client.get(path, params=question)
                    assert (answer.status_code, answer.json()["detail"][:3]) == (404, "no ")
            asked = {"door": "mqtt", "topic": "a/b", "exchange": "x"}
            assert (await client.get("/explain/publish", params=asked)).status_code == 400
            assert (await client.get("/explain", params={"topic": "a/b"})).json()["topic"] == "a/b"
            asked = {"exchange": "amq.headers", "header": ["a=1", "b=x"], "queue": "q"}
            found = (await client.get("/explain/publish", params=asked)).json()
            assert found["shown"]["amqp"] == {
                "exchange": "amq.headers",
                "routing_key": "",
                "header a": "1",
                "header b": "x",
            }
            assert found["why_not"] == ["no queue 'q' in vhost '/'"]
            assert (await client.get("/explain/publish", params={"door": "odd"})).status_code == 400
            assert (await client.get("/explain/publish", params={"header": ["a=1"] * 65})).status_code == 400
            assert (await client.get("/explain/queue", params={"name": "q"})).status_code == 404
