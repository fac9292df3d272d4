"""A killed gateway loses no transaction: what was stored comes once it is committed, and never where it was not."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random

import pytest

from lmq import PullConsumer, SdkError, TransactionProducer, TransactionState
from tests.support.gateway import GatewayProcess

KILLS = 2
WORKERS = 16
WAIT_S = 30
COMMIT, ROLLBACK, UNKNOWN = TransactionState.COMMIT, TransactionState.ROLLBACK, TransactionState.UNKNOWN
ASKS_SOON = {
    "LMQ_ROCKETMQ__TRANSACTION_TIMEOUT_MS": "200",
    "LMQ_ROCKETMQ__TRANSACTION_CHECK_INTERVAL_MS": "300",
    "LMQ_ROCKETMQ__TRANSACTION_CHECKS_MAX": "1000",
}


class Payments:
    """Numbered transactions: by number mod 3 they are committed, rolled back, or found out to be committed."""

    def __init__(self) -> None:
        self.numbers = itertools.count()
        self.stored: set[int] = set()  # half messages that the gateway acknowledged
        self.asked = 0

    async def check(self, message):
        self.asked += 1
        return ROLLBACK if int(message.body) % 3 == 1 else COMMIT

    async def work(self, producer) -> None:
        """Send one transaction after another until the gateway is gone."""
        with contextlib.suppress(SdkError):
            while True:
                number = next(self.numbers)

                async def execute(_sent, number=number):
                    self.stored.add(number)
                    return (COMMIT, ROLLBACK, UNKNOWN)[number % 3]

                result = await producer.send_in_transaction("T", b"%d" % number, execute, queue_id=0)
                if result.error is not None:
                    return

    async def run_and_kill(self, gateway, after_s: float) -> None:
        namesrv = "{}:{}".format(*gateway.address("namesrv"))
        async with TransactionProducer(namesrv, "pay", check=self.check, retries=0, timeout_s=0.5) as producer:
            workers = [asyncio.create_task(self.work(producer)) for _ in range(WORKERS)]
            await asyncio.sleep(after_s)  # the moment of the kill, by the case
            gateway.kill()
            await asyncio.gather(*workers)

    async def finish(self, gateway) -> dict[int, int]:
        """Answer for all that is open; return how often each number came."""
        namesrv = "{}:{}".format(*gateway.address("namesrv"))
        wanted = {number for number in self.stored if number % 3 != 1}
        found: dict[int, int] = {}
        offset = 0
        async with (
            asyncio.timeout(WAIT_S),
            TransactionProducer(namesrv, "pay", check=self.check),
            PullConsumer(namesrv) as consumer,
        ):
            while not wanted <= found.keys():
                result = await consumer.pull("T", offset, wait_s=1)
                offset = result.next_offset
                for message in result.messages:
                    found[int(message.body)] = found.get(int(message.body), 0) + 1
        return found


@pytest.mark.slow
def test_no_transaction_is_lost_or_made_up_by_kills(tmp_path):
    chance = random.Random(7)
    payments = Payments()
    with GatewayProcess(tmp_path / "data", env=ASKS_SOON) as gateway:
        for _ in range(KILLS):
            asyncio.run(payments.run_and_kill(gateway, chance.uniform(0.2, 0.6)))
            gateway.start()
        found = asyncio.run(payments.finish(gateway))
    assert len(payments.stored) > 3 * KILLS
    assert payments.asked > 0
    assert not [number for number in found if number % 3 == 1]
    assert sum(count - 1 for count in found.values()) <= KILLS  # a kill between a commit's two records
