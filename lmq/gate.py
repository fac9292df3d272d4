"""Lets work through, or holds it up, as the program says."""

from __future__ import annotations

import asyncio

from lmq.queues import MessageQueue


class Gate:
    """Open at first. What waits at it goes on when it is opened again."""

    def __init__(self) -> None:
        self._is_paused = False
        self._queues: set[MessageQueue] = set()
        self._changed = asyncio.Event()

    @property
    def is_paused(self) -> bool:
        """Whether all is held up."""
        return self._is_paused

    def pause(self, *queues: MessageQueue) -> None:
        """Hold up these queues, or all where none is named."""
        if queues:
            self._queues.update(queues)
        else:
            self._is_paused = True
        self._changed.set()

    def resume(self, *queues: MessageQueue) -> None:
        """Let these queues go on, or all where none is named."""
        if queues:
            self._queues.difference_update(queues)
        else:
            self._is_paused = False
            self._queues.clear()
        self._changed.set()

    def holds(self, queue: MessageQueue) -> bool:
        """Whether a queue is held up."""
        return self._is_paused or queue in self._queues

    async def wait_open(self) -> None:
        """Wait until not all is held up."""
        while self._is_paused:
            await self.wait_changed()

    async def wait_changed(self) -> None:
        """Wait until something is held up or let go that was not before."""
        self._changed.clear()
        await self._changed.wait()
