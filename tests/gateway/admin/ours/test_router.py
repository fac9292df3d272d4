from __future__ import annotations

from urllib.parse import quote

import pytest
from fastapi import FastAPI

from gateway.admin.lineage import LINEAGE
from gateway.admin.ours.router import OURS
from tests.support.admin import ELSEWHERE, declare, managed_gateway
from tests.support.admin_clients import add_user, publish, retain


@pytest.mark.asyncio
async def test_no_route_answers_somebody_that_did_not_come_in(tmp_path):
    api = FastAPI()
    OURS.add_to(api)
    paths = api.openapi()["paths"]
    assert "/api/lmq/queues" in paths
    async with managed_gateway(tmp_path, auth=None, peer=ELSEWHERE) as (_, client):
        for path, methods in paths.items():
            for method in methods:
                assert (await client.request(method, path)).status_code == 401, path


@pytest.mark.asyncio
async def test_no_route_tells_bodies_to_one_without_rights_nor_topics_to_one_that_does_not_monitor(tmp_path):
    api = FastAPI()
    OURS.add_to(api)
    LINEAGE.add_to(api)
    paths = [path for path, methods in api.openapi()["paths"].items() if "get" in methods]
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "jobs")
        await publish(client, "amq.default", "jobs", "SECRET")
        waiting = {"$delayed/3600/hidden/later": b"SECRET"}
        await retain(gateway, {"hidden/kept": b"SECRET"})
        await retain(gateway, waiting)
        (delayed,) = (await client.get("/api/lmq/delayed")).json()["items"]
        (light,) = (await client.get("/api/lmq/queues?door=amqp")).json()
        (record,) = (await client.get("/api/lmq/messages", params={"queue": light["light_queue"]})).json()["items"]
        values = {
            "{waiting_id}": delayed["id"], "{topic}": "hidden%2Fkept", "{light_queue}": quote(light["light_queue"], ""),
            "{message_id}": record["id"], "{client}": "none", "{name}": "none", "{group}": "none",
        }  # fmt: skip
        assert all("{" not in _fill(path, values) for path in paths)
        asked = {"queue": light["light_queue"], "offset": 0}
        seen = [path for path in paths if b"SECRET" in (await client.get(_fill(path, values), params=asked)).content]
        assert {"/api/lmq/delayed", "/api/lmq/messages", "/api/lmq/trace", "/api/lmq/retained/{topic}"} <= set(seen)
        for tag in ("management", "policymaker", "monitoring"):
            await add_user(client, tag, tag)
            for path in paths:
                answer = await client.get(_fill(path, values), params=asked, auth=(tag, tag))
                content = answer.content.replace(b"hidden/kept", b"") if answer.status_code == 401 else answer.content
                assert b"SECRET" not in content, (tag, path)
                assert (tag == "monitoring") or b"hidden/" not in content, (tag, path)
        for path in ("topics", "retained", "fan-out"):
            told = [
                (await client.get(f"/api/lmq/{path}", auth=(name, name))).text for name in ("monitoring", "policymaker")
            ]
            assert [("hidden/kept" in one) for one in told] == [True, False], path


def _fill(path, values):
    for name, value in values.items():
        path = path.replace(name, value)
    return path
