"""Long work on the loop, in steps: everybody else gets a turn after each millisecond or so."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from itertools import islice
from time import perf_counter, thread_time
from typing import Any, TypeVar

STEP_S = 0.001  # chosen: a fifth of the 5 ms that no turn of the loop is to pass
LOOKS = 16  # things between two looks at the clock
PATIENT_S = 0.02  # between two steps of what nobody waits for, while others are under way
CHUNK = 64  # things of which each costs some microseconds
Thing = TypeVar("Thing")


class Steps:
    """Says when a step was long enough, and what all steps cost."""

    def __init__(self) -> None:
        self._until = perf_counter() + STEP_S
        self._began_s = thread_time()
        self._before_s = 0.0  # of the steps before this one

    @property
    def cost_s(self) -> float:
        """The processor time of all steps so far, without other work between them."""
        return self._before_s + thread_time() - self._began_s

    async def rest(self) -> None:
        """Let the loop have its turn where this step was long enough."""
        if perf_counter() >= self._until:
            self._before_s = self.cost_s
            await self._pause()
            self._until = perf_counter() + STEP_S
            self._began_s = thread_time()

    async def _pause(self) -> None:
        await asyncio.sleep(0)


class PatientSteps(Steps):
    """Steps of work that nobody waits for: it has a twentieth of the time while others are under way.

    Args:
        is_busy: Says whether others are.
    """

    def __init__(self, is_busy: Callable[[], bool]) -> None:
        super().__init__()
        self._is_busy = is_busy

    async def _pause(self) -> None:
        await asyncio.sleep(PATIENT_S if self._is_busy() else 0)


async def let_go(things: list[Any]) -> None:
    """Forget what a list holds, some at a time: to free a hundred thousand objects in one go takes some 20 ms."""
    steps = Steps()
    while things:
        del things[-CHUNK:]
        await steps.rest()


async def do_all(work: Iterable[object]) -> None:
    """Do all steps of work that is begun, also where nobody waits for it any more: the last ones at once then."""
    steps = Steps()
    left = iter(work)
    try:
        for _ in left:
            await steps.rest()
    finally:
        deque(left, maxlen=0)


async def walk_chunks(things: Iterable[Thing]) -> AsyncIterator[list[Thing]]:
    """Give the things of an iterator that works when it is asked, some at a time, in steps."""
    steps = Steps()
    each = iter(things)
    while chunk := list(islice(each, CHUNK)):
        yield chunk
        await steps.rest()


async def walk(things: Iterable[Thing | None], steps: Steps | None = None) -> AsyncIterator[Thing]:
    """Give the things of an iterator that works when it is asked, in steps.

    None stands for a look that found none, which may have passed over a thousand things.
    """
    steps = steps or Steps()
    for number, thing in enumerate(things):
        if thing is not None:
            yield thing
        if thing is None or number % LOOKS == 0:
            await steps.rest()
