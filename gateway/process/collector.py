"""Python's collector of cycles, kept from stopping the loop.

By itself it looks at all objects again whenever there are a quarter more of them: with 100,000 sessions that is a pause
of 200 ms, and it finds nothing, for what doors let go of is freed at once (a test says so). So here each object is
looked at once when it is new, a few milliseconds' worth at a time, and then left alone. The collector itself says
when so much is new: no timer asks, as that would hold up messages that come one by one.

Source: docs/decisions/0010-the-collector.md.
"""

from __future__ import annotations

import asyncio
import gc

NEW_ROUNDS = 3  # as many of the collector's smallest rounds, 700 new objects each; twice that takes 2 to 3 ms
NEVER = 1_000_000_000  # of rounds: no process lives for so many
YOUNG, MIDDLE = 0, 1  # what the collector calls generations


class Collector:
    """The collector of this process, while a gateway has the process to itself."""

    def __init__(self) -> None:
        self._thresholds = gc.get_threshold()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_due = False

    def start(self) -> None:
        """Look at all that is there for the last time, and begin to look at what comes; needs the running loop."""
        gc.collect()
        gc.freeze()
        gc.set_threshold(self._thresholds[YOUNG], NEVER, NEVER)
        self._loop = asyncio.get_running_loop()
        gc.callbacks.append(self._after_round)

    def _after_round(self, phase: str, info: dict[str, int]) -> None:
        """One of the collector's rounds begins or has ended, on any thread and between any two steps of a program."""
        is_young = phase == "stop" and info["generation"] == YOUNG
        if is_young and not self._is_due and gc.get_count()[MIDDLE] >= NEW_ROUNDS and self._loop is not None:
            self._is_due = True
            self._loop.call_soon_threadsafe(self._step)

    def _step(self) -> None:
        """Look at what came since the last time, and leave it alone from then on.

        A full round is not for this: it would have dicts without objects of cycles watched no more until the next entry
        that has some, from which on they are new, and all that they hold is looked at again.
        """
        self._is_due = False
        if self._loop is not None:
            gc.collect(MIDDLE)
            gc.freeze()

    def stop(self) -> None:
        """Give the collector back as it was; what was left alone stays so: the process ends."""
        if self._loop is not None:
            self._loop = None
            gc.callbacks.remove(self._after_round)
        gc.set_threshold(*self._thresholds)
