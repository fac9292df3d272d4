from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime

import pytest
import pytest_asyncio

from gateway.rocketmq.topic_table import Topic
from lmq import (
    MessageQueue,
    NotFoundError,
    OutMessage,
    Producer,
    PullConsumer,
    SdkError,
    amqp_queue,
    mqtt_queue,
    pull_consumer,
)
from lmq.client import Client
from lmq.remoting.commands import Command, answer, encode_json
from lmq.remoting.response_codes import ResponseCode
from tests.support.remoting_server import RemotingServer

pytestmark = [pytest.mark.asyncio, pytest.mark.here(reason="one pull takes what is here")]


@pytest_asyncio.fixture
async def consumer(namesrv):
    async with PullConsumer(namesrv, "g") as consumer:
        yield consumer


async def fill(producer: Producer, count: int, **changes) -> None:
    results = await producer.send_many([OutMessage("T", b"m%d" % i, queue_id=0, **changes) for i in range(count)])
    assert not [result for result in results if isinstance(result, SdkError)]


def count_held(gateway) -> int:
    return sum(len(one.held) for one in gateway.doors["rocketmq"].handlers)


async def until_a_pull_waits(gateway, others: int = 0) -> None:
    """Wait until the gateway holds a pull, besides those of readers that were closed."""
    async with asyncio.timeout(20):
        while count_held(gateway) <= others:
            await asyncio.sleep(0.001)


async def test_messages_are_pulled_from_an_offset_on(producer, consumer):
    await fill(producer, 10)
    result = await consumer.pull("T", 3, 4)
    assert [(message.body, message.queue_offset) for message in result.messages] == [
        (b"m%d" % i, i) for i in range(3, 7)
    ]
    assert (result.next_offset, result.min_offset, result.max_offset, result.is_moved) == (7, 0, 10, False)


async def test_a_light_queue_has_its_own_numbers(producer, consumer):
    await fill(producer, 3)
    await fill(producer, 2, dispatch=["%LMQ%x", "%LMQ%y"])
    await fill(producer, 2, dispatch=["%LMQ%y"])
    result = await consumer.pull("%LMQ%y", 1)
    assert [message.queue_offset for message in result.messages] == [1, 2, 3]
    assert [message.queue for message in result.messages] == ["%LMQ%y"] * 3


async def test_a_light_queue_of_a_wide_dispatch_has_its_own_numbers(producer, consumer):
    names = [f"%LMQ%device-{i}" for i in range(2000)]
    await fill(producer, 3, dispatch=names)
    result = await consumer.pull(names[-1], 1)
    assert [message.queue_offset for message in result.messages] == [1, 2]


async def test_light_queues_are_read_by_name_by_filter_and_by_amqp_queue(gateway, producer, consumer):
    by_filter, by_queue = mqtt_queue("site/+/temp"), amqp_queue("work")
    gateway.broker.bind_filter(b"site/+/temp", by_filter.encode(), hides_dollar=True)
    await producer.send("T", b"mine", dispatch="%LMQ%mine")
    await producer.publish("site/1/temp", b"21.5")
    await producer.send("T", b"job", dispatch=by_queue)
    for name, body in (("%LMQ%mine", b"mine"), (by_filter, b"21.5"), (by_queue, b"job")):
        assert [message.body for message in (await consumer.pull(name, 0, wait_s=5)).messages] == [body]
        reading = consumer.messages(name, from_="first", commit=True)
        message = await anext(reading)
        await reading.aclose()
        assert (message.queue, message.body) == (name, body)


async def test_a_pull_waits_for_a_message_and_no_longer(gateway, producer, consumer):
    await fill(producer, 1)
    waiting = asyncio.create_task(consumer.pull("T", 1, wait_s=10))
    await until_a_pull_waits(gateway)
    await producer.send("T", b"new", queue_id=0)
    assert [message.body for message in (await asyncio.wait_for(waiting, 20)).messages] == [b"new"]


async def test_a_pull_that_waits_in_vain_gives_nothing(producer, consumer):
    await fill(producer, 1)
    result = await consumer.pull("T", 1, wait_s=0.1)
    assert (result.messages, result.next_offset) == ([], 1)


async def test_an_offset_outside_the_queue_is_moved(producer, consumer):
    await fill(producer, 2)
    result = await consumer.pull("T", 99)
    assert (result.messages, result.next_offset, result.is_moved) == ([], 2, True)


async def test_only_wanted_tags_are_pulled(producer, consumer):
    await producer.send("T", b"a", tags="a", queue_id=0)
    await producer.send("T", b"b", tags="b", queue_id=0)
    result = await consumer.pull("T", 0, tags="b || c")
    assert [message.body for message in result.messages] == [b"b"]
    assert result.next_offset == 2


async def test_offsets_are_committed_for_the_group(namesrv, producer, consumer):
    await fill(producer, 3)
    assert await consumer.committed("T") is None
    await consumer.commit("T", 2)
    assert await consumer.committed("T") == 2
    async with PullConsumer(namesrv, "other") as other:
        assert await other.committed("T") is None
    await consumer.commit("%LMQ%any", 5)
    assert await consumer.committed("%LMQ%any") == 5


async def test_a_queue_tells_its_ends_and_moments(producer, consumer):
    before_ms = time.time_ns() // 1_000_000
    await fill(producer, 3)
    assert (await consumer.min_offset("T"), await consumer.max_offset("T")) == (0, 3)
    assert await consumer.search_offset("T", before_ms - 1000) == 0
    assert await consumer.search_offset("T", before_ms + 60_000) == 3


async def take(consumer: PullConsumer, count: int, **options) -> list[bytes]:
    found: list[bytes] = []
    messages = consumer.messages("T", **options)
    async for message in messages:
        found.append(message.body)
        if len(found) == count:
            break
    await messages.aclose()
    return found


async def test_messages_are_iterated_from_where_the_caller_says(gateway, producer, consumer):
    await fill(producer, 5)
    assert await take(consumer, 5, from_="first", max_count=2) == [b"m0", b"m1", b"m2", b"m3", b"m4"]
    assert await take(consumer, 2, from_=3, queue_id=0) == [b"m3", b"m4"]
    assert await take(consumer, 1) == [b"m0"]
    await consumer.commit("T", 4)
    assert await take(consumer, 1) == [b"m4"]
    others = count_held(gateway)
    last = asyncio.create_task(take(consumer, 1, from_="last"))
    await until_a_pull_waits(gateway, others)
    await producer.send("T", b"new", queue_id=0)
    assert await asyncio.wait_for(last, 20) == [b"new"]


async def test_iterating_can_commit_what_the_caller_is_done_with(producer, consumer):
    await fill(producer, 5)
    assert await take(consumer, 3, from_="first", max_count=2, commit=True) == [b"m0", b"m1", b"m2"]
    assert await consumer.committed("T") == 2


async def test_iterating_goes_on_after_a_lost_connection(gateway, producer, consumer):
    await fill(producer, 1)
    reading = asyncio.create_task(take(consumer, 2, from_="first"))
    await until_a_pull_waits(gateway)
    gateway.connections.abort_all()
    await asyncio.sleep(0)
    await producer.send("T", b"after", queue_id=0)
    assert await asyncio.wait_for(reading, 10) == [b"m0", b"after"]


async def test_iterating_goes_on_and_commits_after_the_connection_was_lost_at_a_commit(server):
    body = b'{"brokerAddrTable":{"b":{"brokerAddrs":{"0":"%b"},"brokerName":"b"}}}' % server.address.encode()
    commits: list[str] = []

    def commit(request: Command) -> Command | None:
        commits.append(request.ext["commitOffset"])
        if len(commits) > 2:  # asked once more, then given up
            return answer(request, 0)
        server.drop_all()
        return None

    def pull(request: Command) -> Command:
        if request.ext["queueOffset"] == "7":
            done.set()
        return answer(request, ResponseCode.PULL_OFFSET_MOVED, ext={"nextBeginOffset": "7"})

    done = asyncio.Event()
    server.on |= {106: lambda request: answer(request, 0, body=body), 15: commit, 11: pull}
    async with PullConsumer(server.address) as consumer:
        reading = asyncio.create_task(anext(consumer.messages("%LMQ%x", from_=3, commit=True)))
        await asyncio.wait_for(done.wait(), 20)
        assert not reading.done()
        reading.cancel()
    assert commits == ["7", "7", "7"]


async def test_an_unknown_topic_is_not_found(consumer):
    with pytest.raises(NotFoundError):
        await consumer.pull("Unknown", 0)


async def test_records_that_cannot_be_read_are_an_error(server):
    body = b'{"brokerAddrTable":{"b":{"brokerAddrs":{"0":"%b"},"brokerName":"b"}}}' % server.address.encode()
    server.on[106] = lambda request: answer(request, 0, body=body)
    server.on[11] = lambda request: answer(request, 0, body=b"\x00\x00\x00\x05junk")
    async with PullConsumer(server.address) as consumer:
        with pytest.raises(SdkError, match="cannot be read"):
            await consumer.pull("%LMQ%x", 0)


async def test_all_queues_of_a_topic_are_read_and_each_in_its_order(producer, consumer):
    await producer.send_many([OutMessage("T", b"%d" % i) for i in range(40)])
    assert len(await consumer.queues("T")) > 1
    messages = []
    reading = consumer.messages("T", from_="first", max_count=3)
    async for message in reading:
        messages.append(message)
        if len(messages) == 40:
            break
    await reading.aclose()
    assert sorted(int(message.body) for message in messages) == list(range(40))
    for queue in await consumer.queues("T"):
        offsets = [message.queue_offset for message in messages if message.message_queue == queue]
        assert offsets == list(range(len(offsets)))


async def test_what_comes_to_any_queue_is_read(gateway, producer, consumer):
    await producer.send("T", b"old", queue_id=0)
    reading = asyncio.create_task(take(consumer, 4, from_="last"))
    await until_a_pull_waits(gateway)
    for number in range(4):
        await producer.send("T", b"%d" % number, queue_id=number)
    assert sorted(await asyncio.wait_for(reading, 20)) == [b"0", b"1", b"2", b"3"]


async def test_each_queue_is_committed_by_itself(namesrv, producer, consumer):
    await producer.send_many([OutMessage("T", b"%d" % i) for i in range(8)])
    reading = consumer.messages("T", from_="first", commit=True)
    found = []
    while len(found) < 8:
        found.append((await anext(reading)).body)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(reading), 0.1)
    committed = [await consumer.committed(queue) for queue in await consumer.queues("T")]
    ends = [await consumer.max_offset(queue) for queue in await consumer.queues("T")]
    assert committed == [end or None for end in ends]


async def test_reading_begins_at_a_moment(producer, consumer):
    await producer.send("T", b"early", queue_id=0)
    stored_ms = time.time_ns() // 1_000_000
    while (now_ms := time.time_ns() // 1_000_000) == stored_ms:
        await asyncio.sleep(0.001)
    moment = datetime.fromtimestamp(now_ms / 1_000, UTC)
    await producer.send("T", b"late", queue_id=1)
    assert await take(consumer, 1, from_=moment) == [b"late"]


async def test_one_offset_for_many_queues_is_refused(producer, consumer):
    await fill(producer, 1)
    with pytest.raises(ValueError, match="queue_id"):
        await take(consumer, 1, from_=0)


async def test_all_brokers_of_a_topic_are_read(server):
    async with RemotingServer() as a, RemotingServer() as b:
        brokers = {"a": a, "b": b}
        brokers_said = [{"brokerAddrs": {"0": one.address}, "brokerName": name} for name, one in brokers.items()]
        queues = [{"brokerName": name, "readQueueNums": 1, "writeQueueNums": 1} for name in brokers]
        route = {"brokerDatas": brokers_said, "queueDatas": queues}
        server.on[105] = lambda request: answer(request, 0, body=encode_json(route))
        asked = {name: asyncio.Event() for name in brokers}
        for name, one in brokers.items():
            one.on[30] = lambda request: answer(request, 0, ext={"offset": "3"})
            one.on[11] = lambda request, name=name: asked[name].set()
        async with PullConsumer(server.address) as consumer:
            reading = asyncio.create_task(anext(consumer.messages("T", from_="last")))
            async with asyncio.timeout(20):
                await asyncio.gather(*(event.wait() for event in asked.values()))
            reading.cancel()
    for name, one in brokers.items():
        pulls = [request for request in one.requests if request.code == 11]
        assert [(request.ext["bname"], request.ext["queueOffset"]) for request in pulls] == [(name, "3")]


async def test_queues_that_a_topic_gets_later_are_read_from_their_beginning(monkeypatch, gateway, producer, consumer):
    monkeypatch.setattr(pull_consumer, "ROUTE_S", 0.05)
    await fill(producer, 1)
    table = gateway.doors["rocketmq"].topics
    reading = asyncio.create_task(take(consumer, 2, from_="first"))
    await until_a_pull_waits(gateway)
    number = table.get(b"T").write_queues
    table.set(b"T", Topic(number + 1, number + 1))
    for member in (producer, consumer):
        member._routes.forget("T")
    await producer.send("T", b"new", queue_id=number)
    assert await asyncio.wait_for(reading, 20) == [b"m0", b"new"]


@pytest.mark.asyncio
@pytest.mark.parametrize("from_", ["earliest", None, "LAST"])
async def test_a_start_that_is_no_known_word_is_refused(from_):
    async with PullConsumer("127.0.0.1:1") as consumer:
        with pytest.raises(ValueError, match="it is one of 'first', 'last', 'committed', any int, any datetime"):
            await anext(aiter(consumer.messages("T", from_=from_)))


async def test_queues_that_pause_give_nothing_while_others_go_on(producer, consumer):
    for number in range(8):
        await producer.send("T", b"%d" % number, queue_id=number % 2)
    held = MessageQueue("T", "lmq", 1)
    consumer.pause(held)
    found = []
    async with asyncio.timeout(10):
        async for message in consumer.messages("T", from_="first", max_count=1, wait_s=0.2):
            found.append(int(message.body))
            if len(found) == 4:
                assert found == [0, 2, 4, 6]
                asyncio.get_running_loop().call_later(0.05, consumer.resume)
            elif len(found) == 8:
                break
    assert found[4:] == [1, 3, 5, 7]


async def test_all_may_pause_at_once(producer, consumer):
    messages = consumer.messages("T", from_="first")
    await producer.send("T", b"x", queue_id=0)
    assert (await anext(messages)).body == b"x"
    consumer.pause()
    await producer.send("T", b"y", queue_id=0)
    reading = asyncio.create_task(anext(messages))
    for _ in range(3):
        await consumer.max_offset("T")  # answered behind what was pulled before
    assert not reading.done()
    consumer.resume()
    async with asyncio.timeout(10):
        assert (await reading).body == b"y"


async def test_a_reader_tells_operators_of_itself(gateway, consumer, producer):
    await producer.send("T", b"x")
    await consumer.max_offset("T")  # so it is connected
    broker = Client("{}:{}".format(*gateway.listening["broker"]))
    ext = {"consumerGroup": "g", "clientId": consumer.client_id}
    said = await broker.request(Command(307, ext=ext))
    assert b'"PROP_CONSUME_TYPE":"CONSUME_ACTIVELY"' in bytes(said.body)
    assert (await broker.request(Command(309, ext=ext | {"msgId": "0" * 32}))).code == 3  # it has no listener
    await broker.close()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"offset": "0"}, "offset='0' is of type str; it is to be of type int"),
        ({"max_count": 0}, "max_count=0; it is to be 1 or more"),
        ({"wait_s": "1"}, "wait_s='1' is of type str; it is to be of type int or float"),
    ],
)
async def test_a_pull_that_makes_no_sense_is_told_before_anything_is_asked(changes, said):
    async with PullConsumer("127.0.0.1:1") as consumer:
        with pytest.raises((TypeError, ValueError), match=rf"^{said}"):
            await consumer.pull(**{"queue": "T", "offset": 0} | changes)
