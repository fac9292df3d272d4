"""Waiting for what happens, in tests of coroutines."""

from __future__ import annotations

import asyncio
import functools

WAIT_S = 20  # on a busy machine, too


async def until(condition) -> None:
    """Wait until `condition()` holds."""
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.sleep(0.001)


def limited(test, limit_s: float):
    """Return a test of a coroutine that fails when it takes longer: pytest-timeout's exception ends in its loop."""

    @functools.wraps(test)
    async def run(*args, **kwargs):
        async with asyncio.timeout(limit_s):
            await test(*args, **kwargs)

    return run
