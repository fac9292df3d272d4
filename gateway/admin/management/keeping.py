"""Waits for what a request changed; not for room on the disk."""

from __future__ import annotations

import asyncio

from core.broker import Broker
from core.errors import DiskFullError, LmqError
from gateway.admin.management.failures import busy

LOOK_S = 0.5  # between two looks whether it is room that is waited for; chosen: somebody waits for the answer


async def keep(broker: Broker) -> None:
    """Return when all changes of definitions so far outlive a kill.

    Raises:
        LmqError: The disk refuses them.
        HTTPException: They are made, and wait until the disk has room for them.
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
    while not done.done():
        try:
            broker.check_commits()
        except DiskFullError as error:
            raise busy(f"it is done, and kept when the disk has room again: {error}") from error
        await asyncio.wait([done], timeout=LOOK_S)
    done.result()
