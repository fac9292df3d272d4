from __future__ import annotations

from urllib.parse import quote

import aiomqtt
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


async def test_names_in_the_log_are_read_as_clients_know_them(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, _):
        for name, told in (
            (b"%LMQ%mqtt%plant%|h", ("mqtt", "plant/#", "")),
            (b"%LMQ%amqp%|2f%readings", ("amqp", "readings", "/")),
            (b"ORDERS/3", ("rocketmq", "ORDERS/3", "")),
            (b"%RETRY%group/0", ("rocketmq", "%RETRY%group/0", "")),
            (b"%LMQ%amqp%|z" + b"0" * 40, ("amqp", "(a queue with a long name, 00000000)", "")),
        ):
            assert name_of(gateway.broker, name) == told


async def test_long_names_are_told_whole_and_found_also_after_a_restart(tmp_path):
    filters, queue = ["hall/" * 50 + "#", "$share/g/" + "room/" * 50 + "+"], "q" * 200
    inner = [one.removeprefix("$share/g/") for one in filters]
    for is_first in (True, False):
        async with managed_gateway(tmp_path) as (gateway, client):
            if is_first:
                await _subscribe_for_long(gateway, filters)
                await client.put(f"/api/queues/%2F/{queue}", json={"durable": True})
                await publish(client, "amq.default", queue, "x", {"delivery_mode": 2})
            told = (await client.get("/api/lmq/queues?door=mqtt")).json()
            assert [one["name"] for one in told] == inner
            for one in told:
                alone = (await client.get("/api/lmq/queues/" + quote(one["light_queue"], safe=""))).json()
                assert (alone["name"], alone["door"]) == (one["name"], "mqtt")
            searched = (await client.get("/api/lmq/queues?page=1&name=room/room")).json()["items"]
            assert [one["name"] for one in searched] == inner[1:]
            (found,) = (await client.get("/api/lmq/queues?door=amqp")).json()
            assert found["name"] == queue
            (message,) = (await client.get("/api/lmq/messages", params={"queue": found["light_queue"]})).json()["items"]
            (where,) = (await client.get(f"/api/lmq/messages/{message['id']}")).json()["queues"]
            assert (where["name"], where["vhost"], where["door"]) == (queue, "/", "amqp")


async def _subscribe_for_long(gateway, filters):
    """Have a session with filters that `subscribe` is too small for."""
    async with aiomqtt.Client(*gateway.listening["mqtt"], identifier="device", clean_session=False) as client:
        await client.subscribe([(one, 1) for one in filters])
