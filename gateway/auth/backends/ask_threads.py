"""Threads for back ends whose libraries wait: each has threads of its own, so that a hanging one holds up no other."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from gateway.auth.check_threads import give_way

Answer = TypeVar("Answer")


class AskThreads:
    """Threads that are started as they are needed. They do not keep the process alive, however long they wait.

    Args:
        threads_max: How many.
        name: Of the threads.
        on_end: Called on each thread at its end, to let go of what is its own.
    """

    def __init__(self, threads_max: int, name: str, on_end: Callable[[], None]) -> None:
        self._threads_max = threads_max
        self._name = name
        self._on_end = on_end
        self._work: queue.SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any]] | None] = queue.SimpleQueue()
        self._count = 0
        self._asked = 0  # what waits or is under way
        self._is_closed = False

    async def run(self, work: Callable[[], Answer]) -> Answer:
        """Return what `work` returns on a thread, or raise what it raises; cancelled, nobody waits for it any more."""
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._asked += 1
        if self._asked > self._count and self._count < self._threads_max:
            self._count += 1
            threading.Thread(target=self._serve, name=f"{self._name}-{self._count}", daemon=True).start()
        self._work.put((work, future))
        return await future

    def _serve(self) -> None:
        give_way()
        while (item := self._work.get()) is not None:
            work, future = item
            answer, error = None, None
            if not future.cancelled():
                try:
                    answer = work()
                except Exception as raised:  # noqa: BLE001  # it is raised where it is waited for
                    error = raised
            with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits any more
                future.get_loop().call_soon_threadsafe(self._tell, future, answer, error)
            item = future = work = None  # type: ignore[assignment]  # what was asked is not kept while nothing is
        self._on_end()

    def _tell(self, future: asyncio.Future[Any], answer: object, error: Exception | None) -> None:
        self._asked -= 1
        if future.cancelled():
            return
        if error is None:
            future.set_result(answer)
        else:
            future.set_exception(error)

    def close(self) -> None:
        """Let the threads end when they have done what was asked."""
        if not self._is_closed:
            self._is_closed = True
            for _ in range(self._count):
                self._work.put(None)
