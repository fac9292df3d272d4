from __future__ import annotations

import aiomqtt
import pytest

from tests.support.admin import declare, managed_gateway
from tests.support.admin_clients import publish, subscribe

pytestmark = pytest.mark.asyncio


async def test_topics_of_the_newest_messages_are_told_the_busiest_first(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        assert (await client.get("/api/lmq/topics")).json()["topics"] == []
        host, port = gateway.listening["mqtt"]
        async with aiomqtt.Client(host, port) as device:
            for topic in ("old", "a/1", "a/2", "a/2"):
                await device.publish(topic, b"12345", qos=1)
        told = (await client.get("/api/lmq/topics", params={"messages": 3})).json()
        assert [(one["topic"], one["count"], one["body_bytes"]) for one in told["topics"]] == [
            ("a/2", 2, 10),
            ("a/1", 1, 5),
        ]
        assert (told["messages"], told["topic_count"]) == (3, 2)
        assert told["topics"][0]["last_at_ms"] > 0
        page = (await client.get("/api/lmq/topics?page=1&page_size=1&columns=topic")).json()
        assert (page["items"], page["page_count"], page["messages"]) == ([{"topic": "a/2"}], 3, 4)
        page = (await client.get("/api/lmq/topics?page=1&sort=name&name=a/&columns=topic,count")).json()
        assert page["items"] == [{"topic": "a/1", "count": 1}, {"topic": "a/2", "count": 2}]
        found = (await client.get("/api/lmq/topics?name=OLD")).json()
        assert ([one["topic"] for one in found["topics"]], found["topic_count"]) == (["old"], 3)
        assert (await client.get("/api/lmq/topics", params={"messages": 0})).status_code in {400, 422}


async def test_what_came_by_an_exchange_is_no_topic_and_told_with_its_routing_key(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client), subscribe(gateway, "one", "#"):
        declare(gateway, "jobs.dead")
        await publish(client, "amq.default", "jobs.dead", "x")
        await publish(client, "amq.topic", "jobs.done", "x")
        told = (await client.get("/api/lmq/topics")).json()
        assert ([one["topic"] for one in told["topics"]], told["messages"], told["by_exchange"]) == (
            ["jobs/done"],
            2,
            1,
        )
        stored = (await client.get("/api/lmq/trace?offset=0")).json()["items"]
        assert [(one["topic"], one["exchange"], one["routing_key"]) for one in stored] == [
            ("", "", "jobs.dead"),
            ("jobs/done", None, None),
        ]
