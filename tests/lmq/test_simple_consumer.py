from __future__ import annotations

import asyncio
import time

import pytest
import pytest_asyncio

from lmq import (
    ConnectionLostError,
    NotFoundError,
    OutMessage,
    PullConsumer,
    SdkError,
    SimpleConsumer,
    amqp_queue,
    mqtt_queue,
    simple_consumer,
)
from lmq.remoting.commands import answer
from tests.support.scripted_broker import serve_topics
from tests.support.waiting import until

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def consumer(namesrv):
    async with SimpleConsumer(namesrv, "g", consume_from="first") as consumer:
        consumer.subscribe("T")
        yield consumer


async def fill(producer, count, **changes):
    await producer.send_many([OutMessage("T", b"%d" % i, queue_id=i % 4, **changes) for i in range(count)])


@pytest.mark.at_once(reason="a receive that does not wait finds nothing in queues that are not open yet")
async def test_messages_of_all_queues_are_received_and_are_gone_when_they_are_done(namesrv, producer, consumer):
    await fill(producer, 20)
    found = []
    while messages := await consumer.receive(8, wait_s=0):
        found += messages
        for message in messages:
            await consumer.ack(message)
    assert sorted(int(message.body) for message in found) == list(range(20))
    assert {message.queue_id for message in found} == {0, 1, 2, 3}
    async with SimpleConsumer(namesrv, "g") as other:
        other.subscribe("T")
        assert await other.receive(32, wait_s=0) == []


async def test_what_is_not_done_in_time_comes_again_with_its_attempts(namesrv, producer, consumer):
    await producer.send("T", b"x", queue_id=0)
    (first,) = await consumer.receive(invisible_s=0.2)
    assert await consumer.receive(wait_s=0) == []
    async with SimpleConsumer(namesrv, "g") as other:
        other.subscribe("T")
        (again,) = await other.receive(wait_s=5)
        assert (again.body, again.reconsume_times, again.key) == (b"x", 1, first.key)
        await consumer.ack(first)  # too late: changes nothing
        await other.ack(again)
    assert await consumer.receive(wait_s=0.3) == []


async def test_a_message_can_be_kept_for_longer_and_given_back_sooner(producer, consumer):
    await producer.send("T", b"x", queue_id=0)
    (message,) = await consumer.receive(invisible_s=0.1)
    longer = await consumer.change_invisible(message, 60)
    assert longer.receipt != message.receipt
    assert await consumer.receive(wait_s=0.2) == []
    await consumer.change_invisible(longer, 0.01)
    (again,) = await consumer.receive(wait_s=5)
    assert again.body == b"x"
    await consumer.ack(again)


async def until_held(gateway):
    """Wait until the gateway holds a request for messages that are not there yet."""
    async with asyncio.timeout(20):
        while not gateway.doors["rocketmq"].pops.waiting_count:
            await asyncio.sleep(0.001)


async def test_a_message_is_waited_for_in_one_topic_and_in_many(gateway, producer, consumer):
    await producer.send("T", b"0", queue_id=0)
    await producer.send("U", b"0", queue_id=0)
    (message,) = await consumer.receive()
    await consumer.ack(message)
    waiting = asyncio.create_task(consumer.receive(wait_s=10))
    await until_held(gateway)
    await producer.send("T", b"1", queue_id=1)
    assert [one.body for one in await asyncio.wait_for(waiting, 20)] == [b"1"]
    consumer.subscribe("U")
    (message,) = await consumer.receive()
    assert (message.topic, message.body) == ("U", b"0")
    waiting = asyncio.create_task(consumer.receive(wait_s=10))
    await until_held(gateway)
    await producer.send("U", b"1", queue_id=2)
    assert [one.body for one in await asyncio.wait_for(waiting, 20)] == [b"1"]


async def test_nothing_comes_after_the_wait(producer, consumer):
    await producer.send("T", b"0", queue_id=0, tags="other")
    consumer.subscribe("T", "wanted")
    consumer.subscribe("%LMQ%empty")
    began_s = time.monotonic()
    assert await consumer.receive(wait_s=0.2) == []
    assert 0.15 < time.monotonic() - began_s < 3


async def test_only_wanted_messages_are_received(producer, consumer):
    for tag, weight in (("Aa", 1), ("BB", 9), ("c", 9)):
        await producer.send("T", tag.encode(), tags=tag, properties={"weight": str(weight)}, queue_id=0)
    consumer.subscribe("T", "Aa")
    assert [one.body for one in await consumer.receive(8)] == [b"Aa"]
    assert await consumer.receive(8, wait_s=0) == []


async def test_messages_are_chosen_by_sql(producer, consumer):
    for weight in (1, 9):
        await producer.send("T", b"%d" % weight, properties={"weight": str(weight)}, queue_id=0)
    consumer.subscribe("T", sql="weight > 5")
    assert [one.body for one in await consumer.receive(8)] == [b"9"]


async def test_in_order_a_queue_waits_for_what_it_gave(namesrv, producer):
    await producer.send_many([OutMessage("T", b"%d" % i, queue_id=0) for i in range(3)])
    async with SimpleConsumer(namesrv, "g", consume_from="first", orderly=True) as consumer:
        consumer.subscribe("T")
        (first,) = await consumer.receive(1)
        assert await consumer.receive(1, wait_s=0) == []
        await consumer.ack(first)
        (second,) = await consumer.receive(1)
    assert (first.body, second.body) == (b"0", b"1")


async def test_light_queues_are_received_by_name_by_filter_and_by_amqp_queue(gateway, namesrv, producer):
    by_filter, by_queue = mqtt_queue("site/+/temp"), amqp_queue("work")
    gateway.broker.bind_filter(b"site/+/temp", by_filter.encode(), hides_dollar=True)
    await producer.send("T", b"mine", dispatch="%LMQ%mine")
    await producer.publish("site/1/temp", b"21.5")
    await producer.send("T", b"job", dispatch=by_queue)
    async with SimpleConsumer(namesrv, "g", consume_from="first") as consumer:
        found = {}
        for name in ("%LMQ%mine", by_filter, by_queue):
            consumer.subscribe(name)
        for _ in range(3):
            (message,) = await consumer.receive(1, invisible_s=0.1 if not found else 30)
            found[message.queue] = message.body
            await consumer.ack(message)
        assert await consumer.receive(1, wait_s=0.2) == []
    assert found == {"%LMQ%mine": b"mine", by_filter: b"21.5", by_queue: b"job"}


@pytest.mark.here(reason="one pull takes what is here")
async def test_a_message_that_was_pulled_has_no_receipt(namesrv, producer, consumer):
    await producer.send("T", b"x", queue_id=0)
    async with PullConsumer(namesrv) as reader:
        (message,) = (await reader.pull("T", 0)).messages
    with pytest.raises(SdkError, match="not a receipt"):
        await consumer.ack(message)


async def test_topics_that_are_not_there_are_named(consumer):
    with pytest.raises(NotFoundError, match="T"):
        await consumer.receive(wait_s=0)
    consumer.unsubscribe("T")
    with pytest.raises(NotFoundError, match="subscribed"):
        await consumer.receive()


async def test_a_topic_that_comes_while_it_is_waited_for_is_received(monkeypatch, producer, consumer):
    monkeypatch.setattr(simple_consumer, "MISSING_S", 0.02)
    look, has_missed = consumer._queues, asyncio.Event()

    async def look_and_tell():
        try:
            return await look()
        except NotFoundError:
            has_missed.set()
            raise

    monkeypatch.setattr(consumer, "_queues", look_and_tell)
    waiting = asyncio.create_task(consumer.receive(wait_s=10))
    await has_missed.wait()
    await producer.send("T", b"x")
    assert [one.body for one in await asyncio.wait_for(waiting, 20)] == [b"x"]


async def test_refusals_and_losses_are_errors(server):
    serve_topics(server)
    server.on[200_050] = lambda request: answer(request, 26, "no such group")
    async with SimpleConsumer(server.address, "g") as consumer:
        consumer.subscribe("T")
        with pytest.raises(SdkError, match="no such group"):
            await consumer.receive()
        server.on[200_050] = lambda request: server.drop_all()
        with pytest.raises(ConnectionLostError):
            await consumer.receive()


async def test_a_start_that_is_no_known_word_is_refused():
    with pytest.raises(ValueError, match=r"^consume_from='earliest' is not known; it is one of 'first', 'last'$"):
        SimpleConsumer("127.0.0.1:9876", "g", consume_from="earliest")


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda one: one.receive(0), "max_count=0; it is to be 1 or more"),
        (lambda one: one.receive(1, invisible_s=0), "invisible_s=0; it is to be a number of seconds over 0"),
        (lambda one: one.receive(1, wait_s=-1), "wait_s=-1; it is to be a number of seconds from 0 on"),
        (lambda one: one.ack("receipt"), "message='receipt' is of type str; it is to be of type Message"),
        (lambda one: one.change_invisible(None, 5), "message=None is of type NoneType; it is to be of type Message"),
    ],
)
async def test_a_use_that_makes_no_sense_is_told_before_anything_is_asked(server, use, said):
    async with SimpleConsumer(server.address, "g") as consumer:
        consumer.subscribe("T")
        with pytest.raises((TypeError, ValueError), match=rf"^{said}$"):
            await use(consumer)
    assert not server.requests


async def test_a_receive_that_is_cancelled_asks_for_nothing_more(server):
    serve_topics(server)
    server.on[200_050] = lambda request: answer(request, 210, ext={})
    server.on[200_054] = lambda request: None
    async with SimpleConsumer(server.address, "g") as consumer:
        consumer.subscribe("T")
        consumer.subscribe("U")
        receiving = asyncio.create_task(consumer.receive(wait_s=30))
        await until(lambda: server.codes().count(200_054) == 2)
        receiving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await receiving
        assert [task for task in asyncio.all_tasks() if task.get_coro().__qualname__.endswith("._ask")] == []
