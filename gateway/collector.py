"""Python's collector of cycles, kept from stopping the loop.

By itself it looks at all objects again whenever there are a quarter more of them: with 100,000 sessions that is a pause
of 200 ms, and it finds nothing, for what doors let go of is freed at once (a test says so). So here each object is
looked at once when it is new, a few milliseconds' worth at a time, and then left alone.

Source: docs/decisions/0010-the-collector.md.
"""

from __future__ import annotations

import asyncio
import gc

INTERVAL_S = 0.1
NEW_MIDDLE_COUNT = 3  # as many of the collector's middle rounds, about 7,000 new objects each
NEVER = 1_000_000_000


class Collector:
    """The collector of this process, while a gateway has the process to itself."""

    def __init__(self) -> None:
        self._thresholds = gc.get_threshold()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look at all that is there for the last time, and begin to look at what comes; needs the running loop."""
        gc.collect()
        gc.freeze()
        young, middle, _ = self._thresholds
        gc.set_threshold(young, middle, NEVER)
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL_S)
            self.step()

    def step(self) -> None:
        """Look at what came since the last time, once there is enough of it, and leave it alone from then on."""
        if gc.get_count()[2] >= NEW_MIDDLE_COUNT:
            gc.collect()
            gc.freeze()

    def stop(self) -> None:
        """Give the collector back as it was; what was left alone stays so: the process ends."""
        if self._task is not None:
            self._task.cancel()
        gc.set_threshold(*self._thresholds)
