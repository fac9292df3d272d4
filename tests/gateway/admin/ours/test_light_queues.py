from __future__ import annotations

import pytest

from gateway.admin.ours.light_queues import name_of
from tests.support.admin import managed_gateway
from tests.support.admin_clients import publish, subscribe

pytestmark = pytest.mark.asyncio


async def test_light_queues_of_all_doors_are_told_by_the_names_that_clients_know(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client), subscribe(gateway, "device", "plant/#"):
        await client.put("/api/queues/%2F/readings", json={})
        await client.post("/api/bindings/%2F/e/amq.topic/q/readings", json={"routing_key": "plant.*.temp"})
        await publish(client, "amq.topic", "plant.1.temp", "21")
        found = (await client.get("/api/lmq/queues")).json()
        named = {(one["door"], one["vhost"], one["name"]): one for one in found}
        assert named.keys() == {("amqp", "/", "readings"), ("mqtt", "", "plant/#")}
        queue = named["amqp", "/", "readings"]
        assert (queue["kept"], queue["messages_ready"], queue["light_queue"]) == (1, 1, "%LMQ%amqp%|2f%readings")
        assert named["mqtt", "", "plant/#"]["readers"] == 1
        (only,) = (await client.get("/api/lmq/queues?door=amqp&columns=name,kept")).json()
        assert only == {"name": "readings", "kept": 1}
        shown = (await client.get("/api/lmq/queues/%25LMQ%25amqp%25%7C2f%25readings")).json()
        assert (shown["name"], shown["vhost"], shown["messages_ready"]) == ("readings", "/", 1)
        assert shown["oldest_at_ms"] == shown["newest_at_ms"] > 0
        assert (await client.get("/api/lmq/queues/none")).status_code == 404
        assert (await client.get("/api/lmq/queues?door=odd")).status_code == 400


async def test_names_in_the_log_are_read_as_clients_know_them():
    assert name_of(b"%LMQ%mqtt%plant%|h") == ("mqtt", "plant/#", "")
    assert name_of(b"%LMQ%amqp%|2f%readings") == ("amqp", "readings", "/")
    assert name_of(b"ORDERS/3") == ("rocketmq", "ORDERS/3", "")
    assert name_of(b"%LMQ%amqp%|z" + b"0" * 40)[0] == "amqp"
