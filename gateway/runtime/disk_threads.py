"""The two threads beside the loop, for what blocks: one syncs, one makes room ready ahead of the writer.

They are two because a sync that clients wait for must not stand behind a page that is needed later.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from core.errors import DiskFullError, FlushFailedError, LmqError
from core.room import Room

LOGGER = logging.getLogger(__name__)

PREPARE_INTERVAL_S = 0.004  # while much is written; a step makes a few MiB ready
PREPARE_IDLE_S = 1.0  # while little is: each step takes the interpreter's lock from a lone message, for 0.2 ms
PREPARE_BUSY_S = 0.25  # at most, while room is given back, a little with each step
ROOM_INTERVAL_S = 0.1  # between two looks at the free room, at least, while little is written
ROOM_LOOK_SHIFT = 4  # and looked at again when so much was written: this part of the least that is to stay free
PREPARE_STEP_BYTES = 2 << 20  # so much is to be written from one step to the next
_NEVER = 1 << 62  # more bytes than there are


class RoomWatch:
    """Looks at the free room of the disk, once a second or more, and tells the loop what that is to publishers.

    Args:
        room: What is compared with; it is changed by `on_change` only, on the loop's thread.
        measure: Returns the free bytes.
        loop: The loop.
        on_change: Told the free bytes and whether the log's next segment finds no room, when publishers are to be held
            back or may go on.
        lacks_room: Returns whether that segment is to be made now, and finds no room.
    """

    def __init__(
        self,
        room: Room,
        measure: Callable[[], int],
        loop: asyncio.AbstractEventLoop,
        on_change: Callable[[int, bool], None],
        lacks_room: Callable[[], bool] = bool,
    ) -> None:
        self._room = room
        self._measure = measure
        self._loop = loop
        self._on_change = on_change
        self._lacks_room = lacks_room
        self._next_look_at_s = 0.0
        self._looked_until = 0  # of the log
        self._was_full = False
        self._is_blind = False

    @property
    def look_bytes(self) -> int:
        """Bytes of the log after which it is time to look again."""
        return -(-self._room.free_bytes_min >> ROOM_LOOK_SHIFT) or _NEVER

    def look_first(self) -> None:
        """Look before anybody may publish; on the loop's thread."""
        seen = self._see()
        if seen is not None:
            self._on_change(*seen)

    def look_beside(self) -> None:
        """Look where the writer has come to a point at which the prepare thread is to, which may be late; on the loop.

        That is to hold publishers back. Whether they may go on is for the thread to see.
        """
        seen = None if self._room.is_disk_low else self._see()
        if seen is not None and not self._room.is_enough(seen[0], is_full=seen[1]):
            self._loop.call_soon(self._on_change, *seen)

    def look(self, written_until: int, *, is_full: bool) -> None:
        """Look again, if it is time; on the prepare thread.

        Args:
            written_until: The end of the log.
            is_full: The disk has just refused the log's next segment.
        """
        now_s = time.monotonic()
        written = written_until - self._looked_until
        is_much = written >= self.look_bytes
        if now_s < self._next_look_at_s and is_full == self._was_full and not is_much:
            return
        self._next_look_at_s = now_s + ROOM_INTERVAL_S
        self._looked_until = written_until
        self._was_full = is_full
        seen = self._see()
        if seen is None:
            return
        free_bytes, lacks_room = seen
        is_full = is_full or lacks_room
        self._room.free_bytes = free_bytes
        if self._room.is_enough(free_bytes, is_full=is_full) == self._room.is_disk_low:
            with contextlib.suppress(RuntimeError):  # the loop was closed: there are no publishers any more
                self._loop.call_soon_threadsafe(self._on_change, free_bytes, is_full)

    def _see(self) -> tuple[int, bool] | None:
        """Return the free bytes, and whether the log's next segment finds no room; None where that cannot be seen."""
        try:
            seen = self._measure(), self._lacks_room()
        except OSError as error:
            if not self._is_blind:
                LOGGER.warning("cannot see how much room the disk has: %s", error)
            self._is_blind = True
            return None
        self._is_blind = False
        return seen


def find_interval_s(last_s: float, written_bytes: int, *, is_busy: bool = False) -> float:
    """Return how many seconds to wait before the next step.

    Args:
        last_s: How many went by since the one before; the wait is at most twice as long.
        written_bytes: So much of the log was written meanwhile.
        is_busy: Steps have more to do than to follow the writer.
    """
    last_s = max(last_s, PREPARE_INTERVAL_S)
    wanted_s = last_s * PREPARE_STEP_BYTES / max(written_bytes, 1)
    return min(max(wanted_s, PREPARE_INTERVAL_S), 2 * last_s, PREPARE_BUSY_S if is_busy else PREPARE_IDLE_S)


class Preparable(Protocol):
    """What `PrepareThread` works on: the store."""

    @property
    def written_until(self) -> int:
        """The end of the log."""

    def prepare(self, again_bytes: int) -> object:
        """Do one step of making room ahead of the writer; DiskFullError where there is none.

        Another is wanted after so many bytes of the log, at the latest.
        """


class PrepareThread:
    """Makes room ready ahead of the writer, in steps, often while messages are written and seldom while none are.

    While `is_busy`, they are not that seldom. The writer wakes it where that is too seldom. `on_failed` is told on
    the loop's thread when the disk refuses what must be written; then the thread ends. `watch` looks after each step.
    """

    def __init__(
        self,
        store: Preparable,
        loop: asyncio.AbstractEventLoop,
        on_failed: Callable[[LmqError], None],
        watch: RoomWatch,
        is_busy: Callable[[], bool] = bool,
    ) -> None:
        self._store = store
        self._loop = loop
        self._on_failed = on_failed
        self._watch = watch
        self._is_busy = is_busy
        self._is_full = False
        self._is_stopping = False
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lmq-prepare", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Let the next step begin, if it was not to anyway; on the loop's thread, which looks at the room meanwhile."""
        self._woken.set()
        self._watch.look_beside()

    def stop(self, timeout_s: float) -> bool:
        """Let the step under way end; return whether the thread ended within `timeout_s`."""
        self._is_stopping = True
        self._woken.set()
        return join(self._thread, timeout_s)

    def _run(self) -> None:
        interval_s = PREPARE_INTERVAL_S
        written_until = self._store.written_until
        while True:
            began_s = time.monotonic()
            self._woken.wait(interval_s)
            self._woken.clear()
            if self._is_stopping:
                return
            try:
                self._prepare()
                self._watch.look(self._store.written_until, is_full=self._is_full)
            except Exception as error:
                LOGGER.exception("the disk refused a write behind the log")
                self._report(as_core_error(error))
                return
            seen_until, written_until = written_until, self._store.written_until
            written = written_until - seen_until
            interval_s = find_interval_s(time.monotonic() - began_s, written, is_busy=self._is_busy())

    def _prepare(self) -> None:
        try:
            self._store.prepare(self._watch.look_bytes)
        except DiskFullError as error:  # the writer meets it when it needs the room
            if not self._is_full:
                LOGGER.warning("no room ahead of the writer: %s", error)
            self._is_full = True
        else:
            self._is_full = False

    def _report(self, error: LmqError) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._on_failed, error)


def join(thread: threading.Thread, timeout_s: float) -> bool:
    """Wait for a thread that was perhaps never started; return whether it is over."""
    if thread.ident is not None:
        thread.join(timeout_s)
    return not thread.is_alive()


def as_core_error(error: Exception) -> LmqError:
    """Return the error as one of the core's."""
    return error if isinstance(error, LmqError) else FlushFailedError(str(error))
