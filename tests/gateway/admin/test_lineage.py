from __future__ import annotations

import asyncio

import aio_pika
import aiomqtt
import pytest

from core.settings import StoreSettings
from tests.support.admin import ELSEWHERE, make_client, make_view, managed_gateway
from tests.support.admin_clients import publish, subscribe
from tests.support.logins import quick_hash

pytestmark = pytest.mark.asyncio

READINGS = "%LMQ%amqp%|2f%readings"
PLANT = "%LMQ%mqtt%plant%|h"
PARENT = "LMQ_PARENT/0"


async def _declare_readings(gateway):
    host, port = gateway.listening["amqp"]
    connection = await aio_pika.connect(f"amqp://guest:guest@{host}:{port}/")
    channel = await connection.channel()
    queue = await channel.declare_queue("readings", durable=True)
    await queue.bind("amq.topic", "plant.#")
    return connection, queue


def _mqtt(gateway, client_id, **named):
    host, port = gateway.listening["mqtt"]
    return aiomqtt.Client(host, port, identifier=client_id, **named)


async def _find_newest(client, queue=PARENT):
    """Return the identifier of the newest message of a queue."""
    found = await client.get("/api/lmq/messages", params={"queue": queue, "count": 1})
    return found.json()["items"][0]["id"]


def _readers(told):
    return {
        queue["light_queue"]: [(reader["kind"], reader["reader"], reader["stage"]) for reader in queue["readers"]]
        for queue in told["queues"]
    }


async def test_a_message_says_where_it_went_and_how_far_each_reader_is(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        connection, queue = await _declare_readings(gateway)
        async with _mqtt(gateway, "away", clean_session=False) as away:
            await away.subscribe("plant/#", qos=1)
        async with _mqtt(gateway, "there") as there, _mqtt(gateway, "dev-7") as device:
            await there.subscribe("plant/#", qos=1)
            await device.publish("plant/1/temp", b"21.5", qos=1)
            await anext(aiter(there.messages))
            await there.unsubscribe("other")  # its PUBACK was sent before
            number = await _find_newest(client)
            told = (await client.get(f"/api/lmq/messages/{number}")).json()
            assert (told["topic"], told["body"], told["client"], told["qos"]) == ("plant/1/temp", "21.5", "dev-7", 1)
            assert (told["door"], told["queue_count"], told["id"]) == ("mqtt", 2, number)
            found = _readers(told)
            assert found[READINGS] == [("queue", "readings in /", "waits")]
            assert sorted(found[PLANT]) == [("session", "away", "waits"), ("session", "there", "done")]
            message = await queue.get()
            told = (await client.get(f"/api/lmq/messages/{number}")).json()
            assert _readers(told)[READINGS] == [("queue", "readings in /", "taken")]
            await message.nack(requeue=True)
            message = await queue.get()
            await message.ack()
            await queue.declare()  # the acknowledgement came before its answer
            told = (await client.get(f"/api/lmq/messages/{number}")).json()
            assert _readers(told)[READINGS] == [("queue", "readings in /", "done")]
        await connection.close()


async def test_of_a_wide_fan_out_each_queue_is_found_by_its_place(tmp_path):
    store = StoreSettings(inline_dispatch_bytes=64)  # so that the names stand in a record of their own
    async with (
        managed_gateway(tmp_path, store=store) as (gateway, client),
        _mqtt(gateway, "many") as many,
        _mqtt(gateway, "dev") as device,
    ):
        for topic_filter in ("plant/#", "plant/+/t", "plant/1/+", "+/1/t", "#"):
            await many.subscribe(topic_filter)
        for value in range(3):
            await device.publish("plant/1/t", str(value).encode(), qos=1)
        told = (await client.get(f"/api/lmq/messages/{await _find_newest(client)}")).json()
        assert told["body"] == "2"
        assert [queue["offset"] for queue in told["queues"]] == [2] * 5


async def test_messages_of_a_queue_are_listed_from_an_offset_or_a_moment_and_none_is_consumed(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        connection, queue = await _declare_readings(gateway)
        async with _mqtt(gateway, "dev") as device:
            for value in range(5):
                await device.publish("plant/1", str(value).encode(), qos=1)

        async def look(**asked):
            found = (await client.get("/api/lmq/messages", params={"queue": READINGS, **asked})).json()
            return [item["body"] for item in found["items"]]

        assert await look(count=2) == ["3", "4"]
        assert await look(offset=1, count=2) == ["1", "2"]
        assert await look(at_ms=0) == ["0", "1", "2", "3", "4"]
        assert await look(offset=99) == []
        assert (await queue.declare()).message_count == 5
        await connection.close()


async def test_of_an_amqp_queue_the_first_message_that_is_not_done_is_found_and_how_often_it_was_given(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        connection, queue = await _declare_readings(gateway)
        async with _mqtt(gateway, "dev") as device:
            for value in range(4):
                await device.publish("plant/1", str(value).encode(), qos=1)
        await (await queue.get()).ack()
        for _ in range(2):
            await (await queue.get()).nack()
        held = [await queue.get(), await queue.get()]

        async def look(**asked):
            found = (await client.get("/api/lmq/messages", params={"queue": READINGS, **asked})).json()
            return [(item["body"], item["stage"], item["given"]) for item in found["items"]]

        rest = [("1", "taken", 3), ("2", "taken", 1), ("3", "waits", 0)]
        assert await look(undone=True) == rest
        assert await look() == [("0", "done", None), *rest]
        await held[0].nack()
        while (await look(undone=True, count=1)) != [("1", "given back", 3)]:
            await asyncio.sleep(0.001)
        await connection.close()


async def test_messages_of_a_queue_that_nobody_has_consumed_from_wait(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        await client.put("/api/queues/%2F/jobs", json={"durable": True})
        await publish(client, "amq.default", "jobs", "x")
        for asked in ({}, {"undone": True}):
            found = await client.get("/api/lmq/messages", params={"queue": "%LMQ%amqp%|2f%jobs", **asked})
            assert [(item["stage"], item["given"]) for item in found.json()["items"]] == [("waits", 0)]


async def test_of_other_queues_it_is_not_told_what_is_done(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client), subscribe(gateway, "device", "plant/#"):
        await publish(client, "amq.topic", "plant.1", "x")
        filter_queue = {"queue": "%LMQ%mqtt%plant%|h"}
        (item,) = (await client.get("/api/lmq/messages", params=filter_queue)).json()["items"]
        assert (item["body"], item["stage"], item["given"]) == ("x", None, None)
        refused = await client.get("/api/lmq/messages", params={**filter_queue, "undone": True})
        assert (refused.status_code, "not an AMQP queue" in refused.json()["reason"]) == (400, True)


async def test_a_device_is_told_what_it_has_not_got_yet(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        async with _mqtt(gateway, "dev/7", clean_session=False) as away:
            await away.subscribe("plant/#", qos=1)
        async with _mqtt(gateway, "p") as publisher:
            for _ in range(3):
                await publisher.publish("plant/1", b"x", qos=1)
        told = (await client.get("/api/lmq/devices/dev%2F7")).json()
        assert (told["client"], told["waiting"]) == ("dev/7", 3)
        assert (told["connected"], told["persistent"], told["user"]) == (False, True, "")
        (subscription,) = told["subscriptions"]
        assert (subscription["topic_filter"], subscription["waiting"], subscription["inflight"]) == ("plant/#", 3, 0)
        assert (await client.get("/api/lmq/devices/nobody")).status_code == 404


async def test_of_devices_who_manages_is_told_of_its_own(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        rights = {"configure": ".*", "write": ".*", "read": ".*"}
        for user in ("ann", "bob"):
            await client.put(f"/api/users/{user}", json={"password_hash": quick_hash("x"), "tags": "management"})
            await client.put(f"/api/permissions/%2F/{user}", json=rights)
            async with _mqtt(gateway, f"of {user}", username=user, password="x", clean_session=False) as device:
                await device.subscribe("plant/#", qos=1)
        async with make_client(make_view(gateway), auth=("ann", "x")) as ann:
            assert (await ann.get("/api/lmq/devices/of%20ann")).json()["client"] == "of ann"
            assert (await ann.get("/api/lmq/devices/of%20bob")).status_code == 404
        assert (await client.get("/api/lmq/devices/of%20bob")).status_code == 200


@pytest.mark.parametrize("message_id", ["7", "nonsense", "9" * 19, "0" * 32, "-1"])
async def test_what_the_log_does_not_have_is_not_found(tmp_path, message_id):
    async with managed_gateway(tmp_path) as (_, client):
        assert (await client.get(f"/api/lmq/messages/{message_id}")).status_code == 404
        assert (await client.get("/api/lmq/messages", params={"queue": "no"})).status_code == 404


async def test_messages_are_for_administrators(tmp_path):
    async with managed_gateway(tmp_path, auth=None) as (_, client):
        assert (await client.get("/api/lmq/messages/7")).status_code == 401
    async with managed_gateway(tmp_path, auth=None, peer=ELSEWHERE) as (_, client):
        assert (await client.get("/api/lmq/devices/d")).status_code == 401
