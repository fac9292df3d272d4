from __future__ import annotations

import pytest
import pytest_asyncio

from lmq import OutMessage, Producer
from lmq.remoting.commands import Command, answer, encode_json
from tests.support.remoting_server import RemotingServer

pytestmark = pytest.mark.asyncio


def stored(request: Command) -> Command:
    ext = {"msgId": "ID", "queueId": request.ext["e"], "queueOffset": "7", "transactionId": "K"}
    return answer(request, 0, ext=ext)


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
