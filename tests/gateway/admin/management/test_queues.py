from __future__ import annotations

import time

import aiormq
import pytest

from gateway.amqp.field_table import Field
from tests.support.admin import declare, managed_gateway

pytestmark = pytest.mark.asyncio


async def test_queues_are_told_with_rabbitmqs_names(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "readings", arguments={"x-queue-type": Field("longstr", b"quorum")})
        declare(gateway, "jobs", durable=False)
        jobs, readings = (await client.get("/api/queues")).json()
        assert (jobs["name"], jobs["durable"], jobs["type"]) == ("jobs", False, "classic")
        assert (readings["vhost"], readings["type"], readings["arguments"]) == (
            "/",
            "quorum",
            {"x-queue-type": "quorum"},
        )
        assert (readings["messages"], readings["messages_ready"], readings["consumers"]) == (0, 0, 0)
        assert readings["lmq"] == {
            "light_queue": "%LMQ%amqp%|2f%readings",
            "first_offset": 0,
            "next_offset": 0,
            "oldest_at_ms": None,
            "newest_at_ms": None,
        }
        assert (readings["message_stats"]["publish_details"], readings["idle_since"]) == ({"rate": 0.0}, None)
        assert (await client.get("/api/queues/%2F/readings")).json() == {**readings, "consumer_details": []}
        assert (await client.get("/api/queues/%2F", params={"columns": "name"})).json() == [
            {"name": "jobs"},
            {"name": "readings"},
        ]


async def test_the_consumer_that_gets_everything_is_told_by_its_tag(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        host, port = gateway.listening["amqp"]
        connection = await aiormq.connect(f"amqp://guest:guest@{host}:{port}/")
        channel = await connection.channel()
        await channel.queue_declare("jobs", arguments={"x-single-active-consumer": True})
        await channel.queue_declare("mine")
        keys = ("single_active_consumer_tag", "exclusive_consumer_tag")
        path = "/api/queues/%2F/{}"
        assert [(await client.get(path.format("jobs"))).json()[key] for key in keys] == [None, None]
        for tag in ("first", "second"):
            await channel.basic_consume("jobs", print, consumer_tag=tag)
        await channel.basic_consume("mine", print, consumer_tag="only", exclusive=True)
        assert [(await client.get(path.format("jobs"))).json()[key] for key in keys] == ["first", None]
        assert [(await client.get(path.format("mine"))).json()[key] for key in keys] == [None, "only"]
        await channel.basic_cancel("first")
        assert [(await client.get(path.format("jobs"))).json()[key] for key in keys] == ["second", None]
        await connection.close()


async def test_a_page_of_very_many_queues_does_not_hold_the_loop(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, *(f"q{number}" for number in range(3_000)), durable=False)
        for sort in ("name", "messages"):
            began = time.perf_counter()
            found = (await client.get("/api/queues", params={"page": 2, "page_size": 50, "sort": sort})).json()
            assert (found["filtered_count"], len(found["items"])) == (3_000, 50)
            assert time.perf_counter() - began < 5.0


@pytest.mark.here(reason="the bytes of a queue are told of messages that are here")
async def test_a_row_tells_what_changed_since_it_was_last_on_a_page(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "jobs")
        page = {"page": 1}

        async def rows():
            (queue,) = (await client.get("/api/queues", params=page)).json()["items"]
            (light,) = (await client.get("/api/lmq/queues", params={**page, "door": "amqp"})).json()["items"]
            return queue, light

        assert [row["name"] for row in await rows()] == ["jobs", "jobs"]
        assert await rows() == await rows()
        host, port = gateway.listening["amqp"]
        connection = await aiormq.connect(f"amqp://guest:guest@{host}:{port}/")
        channel = await connection.channel()
        for body in (b"one", b"four"):
            await channel.basic_publish(body, routing_key="jobs")
        queue, light = await rows()
        assert (queue["messages_ready"], light["messages_ready"], light["next_offset"]) == (2, 2, 2)
        assert (queue["message_bytes"], queue["message_stats"]["publish"]) == (7, 2)
        got = await channel.basic_get("jobs")
        queue, light = await rows()
        assert (queue["messages_ready"], queue["messages_unacknowledged"]) == (1, 1)
        assert (light["messages_ready"], light["messages_unacknowledged"]) == (1, 1)
        await channel.basic_ack(got.delivery_tag)
        await channel.basic_consume("jobs", print, no_ack=True, consumer_tag="only", exclusive=True)
        while (queue := (await rows())[0])["messages"]:
            await channel.queue_declare("jobs", passive=True)
        assert (queue["consumers"], queue["exclusive_consumer_tag"], queue["message_stats"]["ack"]) == (1, "only", 2)
        ruled = {"pattern": ".*", "definition": {"max-length": 5}, "priority": 0, "apply-to": "queues"}
        await client.put("/api/policies/%2F/short", json=ruled)
        assert (await rows())[0]["policy"] == "short"
        await channel.queue_delete("jobs")
        declare(gateway, "jobs", durable=False)
        queue, light = await rows()
        assert (queue["durable"], queue["consumers"], light["readers"], light["next_offset"]) == (False, 0, 0, 2)
        await connection.close()
