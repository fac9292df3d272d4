from __future__ import annotations

import asyncio
import gc
import re
import threading
import weakref

import httpx
import pytest

from core.errors import DiskFullError
from core.store.table import Definitions
from gateway.admin.api import make_api
from gateway.admin.live import LiveFeed
from gateway.settings.models import AdminSettings
from tests.support.admin import make_view, managed_gateway
from tests.support.gateway import ANY_PORT, running_gateway

pytestmark = pytest.mark.asyncio
POLICY = {"pattern": "q", "definition": {"max-length": 1}}


async def _client(gateway):
    host, port = gateway.listening["admin"]
    return httpx.AsyncClient(base_url=f"http://{host}:{port}", timeout=20)


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
        overview = (await client.get("/api/overview")).json()["lmq"]
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
            found = (await client.get("/api/overview")).json()["lmq"]
        assert found["doors"]["mqtt"]["messages_in"] == 3
        assert found["doors"]["mqtt"]["dropped"] == {"slow_subscriber": 2}
        assert found["is_ready"] is True


async def test_explain_wants_a_topic_or_an_exchange(tmp_path):
    async with (
        running_gateway(tmp_path, admin=AdminSettings(listen=ANY_PORT)) as gateway,
        await _client(gateway) as client,
    ):
        for question in ({}, {"topic": "a", "exchange": "b"}):
            answer = await client.get("/api/explain", params=question)
            assert (answer.status_code, answer.json()["detail"]) == (
                400,
                "ask for a topic, or for an exchange and a routing key",
            )
        answer = await client.get("/api/explain", params={"topic": ""})
        assert (answer.status_code, answer.json()["reason"]) == (400, "topic: must not be empty")
        answer = await client.get("/api/explain", params={"topic": "a/+"})
        assert (answer.status_code, answer.json()["detail"][:15]) == (400, "a/+ is a filter")
        answer = (await client.get("/api/explain", params={"exchange": "amq.fanout"})).json()
        assert answer == {
            "vhost": "/",
            "exchange": "amq.fanout",
            "is_topic_space": False,
            "kind": "fanout",
            "routing_key": "",
            "topic": "",
            "parent_topic": "LMQ_PARENT",
            "queues": [],
        }
        assert (await client.get("/api/explain", params={"topic": "a"})).json()["queues"] == []


async def test_api_describes_itself(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        view = make_view(gateway)
        paths = make_api(view, LiveFeed(view)).openapi()["paths"]
        assert {"/healthz", "/readyz", "/metrics", "/api/overview", "/api/explain"} <= set(paths)


async def test_a_gateway_that_has_stopped_is_let_go_of(tmp_path):
    async with running_gateway(tmp_path, admin=AdminSettings(listen=ANY_PORT)) as gateway:
        stopped = weakref.ref(gateway)
        async with await _client(gateway) as client:
            assert (await client.get("/readyz")).status_code == 200
    del gateway
    async with asyncio.timeout(10):
        while stopped() is not None:
            await asyncio.sleep(0.01)  # what the loop still holds
            gc.collect()


async def test_the_description_names_what_stands_in_paths_and_how_requests_are_refused(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        view = make_view(gateway)
        described = make_api(view, LiveFeed(view)).openapi()
        for path, methods in described["paths"].items():
            for about in methods.values():
                named = {one["name"] for one in about.get("parameters", ()) if one["in"] == "path"}
                assert named == set(re.findall(r"{(.*?)}", path)), path
                assert {"400", "401", "404", "503"} <= about["responses"].keys(), path


async def test_a_thing_that_a_deletion_took_is_told_gone_when_that_is_durable(tmp_path, monkeypatch):
    async with managed_gateway(tmp_path) as (_, client):
        assert (await client.put("/api/policies/%2F/one", json=POLICY)).status_code == 201
        may_commit, commit = threading.Event(), Definitions.commit_in_slices

        def commit_later(definitions, snapshot):
            may_commit.wait()
            yield from commit(definitions, snapshot)

        monkeypatch.setattr(Definitions, "commit_in_slices", commit_later)
        deletions = [asyncio.create_task(client.delete("/api/policies/%2F/one")) for _ in range(2)]
        try:
            done, _ = await asyncio.wait(deletions, timeout=0.3)
            assert not done
            assert (await client.get("/api/policies/%2F/one")).status_code == 404
        finally:
            may_commit.set()
        assert sorted([(await one).status_code for one in deletions]) == [204, 404]


async def test_that_there_is_nothing_to_delete_is_not_told_while_a_deletion_waits_for_room(tmp_path, monkeypatch):
    async with managed_gateway(tmp_path) as (_, client):
        assert (await client.put("/api/policies/%2F/one", json=POLICY)).status_code == 201
        assert (await client.delete("/api/policies/%2F/none")).status_code == 404

        def refuse(_definitions, _slices):
            raise DiskFullError("definitions.db")

        with monkeypatch.context() as patch:
            patch.setattr(Definitions, "_write", refuse)
            assert [(await client.delete("/api/policies/%2F/one")).status_code for _ in range(2)] == [503, 503]


async def test_a_method_that_a_path_has_not_is_answered_with_all_that_it_has(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        for path, methods in (
            ("/api/queues/%2F/work", "DELETE, GET, PUT"),
            ("/api/queues/%2F/work/", "DELETE, GET, PUT"),
            ("/api/exchanges/%2F//publish", "POST"),
            ("/api/overview", "GET"),
            ("/healthz", "GET, HEAD"),
            ("/", "GET, HEAD"),
        ):
            answer = await client.options(path)
            assert (path, answer.status_code, answer.headers["allow"]) == (path, 405, methods)
        described = (await client.get("/api/openapi.json")).json()["paths"]
        for path, said in described.items():
            answer = await client.options(re.sub(r"\{\w+\}", "x", path))
            assert set(answer.headers["allow"].lower().split(", ")) >= set(said) - {"parameters"}
