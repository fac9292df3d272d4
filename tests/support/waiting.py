"""Waiting for what happens, in tests of coroutines."""

from __future__ import annotations

import asyncio
import contextlib
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


@contextlib.asynccontextmanager
async def counted_turns():
    """Count the turns that others have meanwhile; gives what returns how many."""
    turns = 0

    async def count():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(count())
    try:
        yield lambda: turns
    finally:
        other.cancel()
