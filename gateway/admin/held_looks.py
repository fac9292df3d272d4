"""Keeps known what lies in very many AMQP queues, so that the first question for it finds nearly all of it told.

To ask a queue for its first and last message costs some microseconds, a million of them seconds. Each is asked once
after the start, and again when it was given messages; what consumers take from is left to the questions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from time import monotonic

from gateway.admin.rosters.held_figures import HeldFigures
from gateway.admin.steps import Steps
from gateway.amqp.queue_figures import BLOCK
from gateway.amqp.queues import VirtualHost

MANY = 10_000  # queues of a virtual host: fewer are asked in a tenth of a second
INTERVAL_S = 10.0  # between two looks; chosen: what is kept for readers changes slowly
SHARE = 20  # times what a look cost the processor, at least, until the next one: looks take 5 % of it at most
PAUSE_S = 0.004  # between two steps of a millisecond: a fifth of the time while a look is under way


class _SlowSteps(Steps):
    async def _pause(self) -> None:
        await asyncio.sleep(PAUSE_S)


class HeldLooks:
    """Looks every few seconds at the queues that changed.

    Args:
        vhosts: Says which virtual hosts there are.
    """

    def __init__(self, vhosts: Callable[[], Iterable[VirtualHost]]) -> None:
        self._vhosts = vhosts
        self._next_at_s = 0.0
        self._is_looking = False

    def is_due(self) -> bool:
        """Return whether it is time for another look."""
        return not self._is_looking and monotonic() >= self._next_at_s

    async def look(self) -> None:
        """Look at all queues of virtual hosts that have many, in steps."""
        if self._is_looking:
            return
        self._is_looking = True
        began_s, steps = monotonic(), _SlowSteps()
        try:
            for vhost in self._vhosts():
                if len(vhost) < MANY:
                    await steps.rest()  # there may be very many of them
                    continue
                for _ in vhost.rows.take_in():
                    await steps.rest()
                held, count = HeldFigures(vhost), len(vhost.rows)
                for first in range(0, count, BLOCK):
                    for _ in held.take_in(first, min(first + BLOCK, count)):
                        await steps.rest()
                    await steps.rest()
        finally:
            self._is_looking = False
            self._next_at_s = max(began_s + INTERVAL_S, monotonic() + SHARE * steps.cost_s)
