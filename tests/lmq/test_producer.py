from __future__ import annotations

import asyncio
import dataclasses
import math
import re
import time
from datetime import UTC, datetime, timedelta

import pytest

from lmq import (
    MessageRefusedError,
    NoPermissionError,
    OutMessage,
    Producer,
    PullConsumer,
    PushConsumer,
    RequestTimeoutError,
    ResponseError,
    SdkError,
    SendResult,
    mqtt_queue,
)
from lmq.client import Client
from lmq.remoting.commands import Command
from lmq.remoting.message_codec import decode_stored
from tests.support.remoting_server import stored

pytestmark = [pytest.mark.asyncio, pytest.mark.here(reason="one pull takes what is here")]


async def test_a_message_is_sent_with_all_that_it_carries(namesrv):
    async with Producer(namesrv, client_id="me") as producer, PullConsumer(namesrv) as consumer:
        sent = await producer.send(
            "T", b"body", tags="a", keys=["k1", "k2"], properties={"größe": "5 €"}, queue_id=1, flag=9
        )
        result = await consumer.pull("T", 0, queue_id=1)
    (message,) = result.messages
    assert (sent.queue_id, sent.queue_offset, sent.is_flushed) == (1, 0, True)
    assert (message.body, message.tags, message.keys, message.flag) == (b"body", "a", ["k1", "k2"], 9)
    assert message.properties["größe"] == "5 €"
    assert message.key == sent.key
    assert int(sent.msg_id[16:], 16) == message.physical_offset


async def test_messages_go_round_all_queues(namesrv):
    async with Producer(namesrv) as producer:
        results = await producer.send_many([OutMessage("T", b"x") for _ in range(16)])
        results += await producer.send_many([OutMessage("T", b"x") for _ in range(8)])
    assert {result.queue_id for result in results} == {0, 1, 2, 3}


async def test_a_topic_that_a_send_makes_has_no_more_queues_than_it_is_sent_to(namesrv):
    async with Producer(namesrv) as producer:
        for number in range(12):  # each the first to its topic
            assert (await producer.send(f"New-{number}", b"x")).queue_id < 4


async def test_many_messages_give_their_results_in_order(namesrv):
    async with Producer(namesrv) as producer:
        results = await producer.send_many(
            [OutMessage("bad name" if i == 3 else "T", b"m%d" % i, queue_id=0) for i in range(50)]
        )
    assert isinstance(results[3], MessageRefusedError)
    stored_at = [result.queue_offset for result in results if isinstance(result, SendResult)]
    assert stored_at == list(range(49))


async def test_many_messages_are_stored_in_their_order_from_the_first_on(namesrv):
    async with Producer(namesrv) as producer, PullConsumer(namesrv) as consumer:
        await producer.send_many([OutMessage("T", b"%d" % i, queue_id=0) for i in range(300)], in_flight_max=100)
        result = await consumer.pull("T", 0, 300)
    assert [message.body for message in result.messages] == [b"%d" % i for i in range(300)]


async def test_a_dispatch_reaches_its_light_queues(namesrv):
    async with Producer(namesrv) as producer, PullConsumer(namesrv) as consumer:
        await producer.send("T", b"x", dispatch=["%LMQ%a", "%LMQ%b"])
        for queue in ("%LMQ%a", "%LMQ%b"):
            assert [message.body for message in (await consumer.pull(queue, 0)).messages] == [b"x"]


async def test_a_publish_goes_into_the_topic_space(gateway, namesrv):
    queue = mqtt_queue("site/+/temp")
    gateway.broker.bind_filter(b"site/+/temp", queue.encode(), hides_dollar=True)
    async with Producer(namesrv, client_id="me") as producer, PullConsumer(namesrv) as consumer:
        await producer.publish("site/1/temp", b"21.5", properties={"unit": "C"})
        (message,) = (await consumer.pull(queue, 0, wait_s=5)).messages
    assert (message.mqtt_topic, message.body, message.client) == ("site/1/temp", b"21.5", "me")
    assert message.properties["unit"] == "C"


async def test_one_way_messages_are_stored(namesrv):
    async with Producer(namesrv) as producer, PullConsumer(namesrv) as consumer:
        await producer.send("T", b"first", queue_id=0)
        await producer.send_one_way(OutMessage("T", b"x", queue_id=0))
        (message,) = (await consumer.pull("T", 1, wait_s=5)).messages
    assert message.body == b"x"


async def test_a_message_comes_at_its_moment_and_one_that_is_recalled_does_not(namesrv):
    async with Producer(namesrv) as producer, PullConsumer(namesrv) as consumer:
        start_s = time.time()
        gone = await producer.send("T", b"gone", queue_id=0, delay=0.2)
        await producer.send("T", b"by delay", queue_id=0, delay=timedelta(milliseconds=250))
        await producer.send("T", b"by moment", queue_id=0, deliver_at=datetime.fromtimestamp(start_s + 0.4, UTC))
        assert await producer.recall("T", gone.recall_handle) == gone.key
        first = (await consumer.pull("T", 0, wait_s=5)).messages[0]
        second = (await consumer.pull("T", 1, wait_s=5)).messages[0]
    assert (first.body, second.body) == (b"by delay", b"by moment")
    assert 0 <= second.store_ms - math.ceil((start_s + 0.4) * 1000) < 100
    with pytest.raises(ResponseError):
        async with Producer(namesrv) as producer:
            await producer.recall("T", gone.recall_handle)


async def test_a_moment_is_said_once(server):
    async with Producer(server.address) as producer:
        with pytest.raises(ValueError, match="exclude"):
            await producer.send("T", b"x", delay=1, deliver_at=datetime(2030, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("topic", "changes", "kind"),
    [
        ("bad name", {}, MessageRefusedError),
        ("SELF_TEST_TOPIC", {}, NoPermissionError),
        ("T", {"queue_id": 99}, MessageRefusedError),
        ("T", {"dispatch": ["plain"]}, MessageRefusedError),
        ("T", {"properties": {"TIMER_DELAY_SEC": "soon"}}, MessageRefusedError),
    ],
)
async def test_a_refused_message_is_a_typed_error(namesrv, topic, changes, kind):
    async with Producer(namesrv) as producer:
        with pytest.raises(kind) as caught:
            await producer.send(topic, b"x", **changes)
    assert caught.value.remark


@pytest.mark.parametrize("properties", [{"": "x"}, {"a\x01": "x"}, {"a": "x\x02"}])
async def test_a_property_that_cannot_be_carried_is_refused_before_it_is_sent(server, properties):
    async with Producer(server.address) as producer:
        with pytest.raises(ValueError, match="property"):
            await producer.send("T", b"x", properties=properties)
    assert server.codes() == []


async def test_stored_but_not_flushed_is_a_result(scripted):
    scripted.on[310] = lambda request: stored(request, 10)
    async with Producer(scripted.address) as producer:
        assert not (await producer.send("T", b"x")).is_flushed


async def test_a_stopped_producer_sends_nothing(scripted):
    producer = Producer(scripted.address)
    await producer.stop()
    with pytest.raises(SdkError):
        await producer.send("T", b"x")


async def test_a_str_is_one_key_of_a_message_that_is_stored(namesrv):
    async with Producer(namesrv) as producer, PullConsumer(namesrv) as consumer:
        await producer.send("T", b"x", keys="order42", queue_id=0)
        (message,) = (await consumer.pull("T", 0)).messages
    assert message.keys == ["order42"]


async def test_a_body_of_text_is_refused_before_it_is_sent(server):
    async with Producer(server.address) as producer:
        with pytest.raises(TypeError, match="encode"):
            await producer.send("T", "text")
        with pytest.raises(TypeError, match="encode"):
            await producer.send_one_way(OutMessage("T", "text"))
    assert server.codes() == []


async def test_a_delay_level_is_waited_for(namesrv):
    async with Producer(namesrv) as producer, PullConsumer(namesrv) as consumer:
        await producer.send("T", b"x", queue_id=0)
        await producer.send("T", b"late", queue_id=0, delay_level=1)
        (message,) = (await consumer.pull("T", 1, wait_s=5)).messages
    assert message.body == b"late"
    assert message.store_ms - message.born_ms >= 1000


async def test_a_batch_is_stored_side_by_side_in_one_queue(namesrv):
    async with Producer(namesrv) as producer, PullConsumer(namesrv) as consumer:
        messages = [OutMessage("T", b"%d" % i, tags="a", keys=f"k{i}", flag=i, dispatch="%LMQ%x") for i in range(5)]
        sent = await producer.send_batch(messages)
        (queue_id,) = {one.queue_id for one in sent}
        result = await consumer.pull("T", 0, queue_id=queue_id)
        light = await consumer.pull("%LMQ%x", 0)
    assert [(one.body, one.keys, one.flag) for one in result.messages] == [(b"%d" % i, [f"k{i}"], i) for i in range(5)]
    assert [one.key for one in result.messages] == [one.key for one in sent]
    assert [one.queue_offset for one in sent] == list(range(5))
    assert [int(one.msg_id[16:], 16) for one in sent] == [one.physical_offset for one in result.messages]
    assert len(light.messages) == 5


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [OutMessage("T", b"x"), OutMessage("U", b"x")],
        [OutMessage("T", b"x", queue_id=0), OutMessage("T", b"x", queue_id=1)],
        [OutMessage("T", b"x", delay=1)],
        [OutMessage("T", b"x", delay_level=1)],
    ],
)
async def test_what_is_no_batch_is_refused_before_it_is_sent(server, messages):
    async with Producer(server.address) as producer:
        with pytest.raises(ValueError, match="batch"):
            await producer.send_batch(messages)
    assert server.codes() == []


async def test_a_refused_batch_is_stored_by_none_of_its_messages(namesrv):
    async with Producer(namesrv) as producer, PullConsumer(namesrv) as consumer:
        await producer.send("T", b"before", queue_id=0)
        bad = OutMessage("T", b"x", queue_id=0, dispatch="plain")
        with pytest.raises(MessageRefusedError):
            await producer.send_batch([OutMessage("T", b"x", queue_id=0), bad])
        assert await consumer.max_offset("T") == 1


async def test_what_is_sent_soon_is_stored_by_the_end_and_gives_its_result(namesrv):
    async with Producer(namesrv) as producer, PullConsumer(namesrv) as consumer:
        tasks = [producer.send_soon(OutMessage("T", b"%d" % i, queue_id=0)) for i in range(20)]
        seventh = (await tasks[7]).queue_offset
        producer.send_soon(OutMessage("T", b"last", queue_id=0))
        await producer.stop()
        bodies = [message.body for message in (await consumer.pull("T", 0)).messages]
    assert bodies[seventh] == b"7"  # they are under way together, in no order
    assert sorted(bodies) == sorted([*(b"%d" % i for i in range(20)), b"last"])


async def test_what_is_sent_soon_and_fails_is_logged(namesrv, caplog):
    async with Producer(namesrv) as producer:
        task = producer.send_soon(OutMessage("bad name", b"x"))
        with pytest.raises(MessageRefusedError):
            await task
        producer.send_soon(OutMessage("bad name", b"x"))
    assert caplog.text.count("message was not sent") == 2


async def test_a_request_gets_its_reply(namesrv):
    async with Producer(namesrv, "answering") as answering, Producer(namesrv) as producer:

        async def double(messages, context):
            for message in messages:
                await answering.reply(message, message.body * 2, properties={"unit": "C"})

        async with PushConsumer(namesrv, "workers", double, consume_from="first") as consumer:
            consumer.subscribe("Questions")
            replies = await asyncio.gather(*(producer.request("Questions", b"%d" % i, timeout_s=10) for i in range(5)))
        assert [reply.body for reply in replies] == [b"%d" % i * 2 for i in range(5)]
        assert replies[0].properties["unit"] == "C"


async def test_a_request_that_nobody_replies_to_is_over_in_time(namesrv):
    async with Producer(namesrv) as producer, PullConsumer(namesrv) as consumer:
        with pytest.raises(RequestTimeoutError, match="Questions"):
            await producer.request("Questions", b"x", timeout_s=0.1)
        found = [message async for message in _first(consumer.messages("Questions", from_="first"))]
        await producer.reply(found[0], b"late")  # is taken, and let go
        async with Producer(namesrv) as plain:
            await plain.send("Questions", b"plain", queue_id=0)
        with pytest.raises(ValueError, match="not a request"):
            await producer.reply(dataclasses.replace(found[0], properties={}), b"x")


async def test_a_reply_to_one_that_is_gone_is_an_error(namesrv):
    async with Producer(namesrv) as asking, PullConsumer(namesrv) as consumer:
        with pytest.raises(RequestTimeoutError):
            await asking.request("Questions", b"x", timeout_s=0.1)
        found = [message async for message in _first(consumer.messages("Questions", from_="first"))]
        await asking.stop()
        async with Producer(namesrv) as answering:
            with pytest.raises(ResponseError):
                await answering.reply(found[0], b"late")


async def _first(messages):
    async for message in messages:
        yield message
        break
    await messages.aclose()


async def test_an_empty_topic_is_not_published_to():
    async with Producer("127.0.0.1:1") as producer:
        with pytest.raises(ValueError, match=r"^the topic is empty"):
            await producer.publish("", b"x")


async def test_large_bodies_are_compressed_where_that_makes_them_smaller(gateway, namesrv):
    noise, text = bytes(range(256)), b"text " * 1_000
    async with Producer(namesrv, compress_over=200) as producer, PullConsumer(namesrv) as consumer:
        sent = [await producer.send("T", body, queue_id=0) for body in (text, noise, b"short")]
        await producer.send_batch([OutMessage("T", text, queue_id=0)])
        found = await consumer.pull("T", 0)
        assert [message.body for message in found.messages] == [text, noise, b"short", text]
        broker = Client("{}:{}".format(*gateway.listening["broker"]))
        places = [{"offset": str(int(one.msg_id[16:], 16))} for one in sent]
        stored = [decode_stored((await broker.request(Command(33, ext=ext))).body) for ext in places]
        assert [(one.sys_flag & 1, len(one.body) < 100 or one.body == noise) for one in stored] == [
            (1, True), (0, True), (0, True),
        ]  # fmt: skip
        await broker.close()


async def test_what_goes_to_other_doors_is_inflated_there(namesrv):
    text = b"text " * 1_000
    async with Producer(namesrv, compress_over=1) as producer, PullConsumer(namesrv) as consumer:
        await producer.send("T", text, dispatch="%LMQ%x")
        await producer.publish("a/b", text)
        assert [message.body for message in (await consumer.pull("%LMQ%x", 0)).messages] == [text]
        (published,) = (await consumer.pull("LMQ_PARENT", 0)).messages
        assert (published.body, published.mqtt_topic) == (text, "a/b")


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (
            lambda one: one.send_many([("T", b"x")]),
            "message=('T', b'x') is of type tuple; it is to be of type OutMessage",
        ),
        (lambda one: one.send_many([], in_flight_max=0), "in_flight_max=0; it is to be 1 or more"),
        (lambda one: one.send_batch(OutMessage("T", b"x")), "messages=OutMessage("),
        (lambda one: one.send_one_way("T"), "message='T' is of type str; it is to be of type OutMessage"),
        (lambda one: one.recall("T", None), "handle=None is of type NoneType; it is to be of type str"),
        (lambda one: one.request("T", b"x", timeout_s=0), "timeout_s=0; it is to be a number of seconds over 0"),
        (lambda one: one.reply(OutMessage("T", b"x"), b"y"), "request=OutMessage("),
    ],
)
async def test_a_use_that_makes_no_sense_is_told_before_anything_is_sent(server, use, said):
    async with Producer(server.address) as producer:
        with pytest.raises((TypeError, ValueError), match=rf"^{re.escape(said)}"):
            await use(producer)
    assert not server.requests


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"retries": -1}, "retries=-1; it is to be 0 or more"),
        ({"compress_over": "4"}, "compress_over='4' is of type str; it is to be of type int"),
        ({"selector": 5}, "selector=5 cannot be called"),
        (
            {"selector": len},
            "selector=<built-in function len> cannot be called with these arguments: (queues, message)",
        ),
    ],
)
async def test_what_a_producer_is_made_of_is_looked_at_at_once(changes, said):
    with pytest.raises((TypeError, ValueError), match=rf"^{re.escape(said)}$"):
        Producer("127.0.0.1:1", **changes)
