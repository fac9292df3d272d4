"""Our SDK against a gateway that is a process of its own, killed in the middle; and against an official broker."""

from __future__ import annotations

import asyncio
import os

import pytest

from lmq import OutMessage, Producer, PullConsumer, SdkError, SendResult
from tests.support.gateway import GatewayProcess

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]

OFFICIAL = os.environ.get("LMQ_OFFICIAL_NAMESRV", "")  # HOST:PORT of a name server of Apache RocketMQ
needs_official = pytest.mark.skipif(not OFFICIAL, reason="LMQ_OFFICIAL_NAMESRV names no official broker")


def namesrv_of(gateway: GatewayProcess) -> str:
    return "{}:{}".format(*gateway.address("namesrv"))


async def read_all(consumer: PullConsumer, queue: str, queue_id: int = 0) -> list[bytes]:
    bodies: list[bytes] = []
    offset = 0
    while True:
        result = await consumer.pull(queue, offset, 256, queue_id=queue_id)
        if not result.messages:
            return bodies
        assert [message.queue_offset for message in result.messages] == list(range(offset, result.next_offset))
        bodies += [message.body for message in result.messages]
        offset = result.next_offset


@pytest.mark.parametrize("flush", ["sync", "async"])
async def test_what_was_acknowledged_is_there_after_the_gateway_was_killed(tmp_path, flush):
    acknowledged: set[bytes] = set()

    async def send_until_killed(namesrv: str) -> None:
        async with Producer(namesrv, retries=0, timeout_s=2) as producer:
            for number in range(100_000):
                bodies = [b"%d-%d" % (number, i) for i in range(20)]
                results = await producer.send_many(
                    [OutMessage("T", body, queue_id=0, dispatch=["%LMQ%copy"]) for body in bodies]
                )
                acknowledged.update(
                    body for body, result in zip(bodies, results, strict=True) if isinstance(result, SendResult)
                )
                if any(isinstance(result, SdkError) for result in results):
                    return

    with GatewayProcess(tmp_path / "data", "--flush", flush) as gateway:
        sending = asyncio.create_task(send_until_killed(namesrv_of(gateway)))
        while len(acknowledged) < 200:
            await asyncio.sleep(0.01)
        gateway.kill()
        await sending
        gateway.start()
        async with PullConsumer(namesrv_of(gateway)) as consumer:
            kept = await read_all(consumer, "T")
            assert acknowledged <= set(kept)
            assert len(kept) == len(set(kept))
            assert await read_all(consumer, "%LMQ%copy") == kept


async def test_topics_and_committed_offsets_outlive_a_killed_gateway(tmp_path):
    with GatewayProcess(tmp_path / "data") as gateway:
        async with Producer(namesrv_of(gateway)) as producer, PullConsumer(namesrv_of(gateway), "g") as consumer:
            await producer.send("T", b"x", queue_id=3)
            await consumer.commit("T", 1, queue_id=3)
            await producer.send("T", b"y", queue_id=0)  # its answer comes after a sync
        gateway.restart()
        async with PullConsumer(namesrv_of(gateway), "g") as consumer:
            assert await consumer.committed("T", queue_id=3) == 1
            assert await read_all(consumer, "T", 3) == [b"x"]


async def test_delayed_messages_come_though_the_gateway_is_killed_again_and_again(tmp_path):
    sent = [b"%d" % number for number in range(300)]
    with GatewayProcess(tmp_path / "data") as gateway:
        for part in (sent[:100], sent[100:200], sent[200:]):
            async with Producer(namesrv_of(gateway)) as producer:
                await producer.send_many(
                    [OutMessage("T", body, queue_id=0, properties={"DELAY": "1"}) for body in part]
                )
            gateway.restart()
        came: list[bytes] = []
        async with PullConsumer(namesrv_of(gateway)) as consumer:
            while not set(sent) <= set(came):
                came += [message.body for message in (await consumer.pull("T", len(came), wait_s=5)).messages]
        assert list(dict.fromkeys(came)) == sent


@needs_official
async def test_the_sdk_works_with_an_official_broker():
    async with Producer(OFFICIAL) as producer, PullConsumer(OFFICIAL, "sdk-try") as consumer:
        await producer.send("SdkTry", b"make the topic", queue_id=0)
        start = await consumer.max_offset("SdkTry")
        light = await consumer.max_offset("%LMQ%sdk-try")
        results = await producer.send_many(
            [OutMessage("SdkTry", b"m%d" % i, tags="t", queue_id=0, dispatch=["%LMQ%sdk-try"]) for i in range(20)]
        )
        assert sorted(result.queue_offset for result in results) == list(range(start, start + 20))
        for queue, first in (("SdkTry", start), ("%LMQ%sdk-try", light)):
            found = []
            while len(found) < 20:
                found += (await consumer.pull(queue, first + len(found), wait_s=5, tags="*")).messages
            assert {message.body for message in found} == {b"m%d" % i for i in range(20)}  # it stores them in any order
            assert [message.queue_offset for message in found] == list(range(first, first + 20))
        await consumer.commit("SdkTry", start + 20)
        assert await consumer.committed("SdkTry") == start + 20
        with pytest.raises(SdkError):
            await producer.send("bad name", b"x")
