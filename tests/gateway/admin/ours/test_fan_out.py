from __future__ import annotations

import pytest

from tests.support.admin import declare, make_client, make_view, managed_gateway
from tests.support.admin_clients import publish, subscribe
from tests.support.logins import quick_hash

pytestmark = pytest.mark.asyncio


async def test_the_newest_messages_tell_how_wide_they_went(tmp_path):
    async with (
        managed_gateway(tmp_path) as (gateway, client),
        subscribe(gateway, "one", "plant/#", "plant/+", "plant/1"),
    ):
        declare(gateway, "jobs")
        await publish(client, "amq.topic", "plant.1", "1234")
        await publish(client, "amq.topic", "plant.2", "1")
        await publish(client, "amq.default", "jobs", "12")
        found = (await client.get("/api/lmq/fan-out")).json()
        assert (found["messages"], found["entries"], found["body_bytes"], found["copied_bytes"]) == (3, 6, 7, 16)
        assert found["widths"] == [{"from": 1, "messages": 1}, {"from": 2, "messages": 2}]
        first = found["topics"][0]
        assert (first["exchange"], found["topics"][-1]["topic"]) == (None, "")
        assert (found["topics"][-1]["exchange"], found["topics"][-1]["routing_key"]) == ("", "jobs")
        assert (first["topic"], first["entries"], first["widest"], first["body_bytes"]) == ("plant/1", 3, 3, 4)
        assert (await client.get("/api/lmq/fan-out?messages=1")).json()["messages"] == 1


async def test_nothing_was_published_yet(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        found = (await client.get("/api/lmq/fan-out")).json()
        assert (found["messages"], found["widths"], found["has_report"]) == (0, [], False)
        assert (await client.get("/api/lmq/fan-out/report")).status_code == 404


async def test_the_page_that_spark_wrote_is_shown_and_may_load_nothing(tmp_path):
    out = tmp_path / "report"
    async with managed_gateway(tmp_path / "data", admin={"fan_out_report": str(out), "listen": "off"}) as (
        gateway,
        client,
    ):
        assert "no report" in (await client.get("/api/lmq/fan-out/report")).text
        out.mkdir()
        (out / "index.html").write_text("<p>fan-out</p>")
        answer = await client.get("/api/lmq/fan-out/report")
        assert (answer.text, answer.headers["content-type"]) == ("<p>fan-out</p>", "text/html; charset=utf-8")
        assert "script" not in answer.headers["content-security-policy"]
        assert (await client.get("/api/lmq/fan-out")).json()["has_report"] is True
        await client.put("/api/users/ann", json={"password_hash": quick_hash("x"), "tags": "management"})
        async with make_client(make_view(gateway), auth=("ann", "x")) as ann:  # to which it is not shown
            assert (await ann.get("/api/lmq/fan-out")).json()["has_report"] is False
