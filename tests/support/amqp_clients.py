"""What tests with real AMQP clients share."""

from __future__ import annotations

import asyncio
import functools

WAIT_S = 10


def url(gateway):
    return "amqp://guest:guest@{}:{}/".format(*gateway.listening["amqp"])


async def take(queue, count):
    """Return the bodies of `count` messages, each acknowledged."""
    found = []
    async with asyncio.timeout(WAIT_S), queue.iterator() as messages:
        async for message in messages:
            async with message.process():
                found.append(message.body)
            if len(found) == count:
                return found
    return found


async def in_thread(work, *args):
    return await asyncio.get_running_loop().run_in_executor(None, functools.partial(work, *args))
