"""The threads that slow checks run on, beside the loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol

LOGGER = logging.getLogger(__name__)

THREADS_MAX = 2  # a check of 40 ms lets go of the interpreter's lock: 50 checks a second
NICENESS = 10  # the loop's thread has the core first


class SlowWork(Protocol):
    """Runs what is slow, and waits."""

    def run(self, work: Callable[[], Any], then: Callable[[bool | None], None]) -> None:
        """Run `work` beside the loop, then call `then` on the loop: with its answer, or None where it failed."""

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> None:
        """Call back on the loop after `delay_ms`."""


class CheckThreads:
    """THREADS_MAX threads, started when they are first needed. The caller bounds what it has them do."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pool = ThreadPoolExecutor(THREADS_MAX, "lmq-passwords", initializer=give_way)
        self._is_stopped = False

    def run(self, work: Callable[[], bool], then: Callable[[bool | None], None]) -> None:
        """Run `work` on a thread, then call `then` on the loop: with its answer, or None where it failed."""
        if not self._is_stopped:
            self._pool.submit(work).add_done_callback(partial(self._report, then))

    def _report(self, then: Callable[[bool | None], None], done: Future[bool]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._tell, then, done)

    def _tell(self, then: Callable[[bool | None], None], done: Future[bool]) -> None:
        if self._is_stopped:
            return
        error = done.exception()
        if error is not None:
            LOGGER.error("a password could not be checked", exc_info=error)
        then(None if error is not None else done.result())

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> None:
        """Call back on the loop after `delay_ms`."""
        self._loop.call_later(delay_ms / 1000, callback)

    def stop(self) -> None:
        """Let the checks under way end, start no more, and tell nobody."""
        self._is_stopped = True
        self._pool.shutdown(wait=False, cancel_futures=True)


def give_way() -> None:
    """Let the other threads of the process have the core before this one."""
    with contextlib.suppress(OSError):  # not allowed to: then the threads are as the others
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
