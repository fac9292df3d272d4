from __future__ import annotations

import aio_pika
import pytest

from gateway.admin.management.vhost_stats import NAMES
from tests.support.admin import make_client, make_view, managed_gateway
from tests.support.admin_clients import publish, subscribe
from tests.support.waiting import until

pytestmark = pytest.mark.asyncio


async def counts_of(client, vhost="v"):
    """Return the counts of a virtual host that are not 0."""
    told = (await client.get(f"/api/vhosts/{vhost}")).json()["message_stats"]
    return {name: count for name, count in told.items() if isinstance(count, int) and count}


async def test_a_virtual_host_tells_what_its_clients_took_and_how(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        await client.put("/api/vhosts/v")
        connection = await aio_pika.connect("amqp://guest:guest@{}:{}/v".format(*gateway.listening["amqp"]))
        channel = await connection.channel()
        queue = await channel.declare_queue("q", durable=True)
        for _ in range(8):
            await channel.default_exchange.publish(aio_pika.Message(b"x"), "q")
        assert await counts_of(client) == {"publish": 8}
        held = await queue.get()
        await (await queue.get(no_ack=True)).channel.basic_qos(prefetch_count=2)
        assert await counts_of(client) == {"publish": 8, "get": 1, "get_no_ack": 1, "deliver_get": 2}
        came = []
        tag = await queue.consume(came.append)
        await until(lambda: len(came) == 2)
        await came[1].ack(multiple=False)
        await came[0].reject(requeue=True)
        await until(lambda: len(came) >= 4)
        await queue.cancel(tag)
        await held.ack()
        for message in came[2:]:
            await message.nack(requeue=False)
        counts = await counts_of(client)
        assert (counts["deliver"], counts["redeliver"], counts["ack"]) == (len(came), 1, 2)
        left = (await client.get("/api/queues/v/q")).json()["messages"]
        everything = []
        await queue.consume(everything.append, no_ack=True)
        await until(lambda: len(everything) == left)
        assert await queue.get(fail=False) is None
        counts = await counts_of(client)
        assert (counts["deliver_no_ack"], counts["get_empty"]) == (left, 1)
        assert counts["deliver_get"] == len(came) + left + 2
        assert await counts_of(client, "%2F") == {}
        await connection.close()


async def test_rates_are_of_the_time_between_two_looks(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, _):
        view = make_view(gateway)
        async with make_client(view) as client:
            await client.put("/api/queues/%2F/q", json={})
            await view.activity.look()
            for _ in range(3):
                await publish(client, "amq.default", "q", "x")
            asked = {"count": 3, "ackmode": "ack_requeue_false", "encoding": "auto"}
            assert len((await client.post("/api/queues/%2F/q/get", json=asked)).json()) == 3
            await view.activity.look()
            (told,) = [one["message_stats"] for one in (await client.get("/api/vhosts")).json()]
            assert told["get_details"]["rate"] == told["deliver_get_details"]["rate"] == told["publish_details"]["rate"]
            assert told["get_details"]["rate"] > 0
            assert told["deliver_details"]["rate"] == 0.0
            await view.activity.look()
            (told,) = [one["message_stats"] for one in (await client.get("/api/vhosts")).json()]
            assert {told[f"{name}_details"]["rate"] for name in NAMES} == {0.0}


async def test_what_mqtt_clients_took_belongs_to_the_virtual_host_with_their_topics(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, _):
        view = make_view(gateway)
        async with make_client(view) as client, subscribe(gateway, "device", "a/+"):
            await client.put("/api/vhosts/v")
            await view.activity.look()
            await publish(client, "amq.topic", "a.b", "x")
            await until(lambda: gateway.broker.metrics.door("mqtt").messages_out == 1)
            counts = await counts_of(client, "%2F")
            assert (counts["publish"], counts["deliver"], counts["deliver_get"]) == (1, 1, 1)
            assert await counts_of(client) == {}
            changes = gateway.broker.flows.changes
            await view.activity.look()
            told = (await client.get("/api/vhosts/%2F")).json()["message_stats"]
            assert told["deliver_details"]["rate"] == told["publish_details"]["rate"] > 0
            await view.activity.look()
            await view.activity.look()
            assert gateway.broker.flows.changes == changes + 2
