"""Waits for what a request changed."""

from __future__ import annotations

import asyncio

from core.broker import Broker
from core.errors import LmqError


async def keep(broker: Broker) -> None:
    """Return when all changes of definitions so far outlive a kill.

    Raises:
        LmqError: The disk refuses them.
    """
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def take(error: LmqError | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    broker.when_kept(take)
    await done
