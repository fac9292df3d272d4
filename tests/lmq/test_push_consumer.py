from __future__ import annotations

import asyncio
import re

import pytest

from lmq import (
    ConsumeStatus,
    FlowLimits,
    OutMessage,
    PushConsumer,
    amqp_queue,
    mqtt_queue,
    push_consumer,
)
from tests.support.heard import Heard, ask_behind, fill, numbers
from tests.support.waiting import until

pytestmark = pytest.mark.asyncio


async def test_all_messages_of_a_topic_are_heard_once_and_the_group_goes_on_where_it_was(namesrv, producer, reader):
    await fill(producer, 100)
    heard = Heard()
    async with PushConsumer(namesrv, "g", heard, consume_from="first") as consumer:
        consumer.subscribe("T")
        await heard.until(100)
    assert numbers(heard) == list(range(100))
    assert [await reader.committed("T", i) for i in range(4)] == [25] * 4
    await producer.send("T", b"100", queue_id=0)
    again = Heard()
    async with PushConsumer(namesrv, "g", again) as consumer:
        consumer.subscribe("T")
        await again.until(1)
    assert again.bodies == [b"100"]


async def test_a_group_that_never_was_there_begins_with_what_comes(namesrv, producer):
    await fill(producer, 4)
    heard = Heard()
    async with PushConsumer(namesrv, "g", heard) as consumer:
        consumer.subscribe("T")
        await until(lambda: len([queue for queue in consumer.assigned if queue.topic == "T"]) == 4)
        await producer.send("T", b"new", queue_id=2)
        await heard.until(1)
    assert heard.bodies == [b"new"]


async def test_a_topic_that_comes_later_is_heard_from_its_first_message(monkeypatch, namesrv, producer):
    monkeypatch.setattr(push_consumer, "UNBALANCED_S", 0.05)
    heard = Heard()
    async with PushConsumer(namesrv, "g", heard) as consumer:
        consumer.subscribe("Later")
        await until(lambda: "Later" in consumer._assignment._first_seen)
        await fill(producer, 8, "Later")
        await heard.until(8)
    assert numbers(heard) == list(range(8))


async def test_only_wanted_tags_are_heard(namesrv, producer):
    heard = Heard()
    for tag in ("Aa", "BB", "c", ""):  # the first two have the same hash
        await producer.send("T", tag.encode(), tags=tag, queue_id=0)
    async with PushConsumer(namesrv, "g", heard, consume_from="first") as consumer:
        consumer.subscribe("T", "Aa || c")
        await heard.until(2)
    assert heard.bodies == [b"Aa", b"c"]


async def test_no_more_is_pulled_ahead_than_the_limits_allow(namesrv, producer):
    gate = asyncio.Event()
    begun = []

    async def listen(messages, context):
        begun.append(messages)
        await gate.wait()

    await producer.send_many([OutMessage("T", b"x", queue_id=0) for _ in range(50)])
    limits = FlowLimits(messages=5)
    async with PushConsumer(
        namesrv, "g", listen, consume_from="first", pull_batch_size=2, limits=limits, concurrency=100
    ) as consumer:
        consumer.subscribe("T")
        await until(lambda: len(begun) >= 6)
        await ask_behind(consumer)
        assert len(begun) == 6
        gate.set()
        await until(lambda: len(begun) == 50)


async def test_a_stop_waits_for_the_listener_and_commits_what_it_did(namesrv, producer, reader):
    heard, gate = Heard(), asyncio.Event()

    async def listen(messages, context):
        await heard(messages, context)
        await gate.wait()

    await producer.send_many([OutMessage("T", b"%d" % i, queue_id=0) for i in range(10)])
    consumer = PushConsumer(namesrv, "g", listen, consume_from="first", concurrency=3)
    await consumer.start()
    consumer.subscribe("T")
    await heard.until(3)
    stopping = asyncio.create_task(consumer.stop())
    await until(lambda: consumer._consumption._listening._is_stopped)
    gate.set()
    await stopping
    assert len(heard.messages) == 3
    assert await reader.committed("T") == 3


async def test_a_stop_does_not_wait_for_ever(namesrv, producer, reader):
    heard = Heard()

    async def listen(messages, context):
        await heard(messages, context)
        await asyncio.Event().wait()

    await producer.send("T", b"x", queue_id=0)
    async with PushConsumer(namesrv, "g", listen, consume_from="first", stop_s=0.05) as consumer:
        consumer.subscribe("T")
        await heard.until(1)
    assert await reader.committed("T") == 0


async def test_offsets_are_committed_every_now_and_then(monkeypatch, namesrv, producer, reader):
    monkeypatch.setattr(push_consumer, "COMMIT_S", 0.02)
    heard = Heard()
    await producer.send("T", b"x", queue_id=0)
    async with PushConsumer(namesrv, "g", heard, consume_from="first") as consumer:
        consumer.subscribe("T")
        await heard.until(1)
        async with asyncio.timeout(20):
            while await reader.committed("T") != 1:
                await asyncio.sleep(0.01)


async def test_light_queues_are_heard_by_name_by_filter_and_by_amqp_queue(gateway, namesrv, producer):
    by_filter, by_queue = mqtt_queue("site/+/temp"), amqp_queue("work")
    gateway.broker.bind_filter(b"site/+/temp", by_filter.encode(), hides_dollar=True)
    heard = Heard()
    async with PushConsumer(namesrv, "g", heard, consume_from="first") as consumer:
        for name in ("%LMQ%mine", by_filter, by_queue):
            consumer.subscribe(name)
        await producer.send("T", b"mine", dispatch="%LMQ%mine")
        await producer.publish("site/1/temp", b"21.5")
        await producer.send("T", b"job", dispatch=by_queue)
        await heard.until(3)
    assert {message.queue: message.body for message in heard.messages} == {
        "%LMQ%mine": b"mine",
        by_filter: b"21.5",
        by_queue: b"job",
    }


async def test_a_topic_can_be_left(namesrv, producer):
    heard = Heard()
    async with PushConsumer(namesrv, "g", heard, consume_from="first") as consumer:
        consumer.subscribe("T")
        consumer.subscribe("U")
        await producer.send("T", b"t", queue_id=0)
        await producer.send("U", b"u", queue_id=0)
        await heard.until(2)
        consumer.unsubscribe("T")
        await until(lambda: {queue.topic for queue in consumer.assigned} == {"U", "%RETRY%g"})


async def test_a_consumer_that_pauses_is_given_nothing_and_goes_on(namesrv, producer, reader):
    heard = Heard()
    async with PushConsumer(namesrv, "g", heard, consume_from="first") as consumer:
        consumer.subscribe("T")
        await fill(producer, 8)
        await heard.until(8)
        consumer.pause()
        await fill(producer, 8)
        await ask_behind(consumer)
        assert (len(heard.messages), consumer.is_paused) == (8, True)
        assert len([queue for queue in consumer.assigned if queue.topic == "T"]) == 4
        consumer.resume()
        await heard.until(16)
    assert [await reader.committed("T", i) for i in range(4)] == [4] * 4


async def test_a_listener_is_async_and_a_start_is_known():
    def plain(messages, context):
        return None

    with pytest.raises(TypeError, match=r"^listener=.* is a def"):
        PushConsumer("127.0.0.1:9876", "g", plain)
    with pytest.raises(
        ValueError, match=r"^consume_from='newest' is not known; it is one of 'first', 'last', any datetime$"
    ):
        PushConsumer("127.0.0.1:9876", "g", Heard(), consume_from="newest")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"concurrency": 0}, "concurrency=0; it is to be 1 or more"),
        ({"consume_batch_size": 0}, "consume_batch_size=0; it is to be 1 or more"),
        ({"pull_batch_size": -1}, "pull_batch_size=-1; it is to be 1 or more"),
        ({"max_reconsume_times": -1}, "max_reconsume_times=-1; it is to be 0 or more"),
        ({"limits": 5}, "limits=5 is of type int; it is to be of type FlowLimits"),
        ({"allocate": None}, "allocate=None cannot be called"),
        ({"allocate": len}, "allocate=<built-in function len> cannot be called with these arguments"),
    ],
)
async def test_what_would_never_consume_is_refused_at_once(changes, said):
    with pytest.raises((TypeError, ValueError), match=rf"^{re.escape(said)}"):
        PushConsumer("127.0.0.1:9876", "g", Heard(), **changes)


async def test_a_topic_that_there_cannot_be_is_not_subscribed_to():
    with pytest.raises(ValueError, match=r"^topic 'site/1/temp': .* mqtt_queue makes one of a filter$"):
        PushConsumer("127.0.0.1:9876", "g", Heard()).subscribe("site/1/temp")


async def test_a_folder_of_offsets_may_be_a_text(tmp_path):
    PushConsumer("127.0.0.1:9876", "g", Heard(), broadcasting=True, offsets_dir=str(tmp_path))


async def test_a_stop_that_is_cancelled_leaves_no_task(monkeypatch, namesrv, producer):
    heard, reached, never = Heard(lambda message: ConsumeStatus.LATER), asyncio.Event(), asyncio.Event()

    async def hang(_check):
        reached.set()
        await never.wait()

    def left():
        names = [task.get_coro().__qualname__ for task in asyncio.all_tasks()]
        return [name for name in names if name.startswith(("PushConsumer.", "_Listening."))]

    monkeypatch.setattr(push_consumer.SubscriptionCheck, "stop", hang)
    await producer.send("T", b"x", queue_id=0)
    consumer = PushConsumer(namesrv, "g", heard, consume_from="first", orderly=True)
    await consumer.start()
    consumer.subscribe("T")
    await heard.until(1)
    stopping = asyncio.create_task(consumer.stop())
    await reached.wait()
    assert left()
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    await until(lambda: not left())
