"""Waiting for what happens, in tests of coroutines."""

from __future__ import annotations

import asyncio

WAIT_S = 20  # on a busy machine, too


async def until(condition) -> None:
    """Wait until `condition()` holds."""
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.sleep(0.001)
