from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager

import aio_pika
import aiomqtt
import pytest

from gateway.admin.explain import QUEUES_AT_ONCE, QuestionError, explain_exchange, explain_topic
from tests.support.gateway import running_gateway

pytestmark = pytest.mark.asyncio


async def _take(message):
    await message.ack()


async def test_explain_names_filters_bindings_and_readers_of_each_door(tmp_path):
    async with running_gateway(tmp_path) as gateway, AsyncExitStack() as clients:
        host, port = gateway.listening["mqtt"]
        for name in ("one", "two"):
            client = await clients.enter_async_context(aiomqtt.Client(host, port, identifier=name))
            await client.subscribe("a/+/c")
        async with aiomqtt.Client(host, port, identifier="away", clean_session=False) as client:
            await client.subscribe("a/+/c", qos=1)
        url = "amqp://guest:guest@{}:{}/".format(*gateway.listening["amqp"])
        channel = await (await clients.enter_async_context(await aio_pika.connect(url))).channel()
        queue = await channel.declare_queue("work.shared", durable=True)
        for key in ("a.*.c", "#.c"):
            await queue.bind("amq.topic", key)
        await queue.consume(_take)
        found = await explain_topic(gateway.broker, gateway.doors["amqp"].vhost, "a/b/c")
        assert [queue.model_dump() for queue in found.queues] == [
            {
                "name": "%LMQ%amqp%|2f%work|2eshared",
                "called": "queue 'work.shared' in vhost '/'",
                "filters": ["#/c", "a/+/c"],
                "bindings": ["amq.topic #.c", "amq.topic a.*.c"],
                "subscriptions": 2,
                "readers": 1,
                "max_offset": 0,
            },
            {
                "name": "%LMQ%mqtt%a%|p%c",
                "called": "",
                "filters": ["a/+/c"],
                "bindings": [],
                "subscriptions": 3,
                "readers": 2,
                "max_offset": 0,
            },
        ]
        assert [
            queue.bindings for queue in (await explain_topic(gateway.broker, gateway.doors["amqp"].vhost, "x/c")).queues
        ] == [["amq.topic #.c"]]
        assert (await explain_topic(gateway.broker, gateway.doors["amqp"].vhost, "a/b")).queues == []


@asynccontextmanager
async def _channel(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        url = "amqp://guest:guest@{}:{}/".format(*gateway.listening["amqp"])
        async with await aio_pika.connect(url) as connection:
            yield gateway, await connection.channel()


async def _reached(gateway, exchange, key):
    found = await explain_exchange(gateway.broker, gateway.doors["amqp"].vhost, exchange, key)
    return [(queue.name.rpartition("%")[2], queue.bindings, queue.subscriptions) for queue in found.queues]


async def test_explain_names_the_bindings_that_lead_a_message_on(tmp_path):
    async with _channel(tmp_path) as (gateway, channel):
        first, second = [await channel.declare_queue(name) for name in ("first", "second")]
        direct = await channel.declare_exchange("jobs", "direct")
        fanout = await channel.declare_exchange("all", "fanout")
        topic = await channel.declare_exchange("events", "topic")
        await first.bind(direct, "new")
        await second.bind(direct, "old")
        for queue in (first, second):
            await queue.bind(fanout, "ignored")
        for key in ("a.*", "a.#", "b.*"):
            await first.bind(topic, key)
        await second.bind("amq.topic", "a.#")
        await first.consume(_take)
        assert await _reached(gateway, "jobs", "new") == [("first", ["jobs new"], 1)]
        assert await _reached(gateway, "jobs", "none") == []
        assert await _reached(gateway, "all", "x") == [("first", ["all ignored"], 1), ("second", ["all ignored"], 1)]
        assert await _reached(gateway, "events", "a.b") == [("first", ["events a.#", "events a.*"], 2)]
        assert await _reached(gateway, "amq.topic", "a.b") == [("second", ["amq.topic a.#"], 1)]
        found = await explain_exchange(gateway.broker, gateway.doors["amqp"].vhost, "jobs", "new")
        assert (found.kind, found.topic, found.queues[0].readers) == ("direct", "new", 1)


async def test_default_exchange_leads_to_the_queue_that_the_key_names(tmp_path):
    async with _channel(tmp_path) as (gateway, channel):
        await channel.declare_queue("work")
        assert await _reached(gateway, "", "work") == [("work", [], 1)]
        assert await _reached(gateway, "", "none") == []


async def test_questions_without_an_answer_are_refused_with_a_reason(tmp_path):
    async with _channel(tmp_path) as (gateway, channel):
        await channel.declare_exchange("inside", "direct", internal=True)
        for name, text in (("none", "no exchange 'none' in vhost '/'"), ("inside", "internal: clients cannot publish")):
            with pytest.raises(QuestionError, match=text):
                await explain_exchange(gateway.broker, gateway.doors["amqp"].vhost, name, "")
        for topic in ("a/+/b", "+", "a/#"):
            with pytest.raises(QuestionError, match="is a filter"):
                await explain_topic(gateway.broker, gateway.doors["amqp"].vhost, topic)
        for topic, text in (("$SYS/broker/x", "the gateway's own"), ("$share/g/a", "what a client subscribes to")):
            with pytest.raises(QuestionError, match=text):
                await explain_topic(gateway.broker, gateway.doors["amqp"].vhost, topic)
        assert (await explain_topic(gateway.broker, gateway.doors["amqp"].vhost, "a+/b")).queues == []


async def test_explaining_thousands_of_queues_leaves_turns_to_others(tmp_path):
    count = 4 * QUEUES_AT_ONCE
    async with running_gateway(tmp_path) as gateway:
        for number in range(count):
            gateway.broker.bind_filter(b"t", b"%%LMQ%%q%d" % number, hides_dollar=False)
        asked = asyncio.create_task(explain_topic(gateway.broker, gateway.doors["amqp"].vhost, "t"))
        turns = 0
        while not asked.done():
            await asyncio.sleep(0)
            turns += 1
        assert len((await asked).queues) == count
        assert turns >= 4


async def test_exchange_of_another_virtual_host_is_explained_by_itself(tmp_path):
    async with (
        running_gateway(tmp_path, amqp={"listen": "127.0.0.1:0", "vhosts": ["plant"]}) as gateway,
        AsyncExitStack() as clients,
    ):
        device = await clients.enter_async_context(aiomqtt.Client(*gateway.listening["mqtt"], identifier="d"))
        await device.subscribe("#")
        url = "amqp://guest:guest@{}:{}/plant".format(*gateway.listening["amqp"])
        channel = await (await clients.enter_async_context(await aio_pika.connect(url))).channel()
        queue = await channel.declare_queue("mine", exclusive=True)
        await queue.bind("amq.topic", "a.*")
        found = await explain_exchange(gateway.broker, gateway.doors["amqp"].vhosts.find("plant"), "amq.topic", "a.b")
        assert (found.vhost, found.is_topic_space) == ("plant", False)
        assert [(one.called, one.bindings) for one in found.queues] == [
            ("queue 'mine' in vhost 'plant'", ["amq.topic a.*"])
        ]
        found = await explain_exchange(gateway.broker, gateway.doors["amqp"].vhost, "amq.topic", "a.b")
        assert (found.vhost, found.is_topic_space) == ("/", True)
        assert [one.filters for one in found.queues] == [["#"]]
