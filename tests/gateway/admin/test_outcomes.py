from __future__ import annotations

import asyncio

import aio_pika
import pytest

from core.properties import encode_properties
from gateway.admin.outcomes import NOT_KEPT, letter_of
from tests.support.admin import managed_gateway
from tests.support.admin_clients import publish, subscribe

pytestmark = pytest.mark.asyncio

DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


async def _ids(client, queue):
    found = await client.get("/api/lmq/messages", params={"queue": f"%LMQ%amqp%|2f%{queue}", "at_ms": 0})
    return [item["id"] for item in found.json()["items"]]


async def _declare(client, name, arguments):
    answer = await client.put(f"/api/queues/%2F/{name}", json={"durable": True, "arguments": arguments})
    assert answer.status_code == 201


async def _fate(client, number):
    told = (await client.get(f"/api/lmq/messages/{number}")).json()
    (queue,) = told["queues"]
    (reader,) = queue["readers"]
    return reader


async def _get(client, name, mode):
    asked = {"count": 1, "ackmode": mode, "encoding": "auto"}
    assert len((await client.post(f"/api/queues/%2F/{name}/get", json=asked)).json()) == 1


async def test_what_became_of_each_message_of_a_queue_is_told(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        await _declare(client, "jobs", {"x-max-length": 4})
        for value in range(5):
            await publish(client, "amq.default", "jobs", str(value))
        await _get(client, "jobs", "ack_requeue_false")
        await _get(client, "jobs", "reject_requeue_false")
        await client.get("/api/queues/%2F/jobs")
        numbers = await _ids(client, "jobs")
        found = [await _fate(client, number) for number in numbers]
        assert [one["outcome"] for one in found] == [
            "dropped: its queue was full",
            "acknowledged",
            "rejected",
            None,
            None,
        ]
        assert found[0]["from_ms"] == found[0]["until_ms"] > 0
        await client.delete("/api/queues/%2F/jobs/contents")
        assert [(await _fate(client, number))["outcome"] for number in numbers[3:]] == ["purged", "purged"]


async def test_a_dead_letter_and_its_message_name_each_other(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        await _declare(client, "jobs", DEAD)
        await _declare(client, "dead", {})
        for value in ("other", "bad"):
            await publish(client, "amq.default", "jobs", value)
        await _get(client, "jobs", "ack_requeue_false")
        await _get(client, "jobs", "reject_requeue_false")
        _, number = await _ids(client, "jobs")
        while (fate := await _fate(client, number))["stage"] != "done":
            await asyncio.sleep(0)  # it is, once its letter is safe
        (letter,) = await _ids(client, "dead")
        assert (fate["outcome"], fate["letter"]["id"]) == ("rejected", letter)
        told = (await client.get(f"/api/lmq/messages/{letter}")).json()
        assert (told["letter_of"], told["body"]) == (number, "bad")
    async with managed_gateway(tmp_path) as (_, client):  # what was noted is gone, what is in the log is not
        first, number = await _ids(client, "jobs")
        fate = await _fate(client, number)
        assert (fate["outcome"], fate["letter"]["id"]) == ("dead letter", letter)
        assert (await _fate(client, first))["outcome"] == NOT_KEPT


async def test_it_is_told_which_consumer_has_a_message_and_when_one_was_done_with_it(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        view = client._transport.app.state.view
        host, port = gateway.listening["amqp"]
        connection = await aio_pika.connect(f"amqp://guest:guest@{host}:{port}/")
        channel = await connection.channel()
        queue = await channel.declare_queue("jobs", durable=True)
        came = asyncio.Queue()
        await queue.consume(came.put, consumer_tag="worker")
        await view.activity.look()
        await publish(client, "amq.default", "jobs", "1")
        (number,) = await _ids(client, "jobs")
        fate = await _fate(client, number)
        assert (fate["stage"], fate["outcome"]) == ("taken", None)
        assert fate["by"].startswith("consumer worker of guest at 127.0.0.1:")
        await (await came.get()).ack()
        await queue.declare()  # the acknowledgement came before its answer
        await view.activity.look()
        fate = await _fate(client, number)
        assert (fate["stage"], fate["outcome"]) == ("done", "acknowledged")
        assert 0 < fate["from_ms"] <= fate["until_ms"]
        assert fate["by"].startswith("consumer worker of guest at 127.0.0.1:")
        await connection.close()


async def test_a_session_that_came_later_is_said_to_have_come_later(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        async with subscribe(gateway, "early", "plant/#"):
            pass
        await publish(client, "amq.topic", "plant.1", "x")
        async with subscribe(gateway, "late", "plant/#"):
            pass
        found = await client.get("/api/lmq/messages", params={"queue": "%LMQ%mqtt%plant%|h", "at_ms": 0})
        (item,) = found.json()["items"]
        told = (await client.get(f"/api/lmq/messages/{item['id']}")).json()
        outcomes = {reader["reader"]: reader["outcome"] for reader in told["queues"][0]["readers"]}
        assert outcomes == {"early": None, "late": "subscribed later"}


async def test_rocketmqs_own_name_for_the_message_a_letter_is_of_is_read_too():
    origin = b"7F00000100002A9F" + b"%016X" % 4_711
    assert letter_of(encode_properties([(b"ORIGIN_MESSAGE_ID", origin)])) == 4_711
    assert letter_of(encode_properties([(b"ORIGIN_MESSAGE_ID", b"nonsense")])) is None
    assert letter_of(encode_properties([(b"LMQ_LETTER_OF", b"12")])) == 12
    assert letter_of(b"a\x01b\x02") is None
