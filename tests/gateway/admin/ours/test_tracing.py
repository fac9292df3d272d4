from __future__ import annotations

import aiomqtt
import pytest

from gateway.admin.ours import tracing
from tests.support.admin import declare, managed_gateway
from tests.support.admin_clients import publish

pytestmark = pytest.mark.asyncio


async def test_what_is_published_is_told_with_the_queues_that_it_went_to(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        host, port = gateway.listening["mqtt"]
        start = (await client.get("/api/lmq/trace")).json()
        assert start == {"next_offset": 0, "skipped": 0, "items": []}
        async with aiomqtt.Client(host, port, identifier="dev-7") as device:
            await device.subscribe("plant/#")
            for topic in ("plant/1", "other", "plant/2"):
                await device.publish(topic, b"21.5", qos=1)
        told = (await client.get("/api/lmq/trace", params={"filter": "plant/+", "offset": 0})).json()
        assert [(one["topic"], one["client"], one["queues"]) for one in told["items"]] == [
            (topic, "dev-7", [{"door": "mqtt", "name": "plant/#", "vhost": ""}]) for topic in ("plant/1", "plant/2")
        ]
        again = (await client.get("/api/lmq/trace", params={"offset": told["next_offset"]})).json()
        assert (again["items"], again["next_offset"]) == ([], 3)


async def test_an_answer_has_a_bound_and_what_lies_too_far_back_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(tracing, "TOLD_MAX", 2)
    monkeypatch.setattr(tracing, "BATCH_COUNT", 2)
    monkeypatch.setattr(tracing, "BEHIND_MAX", 3)
    async with managed_gateway(tmp_path) as (gateway, client):
        host, port = gateway.listening["mqtt"]
        async with aiomqtt.Client(host, port) as device:
            for value in range(5):
                await device.publish("a", str(value).encode(), qos=1)
        first = (await client.get("/api/lmq/trace", params={"offset": 0})).json()
        assert (first["skipped"], [one["body"] for one in first["items"]]) == (2, ["2", "3"])
        last = (await client.get("/api/lmq/trace", params={"offset": first["next_offset"]})).json()
        assert (last["skipped"], [one["body"] for one in last["items"]]) == (0, ["4"])


async def test_a_trace_is_for_administrators(tmp_path):
    async with managed_gateway(tmp_path, auth=None) as (_, client):
        assert (await client.get("/api/lmq/trace")).status_code == 401


async def test_what_comes_by_an_exchange_is_told_by_its_keys_and_no_topic(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "orders.new", "plain")
        for key in ("orders.new", "plain"):
            await publish(client, "amq.default", key, "x")
        await client.post("/api/bindings/%2F/e/amq.topic/q/plain", json={"routing_key": "orders.#"})
        await publish(client, "amq.topic", "orders.new", "x")

        async def trace(**asked):
            told = await client.get("/api/lmq/trace", params={"offset": 0, **asked})
            return [(one["exchange"], one["routing_key"] or one["topic"]) for one in told.json()["items"]]

        assert await trace(filter="orders/new") == [(None, "orders/new")]
        assert await trace(exchange="", filter="orders.*") == [("", "orders.new")]
        assert await trace(exchange="", filter="#") == [("", "orders.new"), ("", "plain")]
        assert await trace(exchange="other") == []
        assert len(await trace()) == 3


async def test_a_topic_of_rocketmq_is_refused_and_an_mqtt_topic_of_its_name_can_be_traced(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        assert (await client.get("/api/lmq/trace?filter=Orders")).status_code == 200
        gateway.doors["rocketmq"].topics.open_for_send(b"Orders", b"TBW102", 4)
        answer = await client.get("/api/lmq/trace?filter=Orders")
        assert (answer.status_code, "is a topic of RocketMQ" in answer.json()["reason"]) == (400, True)
        declare(gateway, "all")
        await client.post("/api/bindings/%2F/e/amq.topic/q/all", json={"routing_key": "#"})
        for name in ("Orders", "Others"):
            await publish(client, "amq.topic", name, "x")
        for asked in ({"filter": "Orders/#"}, {"exchange": "", "filter": "Orders"}):
            told = await client.get("/api/lmq/trace", params={"offset": 0, **asked})
            assert [one["topic"] for one in told.json()["items"]] == (["Orders"] if "exchange" not in asked else [])
        assert (await client.get("/api/lmq/trace?filter=LMQ_PARENT")).status_code == 200
