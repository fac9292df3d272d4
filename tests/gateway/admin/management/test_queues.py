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
