"""How the admin API waits for what an engine tells later."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable
from functools import partial
from typing import Any

from fastapi import HTTPException

from core.broker import Broker
from core.message import AWAY, StoredBatch

READ_BYTES_MAX = 1 << 20  # of records in one go, so that large bodies do not hold the loop
AGAIN_MAX = 500  # tries, AGAIN_S apart: 5 s
AGAIN_S = 0.01  # after which a read is tried again whose messages were on their way; chosen: a turn of another machine


def begin_asking(begin: Callable[[Callable[[Any], None]], None]) -> asyncio.Future[Any]:
    """Return what an engine is going to tell, asked at once."""
    found: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    begin(lambda told: None if found.done() else found.set_result(told))
    return found


async def ask(begin: Callable[[Callable[[Any], None]], None]) -> Any:  # noqa: ANN401 - what the engine tells
    """Return what an engine tells at once or later."""
    return await begin_asking(begin)


async def open_queue(broker: Broker, queue_ref: int) -> None:
    """Wait until it is known where a queue begins and ends.

    Raises:
        HTTPException: 503: It cannot be told now.
    """
    failure = await ask(partial(broker.open_queue, queue_ref))
    if failure is not None:
        raise HTTPException(503, {"error": "unavailable", "reason": f"where the queue ends cannot be told: {failure}"})


async def read_on(
    broker: Broker, queue_ref: int, offset: int, into: StoredBatch, bytes_max: int = READ_BYTES_MAX
) -> int:
    """Fill a batch from an offset of a queue on, and wait for messages that are on their way; return how many it has.

    Raises:
        HTTPException: 503: They did not come.
    """
    return await _read(lambda: broker.read(queue_ref, offset, into, into.capacity, bytes_max))


async def read_chosen(broker: Broker, queue_ref: int, offsets: array[int], into: StoredBatch) -> int:
    """Fill a batch with messages of a queue, waiting as `read_on`; return how many of `offsets` are dealt with.

    Raises:
        HTTPException: 503: They did not come.
    """
    return await _read(lambda: broker.read_offsets(queue_ref, offsets, min(len(offsets), into.capacity), into))


async def _read(read: Callable[[], int]) -> int:
    for _ in range(AGAIN_MAX):
        count = read()
        if count != AWAY:
            return count
        await asyncio.sleep(AGAIN_S)
    raise HTTPException(503, {"error": "unavailable", "reason": "the messages did not come in time"})
