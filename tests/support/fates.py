"""What the admin API tells of the ways of a message, in tests of coroutines."""

from __future__ import annotations

import asyncio

from tests.support.waiting import WAIT_S


async def fate_of(client, number):
    """Return what is told of a message that one light queue has and one reader is to get."""
    told = (await client.get(f"/api/lmq/messages/{number}")).json()
    (queue,) = told["queues"]
    (reader,) = queue["readers"]
    return reader


async def fate_when_done(client, number):
    """Return the same once the reader is done with it: an acknowledgement or a letter may be on its way."""
    async with asyncio.timeout(WAIT_S):
        while (fate := await fate_of(client, number))["stage"] != "done":
            await asyncio.sleep(0.001)
    return fate
