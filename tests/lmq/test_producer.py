from __future__ import annotations

import asyncio
import math
import time
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio

from lmq import (
    BusyError,
    ConnectFailedError,
    ConnectionLostError,
    MessageRefusedError,
    NoPermissionError,
    NotFoundError,
    OutMessage,
    Producer,
    PullConsumer,
    ResponseError,
    SdkError,
    SendResult,
    mqtt_queue,
)
from lmq.remoting.commands import Command, answer, encode_json
from tests.support.remoting_server import RemotingServer

pytestmark = pytest.mark.asyncio


@pytest.fixture
def scripted(server):
    """A name server and broker in one whose answers to sends the test scripts."""
    broker = {"brokerAddrs": {"0": server.address}, "brokerName": "b", "cluster": "c"}
    queues = {"brokerName": "b", "readQueueNums": 2, "writeQueueNums": 2, "perm": 6}
    route = {"brokerDatas": [broker], "queueDatas": [queues]}
    server.on[105] = lambda request: answer(request, 0, body=encode_json(route))
    return server


def stored(request: Command, code: int = 0) -> Command:
    ext = {"msgId": "ID", "queueId": request.ext["e"], "queueOffset": "7", "transactionId": "K"}
    return answer(request, code, ext=ext)


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


async def test_of_many_messages_those_that_were_lost_are_sent_again(scripted):
    def once(request: Command) -> Command | None:
        if scripted.codes().count(310) > 5:
            return stored(request)
        if scripted.codes().count(310) == 5:
            scripted.drop_all()
        return None

    scripted.on[310] = once
    async with Producer(scripted.address) as producer:
        results = await producer.send_many([OutMessage("T", b"x") for _ in range(10)])
    assert [result.queue_offset for result in results] == [7] * 10


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


async def test_a_send_is_repeated_with_the_same_key_after_a_lost_connection(scripted):
    def once(request: Command) -> Command | None:
        if scripted.codes().count(310) > 1:
            return stored(request)
        scripted.drop_all()
        return None

    scripted.on[310] = once
    async with Producer(scripted.address) as producer:
        result = await producer.send("T", b"x")
    assert result.queue_offset == 7
    sends = [request for request in scripted.requests if request.code == 310]
    assert len({request.ext["i"] for request in sends}) == 1


async def test_a_busy_broker_is_asked_again_more_and_more_seldom_until_the_time_is_over(scripted):
    scripted.on[310] = lambda request: answer(request, 2, "busy")
    async with Producer(scripted.address, retries=0, timeout_s=0.5) as producer:
        with pytest.raises(BusyError) as caught:
            await producer.send("T", b"x")
        assert caught.value.code == 2
        assert 3 <= scripted.codes().count(310) <= 6
        (error,) = await producer.send_many([OutMessage("T", b"y")])
    assert isinstance(error, BusyError)


@pytest.mark.parametrize("many", [False, True])
async def test_a_broker_that_was_busy_stores_each_message_once(scripted, many):
    scripted.on[310] = lambda request: (
        answer(request, 2, "busy") if scripted.codes().count(310) < 4 else stored(request)
    )
    async with Producer(scripted.address, retries=0) as producer:
        if many:
            (result,) = await producer.send_many([OutMessage("T", b"x")])
        else:
            result = await producer.send("T", b"x")
    assert result.queue_offset == 7
    assert scripted.codes() == [105, 310, 310, 310, 310]


@pytest.mark.parametrize("many", [False, True])
async def test_where_a_topic_is_is_asked_again_after_a_broker_that_did_not_know_it(scripted, many):
    scripted.on[310] = lambda request: answer(request, 17, "none")
    async with Producer(scripted.address) as producer:
        for _ in range(2):
            if many:
                (outcome,) = await producer.send_many([OutMessage("T", b"x")])
                assert isinstance(outcome, NotFoundError)
            else:
                with pytest.raises(NotFoundError):
                    await producer.send("T", b"x")
    assert scripted.codes() == [105, 310, 105, 310]


async def test_without_retries_a_loss_is_told_at_once(scripted):
    scripted.on[310] = lambda request: scripted.drop_all()
    async with Producer(scripted.address, retries=0) as producer:
        with pytest.raises(ConnectionLostError):
            await producer.send("T", b"x")


@pytest.mark.parametrize("retries", [0, 1])
async def test_many_messages_wait_together_for_a_broker_that_is_away(scripted, retries):
    scripted.on[310] = stored
    async with Producer(scripted.address, retries=retries, timeout_s=0.5) as producer:
        await producer.send("T", b"x")
        await scripted.vanish()
        await asyncio.sleep(0.05)  # it is noticed
        async with asyncio.timeout(20):  # one after the other they would take 50 s
            results = await producer.send_many(OutMessage("T", b"%d" % i) for i in range(100))
        assert {type(result) for result in results} == {ConnectFailedError}
        await scripted.listen()
        async with asyncio.timeout(20):  # the pause between two tries may be longer than a send may take
            while isinstance((await producer.send_many([OutMessage("T", b"y")]))[0], ConnectFailedError):
                pass
        assert {type(result) for result in await producer.send_many([OutMessage("T", b"y")] * 10)} == {SendResult}


async def test_many_messages_go_on_in_their_order_when_the_broker_is_back(scripted):
    bodies: list[bytes] = []

    def store(request: Command) -> Command:
        bodies.append(bytes(request.body))
        return stored(request)

    def messages():
        for number in range(400):
            if number == 40:
                scripted.drop_all()
            yield OutMessage("T", b"%d" % number)

    scripted.on[310] = store
    async with Producer(scripted.address) as producer:
        results = await producer.send_many(messages(), in_flight_max=20)
    assert {type(result) for result in results} == {SendResult}
    assert bodies[-200:] == [b"%d" % number for number in range(200, 400)]


async def test_stored_but_not_flushed_is_a_result(scripted):
    scripted.on[310] = lambda request: stored(request, 10)
    async with Producer(scripted.address) as producer:
        assert not (await producer.send("T", b"x")).is_flushed


async def test_a_stopped_producer_sends_nothing(scripted):
    producer = Producer(scripted.address)
    await producer.stop()
    with pytest.raises(SdkError):
        await producer.send("T", b"x")


class Cluster:
    """A name server, and brokers `a` and `b` with two queues each."""

    def __init__(self, namesrv, a, b) -> None:
        self.namesrv, self.brokers = namesrv, {"a": a, "b": b}
        route = {
            "brokerDatas": [
                {"brokerAddrs": {"0": one.address}, "brokerName": name, "cluster": "c"}
                for name, one in self.brokers.items()
            ],
            "queueDatas": [
                {"brokerName": name, "readQueueNums": 2, "writeQueueNums": 2, "perm": 6} for name in self.brokers
            ],
        }
        namesrv.on[105] = lambda request: answer(request, 0, body=encode_json(route))
        for broker in self.brokers.values():
            broker.on[310] = stored

    def counts(self) -> tuple[int, ...]:
        """Return how many sends each broker got."""
        return tuple(broker.codes().count(310) for broker in self.brokers.values())


@pytest_asyncio.fixture
async def cluster(server):
    async with RemotingServer() as a, RemotingServer() as b:
        yield Cluster(server, a, b)


async def test_messages_go_to_all_brokers_of_the_route(cluster):
    async with Producer(cluster.namesrv.address) as producer:
        results = await producer.send_many([OutMessage("T", b"x") for _ in range(8)])
    assert cluster.counts() == (4, 4)
    assert {(result.broker_name, result.queue_id) for result in results} == {(b, i) for b in "ab" for i in (0, 1)}


@pytest.mark.parametrize("failing", [lambda request: None, lambda request: answer(request, 1, "broken")])
@pytest.mark.parametrize("many", [False, True])
async def test_a_send_that_failed_is_repeated_on_another_broker(cluster, failing, many):
    cluster.brokers["a"].on[310] = failing
    async with Producer(cluster.namesrv.address, timeout_s=0.2, retries=1) as producer:
        messages = [OutMessage("T", b"x", queue_id=1) for _ in range(4)]
        if many:
            results = await producer.send_many(messages)
        else:
            results = [await producer.send("T", b"x", queue_id=1) for _ in messages]
    assert {result.broker_name for result in results} == {"b"}
    assert cluster.counts()[0] <= 2


async def test_a_broker_that_did_not_answer_is_left_alone_for_a_while(cluster):
    cluster.brokers["a"].on[310] = lambda request: None
    async with Producer(cluster.namesrv.address, timeout_s=0.1, retries=1) as producer:
        for _ in range(10):
            assert (await producer.send("T", b"x")).broker_name == "b"
    assert cluster.counts() == (1, 10)


async def test_messages_of_one_sharding_key_stay_in_one_queue_and_in_order(cluster):
    async with Producer(cluster.namesrv.address) as producer:
        results = [await producer.send("T", b"%d" % i, sharding_key="order-1") for i in range(4)]
        others = [await producer.send("T", b"%d" % i, sharding_key=f"order-{i}") for i in range(20)]
    assert len({(result.broker_name, result.queue_id) for result in results}) == 1
    assert len({(result.broker_name, result.queue_id) for result in others}) == 4


async def test_a_selector_of_ones_own_chooses_the_queue(cluster):
    async with Producer(
        cluster.namesrv.address, selector=lambda queues, message: queues[len(message.body)]
    ) as producer:
        results = [await producer.send("T", bytes(size)) for size in range(4)]
    assert [(result.broker_name, result.queue_id) for result in results] == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]


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
