"""The thread that syncs, beside the loop."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from array import array
from collections.abc import Callable
from functools import partial
from typing import Protocol

from core.errors import DiskFullError, FlushFailedError, LmqError
from gateway.runtime import sync_calls
from gateway.runtime.disk_threads import as_core_error, join
from gateway.runtime.sync_calls import (
    BESIDE,
    COUNT,
    COUNT_BESIDE,
    ERROR,
    FILES,
    FILES_MAX,
    HAS_STEPS,
    STOPS,
    TOOK_NS,
    WORK_SLOTS,
)

LOGGER = logging.getLogger(__name__)

GIVE_WAY_S = 50e-6  # what a thread that waits takes to wake
ROOM_WAIT_S = 0.2  # between two tries of what the disk has no room for
TELL_NS = 1_000_000  # of one turn of the loop, for those that waited for a sync: a fifth of what a turn may take
COMPANY_PERCENT = 12  # of the time that the last sync took: so long the next one waits for others at most
COMPANY_NS_MAX = 25_000_000  # an eighth of a slow disk's; the last sync may have waited an hour for room
LOOKS_EACH_TURN_NS = 500_000  # where less is left of that: the loop's timers know milliseconds only
TIMER_S_MIN = 0.001  # a timer of less may be rounded to none
TOLD_AT_ONCE = 16  # of them, some 0.2 ms: each is mostly a write to a socket


class Flush(Protocol):
    """What is to be done off the loop: files to be synced, then steps."""

    @property
    def fds(self) -> list[int]:
        """The files, in their order."""

    @property
    def fds_beside(self) -> list[int]:
        """Files to be synced at any moment meanwhile."""

    @property
    def has_steps(self) -> bool:
        """Whether there is more."""

    def run_steps(self, pause: Callable[[], None] | None = None) -> None:
        """Do the rest, with pauses in what is long; an error of the core where the disk refused.

        A call after an error goes on with what failed.
        """


class Flushable(Protocol):
    """What `FlushThread` works on: the store."""

    def begin_flush(self, *, is_all: bool, fds_max: int) -> Flush:
        """Return what forces all that is written to disk, or the log alone."""

    def end_flush(self) -> None:
        """It was done."""

    def fail_flush(self, *, is_refused: bool) -> None:
        """It was not done, or not all of it; `is_refused` where the disk refused a sync."""


class FlushRound(Protocol):
    """What a sync is framed by, on the loop's thread: the broker."""

    def wants_company(self) -> bool:
        """Return whether the next sync had better wait a moment for others."""

    def begin_flush(self) -> bool:
        """Fix what the sync that is about to start covers: everything (true), or the log alone."""

    def end_flush(self, error: LmqError | None, count_max: int) -> bool:
        """The sync ended: tell so many of those that wait, and whether there are more."""

    def tell_more(self, count_max: int) -> bool:
        """Go on to tell them; True while there are more."""


class FlushThread:
    """Group commit: one thread that syncs when it is asked to.

    A sync begins as soon as it is asked for, or a moment later at most, where others are likely to ask too; all
    requests that come while it runs are answered by the next one.
    `on_synced` is told the seconds that each took, None for a failed one; after a failure there are no more syncs.
    A disk that is full is no failure: what finds no room waits until there is some.
    """

    def __init__(
        self,
        store: Flushable,
        rounds: FlushRound,
        loop: asyncio.AbstractEventLoop,
        on_synced: Callable[[float | None], None],
    ) -> None:
        self._store = store
        self._rounds = rounds
        self._loop = loop
        self._on_synced = on_synced
        self._is_asked = False
        self._is_running = False
        self._is_telling = False  # those that waited for the sync before
        self._is_stopping = False
        self._gathers_until_ns = 0  # the sync that was asked for waits for others
        self._took_ns = 0  # the last one
        self._next_look: asyncio.Handle | None = None  # whether the others are there
        self._work = array("q", bytes(8 * WORK_SLOTS))
        self._flush: Flush | None = None
        self._error: LmqError | None = None
        self._thread = threading.Thread(target=self._run, name="lmq-flush", daemon=True)
        self._asked_fd = -1
        self._done_fd = -1

    def start(self) -> None:
        """Start the thread."""
        self._asked_fd = os.eventfd(0, os.EFD_CLOEXEC)
        self._done_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._loop.add_reader(self._done_fd, self._on_readable)
        self._thread.start()

    def request(self) -> None:
        """Ask for a sync of everything written so far."""
        if self._is_running or self._is_telling:
            self._is_asked = True
        elif not self._is_stopping:
            self._begin_in_company()

    def fail(self, error: LmqError) -> None:
        """Let there be no more syncs, because nothing can be promised any more; on the loop's thread."""
        if not self._is_stopping:
            self._end_thread()
            self._ended(None, error)

    async def stop(self, timeout_s: float) -> bool:
        """Let the sync under way end; return whether the thread ended within `timeout_s`."""
        self._end_thread()
        if not await asyncio.to_thread(join, self._thread, timeout_s):
            return False
        if self._done_fd >= 0:
            if self._is_running and self._is_done():
                self._on_done(self._error)
            elif self._is_running:  # it was asked for, and the thread ended first
                self._store.fail_flush(is_refused=False)
            while self._is_telling:
                self._is_telling = self._rounds.tell_more(TOLD_AT_ONCE)
            self._loop.remove_reader(self._done_fd)
            os.close(self._asked_fd)
            os.close(self._done_fd)
            self._asked_fd = self._done_fd = -1
        return True

    def _end_thread(self) -> None:
        self._is_stopping = True
        self._work[STOPS] = 1
        if self._asked_fd >= 0:
            os.eventfd_write(self._asked_fd, 1)

    def _begin_in_company(self) -> None:
        """Begin, unless it is worth waiting for others."""
        now_ns = time.monotonic_ns()
        if not self._rounds.wants_company() or 0 < self._gathers_until_ns <= now_ns:
            self._begin()
        elif not self._gathers_until_ns:
            self._gathers_until_ns = now_ns + min(self._took_ns * COMPANY_PERCENT // 100, COMPANY_NS_MAX)
            self._look_again()

    def _gather(self) -> None:
        if self._gathers_until_ns and not self._is_stopping:
            self._begin_in_company()
            self._look_again()

    def _look_again(self) -> None:
        left_ns = self._gathers_until_ns - time.monotonic_ns()
        if left_ns > LOOKS_EACH_TURN_NS:
            self._next_look = self._loop.call_later(max(left_ns / 1e9, TIMER_S_MIN), self._gather)
        elif self._gathers_until_ns:
            self._next_look = self._loop.call_soon(self._gather)

    def _begin(self) -> None:
        self._is_asked = False
        self._gathers_until_ns = 0
        if self._next_look is not None:
            self._next_look.cancel()
            self._next_look = None
        self._is_running = True
        self._flush = flush = self._store.begin_flush(is_all=self._rounds.begin_flush(), fds_max=FILES_MAX)
        files = flush.fds
        work = self._work
        work[HAS_STEPS] = flush.has_steps
        work[COUNT] = len(files)
        for at, fd in enumerate(files):
            work[FILES + at] = fd
        work[COUNT_BESIDE] = len(flush.fds_beside)
        for at, fd in enumerate(flush.fds_beside):
            work[BESIDE + at] = fd
        os.eventfd_write(self._asked_fd, 1)

    def _is_done(self) -> bool:
        """Return whether the sync that was begun ended, which is taken note of by that."""
        try:
            os.eventfd_read(self._done_fd)
        except BlockingIOError:
            return False
        return True

    def _on_readable(self) -> None:
        if self._is_done():
            self._on_done(self._error)

    def _on_done(self, error: LmqError | None) -> None:
        if error is None:
            self._store.end_flush()
            self._took_ns = self._work[TOOK_NS]
            self._ended(self._took_ns / 1e9, None)
        else:
            self._store.fail_flush(is_refused=isinstance(error, FlushFailedError))
            self._is_stopping = True
            self._ended(None, error)

    def _ended(self, took_s: float | None, error: LmqError | None) -> None:
        self._is_running = False
        self._is_telling = True
        self._on_synced(took_s)
        self._tell(partial(self._rounds.end_flush, error))

    def _tell(self, tell: Callable[[int], bool]) -> None:
        """Tell those that waited, some in each turn: a long sync may have thousands."""
        until_ns = time.monotonic_ns() + TELL_NS
        while self._is_telling and tell(TOLD_AT_ONCE):
            tell = self._rounds.tell_more
            if time.monotonic_ns() >= until_ns:
                self._loop.call_soon(self._tell, tell)
                return
        self._is_telling = False
        if self._is_asked and not self._is_running and not self._is_stopping:
            self._begin_in_company()

    # The rest runs on the thread.

    def _run(self) -> None:
        while sync_calls.sync_files(self._asked_fd, self._done_fd, self._work):
            flush = self._flush
            assert flush is not None
            began_ns = time.monotonic_ns()
            try:
                _check(self._work[ERROR])
                self._run_steps(flush)
                sync_calls.sync_beside(self._work)
                _check(self._work[ERROR])
            except Exception as error:
                LOGGER.exception("the flush thread ends; nothing more is promised to be on disk")
                self._error = as_core_error(error)
                os.eventfd_write(self._done_fd, 1)
                return
            self._work[TOOK_NS] += time.monotonic_ns() - began_ns
            os.eventfd_write(self._done_fd, 1)

    def _run_steps(self, flush: Flush) -> None:
        """Do the steps; one that finds no room on the disk is tried until there is some, or the thread is to end."""
        is_told = False
        while True:
            try:
                flush.run_steps(_give_way)
            except DiskFullError as error:
                if self._is_stopping:
                    raise
                if not is_told:
                    LOGGER.warning("what is to be safe on disk waits for room: %s", error)
                is_told = True
                time.sleep(ROOM_WAIT_S)  # noqa: TID251 - on the thread that syncs
            else:
                break
        if is_told:
            LOGGER.info("what waited for room is safe on disk")


def _give_way() -> None:
    """Let the loop have the interpreter: a thread that waits for it asks for it after 5 ms only."""
    time.sleep(GIVE_WAY_S)  # noqa: TID251 - on the thread that syncs


def _check(error: int) -> None:
    if error:
        raise FlushFailedError(os.strerror(error))
