"""RocketMQ's official Java client against a gateway that is a process of its own."""

from __future__ import annotations

import asyncio

import pytest

from lmq import PullConsumer
from tests.support.gateway import GatewayProcess
from tests.support.official_java import needs_java, run_java

pytestmark = [pytest.mark.slow, needs_java]


def test_requests_get_their_replies(tmp_path):
    with GatewayProcess(tmp_path / "data") as gateway:
        namesrv = "{}:{}".format(*gateway.address("namesrv"))
        said = run_java(tmp_path, "JavaRequestReply.java", namesrv, "5")
        assert [line for line in said.splitlines() if line.startswith("got")] == [
            f"got re: question {number}" for number in range(5)
        ], said


ASKS_SOON = {
    "LMQ_ROCKETMQ__TRANSACTION_TIMEOUT_MS": "500",
    "LMQ_ROCKETMQ__TRANSACTION_CHECK_INTERVAL_MS": "1000",
    "LMQ_ROCKETMQ__TRANSACTION_CHECKS_MAX": "200",
}


def count_bodies(namesrv: str, topic: str) -> dict[bytes, int]:
    """Return how often each body is on a topic, after a while in which nothing more comes."""

    async def read() -> dict[bytes, int]:
        found: dict[bytes, int] = {}
        async with PullConsumer(namesrv) as consumer:
            for queue in await consumer.queues(topic):
                offset = 0
                while True:
                    result = await consumer.pull(topic, offset, queue_id=queue.queue_id)
                    for message in result.messages:
                        found[message.body] = found.get(message.body, 0) + 1
                    if not result.messages:
                        break
                    offset = result.next_offset
        return found

    return asyncio.run(read())


def test_transactions_of_a_producer_that_is_gone_outlive_a_kill_and_another_is_asked(tmp_path):
    with GatewayProcess(tmp_path / "data", env=ASKS_SOON) as gateway:
        namesrv = "{}:{}".format(*gateway.address("namesrv"))
        said = run_java(tmp_path, "JavaTransactions.java", namesrv, "40", "0", "true")
        assert "halted" in said, said
        assert count_bodies(namesrv, "Paid") == {}
        gateway.kill()
        gateway.start()
        namesrv = "{}:{}".format(*gateway.address("namesrv"))
        said = run_java(tmp_path, "JavaTransactions.java", namesrv, "0", "40", "false")
        assert "checked 40" in said, said
        assert count_bodies(namesrv, "Paid") == {b"body %d" % n: 1 for n in range(40)}
