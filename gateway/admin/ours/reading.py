"""Reads messages for the API without consuming them; what an engine has on its way is waited for a little."""

from __future__ import annotations

import asyncio
from functools import partial

from core.broker import Broker
from core.message import StoredBatch
from gateway.admin.asking import ask, read_on
from gateway.admin.management.failures import busy

TURNS_MAX = 500  # that something on its way is waited for: a second at WAIT_S
WAIT_S = 0.002  # chosen: a few turns of the loop


async def read_one(broker: Broker, queue_ref: int, offset: int) -> StoredBatch | None:
    """Return a batch with the message at an offset; None where there is none any more.

    Raises:
        HTTPException: 503: It does not come.
    """
    batch = StoredBatch(1)
    found = await read_on(broker, queue_ref, offset, batch, 1)
    return batch if found > 0 and batch.queue_offset[0] == offset else None


async def find_offset(broker: Broker, queue_ref: int, at_ms: int) -> int:
    """Return the first offset of a queue that was stored at a moment or later.

    Raises:
        HTTPException: 503: It cannot be told now.
    """
    told: list[int] = []
    broker.find_offset(queue_ref, at_ms, told.append)
    for _ in range(TURNS_MAX):
        if told:
            break
        await asyncio.sleep(WAIT_S)
    if not told or told[0] < 0:
        raise busy("the offset of that moment cannot be told now")
    return told[0]


async def find_queues(broker: Broker, record: bytes) -> list[tuple[bytes, int]]:
    """Return the light queues that a record names, with its offset in each."""
    found: list[tuple[bytes, int]] = await ask(partial(broker.engine.find_dispatch, record))
    return found
