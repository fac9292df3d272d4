"""What tests of the SDK's push consumers listen with, fill and look at."""

from __future__ import annotations

import asyncio

from lmq import (
    MessageQueue,
    OutMessage,
)
from lmq.queue_access import QueueAccess
from lmq.subscription import make_subscription


class Reader:
    """Looks at the group's offsets and at queues, without being a member of the group."""

    def __init__(self, routes) -> None:
        self._access = QueueAccess(routes, "g", 3)

    async def committed(self, topic, queue_id=0):
        return await self._access.committed(MessageQueue(topic, "lmq", queue_id))

    async def pull(self, topic):
        return await self._access.pull(MessageQueue(topic, "lmq", 0), 0, 32, 5, make_subscription(topic))


class Heard:
    """A listener that keeps what it was given; `on(message)` says what becomes of it."""

    def __init__(self, on=lambda message: None) -> None:
        self.on = on
        self.messages = []
        self.batches = []
        self._grown = asyncio.Event()

    async def __call__(self, messages, context):
        self.batches.append(len(messages))
        self.messages += messages
        self._grown.set()
        return self.on(messages[0])

    @property
    def bodies(self):
        return [message.body for message in self.messages]

    async def until(self, count):
        async with asyncio.timeout(10):
            while len(self.messages) < count:
                self._grown.clear()
                await self._grown.wait()
        return self


async def ask_behind(consumer) -> None:
    """Have the broker answer what is asked behind the pulls that a consumer sent: what they brought is there then."""
    for _ in range(3):
        await consumer._access.committed(MessageQueue("T", "lmq", 0))


async def fill(producer, count, topic="T"):
    await producer.send_many([OutMessage(topic, b"%d" % i, queue_id=i % 4) for i in range(count)])


def numbers(*heard):
    return sorted(int(body) for one in heard for body in one.bodies)
