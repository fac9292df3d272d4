"""File descriptors: how many connections they allow, and listeners that wait while there are as many.

What the store opens is never to fail because clients have taken all descriptors. So connections get what is left of the
process's limit, and where they have it, newcomers wait in the kernel's queue until a connection closes.

Source: docs/operations.md, "Open files".
"""

from __future__ import annotations

import contextlib
import logging
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from gateway.net.watermarks import Watermarks

LOGGER = logging.getLogger(__name__)

OVERSHOOT = 16  # accepted in the turn in which the last place was taken: one a listener, with uvloop
OF_THE_PROCESS = 128  # the loop's, listening sockets, the admin door's connections, what Python opens for a moment
CONNECTIONS_MIN = 16  # fewer are no gateway
REOPEN_S = 0.05  # after a client left: where many come and go, listeners are opened once for several places
LOOK_INTERVAL_MS = 1_000  # where descriptors are free again, newcomers wait so much longer at most
TELL_INTERVAL_MS = 10_000  # one line of the log, however many newcomers wait
_OPEN_FILES = Path("/proc/self/fd")


class DescriptorsError(Exception):
    """The process may open too few files."""

    def __init__(self, limit: int, wanted: int) -> None:
        super().__init__(
            f"the limit of {limit} open files is too low: the store and {CONNECTIONS_MIN} connections take up to "
            f"{wanted}; raise it (ulimit -n, LimitNOFILE=) or lower store.segments_mapped_max"
        )
        self.limit = limit
        self.wanted = wanted


def raise_limit() -> None:
    """Let this process open as many files as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(OSError, ValueError):  # some systems say more than they give
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def descriptor_limit() -> int:
    """Return how many files this process may have open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def open_descriptors() -> int:
    """Return how many files this process has open."""
    # Linux says it since 6.2; before, the entries are to be counted, which takes a while where there are many.
    return _OPEN_FILES.stat().st_size or len(list(_OPEN_FILES.iterdir()))


def find_connections_max(limit: int, store_max: int) -> int:
    """Return how many connections there is room for, of all doors.

    Args:
        limit: Files that the process may have open.
        store_max: Of these, what the store takes.

    Raises:
        DescriptorsError: Too few.
    """
    reserve = store_max + OF_THE_PROCESS + OVERSHOOT
    if limit < reserve + CONNECTIONS_MIN:
        raise DescriptorsError(limit, reserve + CONNECTIONS_MIN)
    return limit - reserve


def has_descriptor() -> bool:
    """Return whether another file can be opened now, by this process and on this machine."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


class Gate(Protocol):
    """Where connections come in."""

    def pause(self) -> None:
        """Let newcomers wait."""

    def resume(self) -> None:
        """Let them in."""

    def waiting_count(self) -> int:
        """Return how many wait."""


class Capacity:
    """Counts the connections of all doors; closes the gates while there are as many as there may be.

    Args:
        connections_max: As `find_connections_max` says.
        call_later: The loop's.
        is_left: Returns whether there is a descriptor left; others than connections may have taken them.
        watermarks: What else newcomers are refused by.
    """

    def __init__(
        self,
        connections_max: int,
        call_later: Callable[[float, Callable[[], None]], object],
        is_left: Callable[[], bool] = has_descriptor,
        watermarks: Watermarks | None = None,
    ) -> None:
        self.watermarks = watermarks or Watermarks()
        self.connections_max = connections_max
        self.count = 0
        self.is_paused = False
        self.pauses = 0
        self._call_later = call_later
        self._is_left = is_left
        self._gates: list[Gate] = []
        self._is_reopening = False
        self._is_told = False
        self._tell_at_ms = 0

    def add(self, gate: Gate) -> None:
        """Open and close this gate with the others."""
        self._gates.append(gate)
        if self.is_paused:
            gate.pause()

    def enter(self) -> bool:
        """Take a place; return whether there was one."""
        if self.count >= self.connections_max + OVERSHOOT:
            return False
        self.count += 1
        if self.count >= self.connections_max:
            self._pause()
        return True

    def leave(self) -> None:
        """Give a place back."""
        self.count -= 1
        if self.is_paused and not self._is_reopening:
            self._is_reopening = True
            self._call_later(REOPEN_S, self._reopen)

    def look(self, now_ms: int) -> None:
        """See whether descriptors are left, and say it, at most once in ten seconds, where newcomers wait."""
        if not self._is_left():
            self._pause()
        else:
            self._resume()
        if self.is_paused and now_ms >= self._tell_at_ms:
            self._tell_at_ms = now_ms + TELL_INTERVAL_MS
            self._is_told = True
            LOGGER.warning(
                "no more connections are let in, newcomers wait: %s open=%d connections_max=%d waiting=%d",
                "file descriptors allow no more" if self.count >= self.connections_max else "no file can be opened",
                self.count,
                self.connections_max,
                sum(gate.waiting_count() for gate in self._gates),
            )
        elif self._is_told and not self.is_paused:
            self._is_told = False
            LOGGER.info("connections are let in again open=%d connections_max=%d", self.count, self.connections_max)

    def _pause(self) -> None:
        if not self.is_paused:
            self.is_paused = True
            self.pauses += 1
            for gate in self._gates:
                gate.pause()

    def _reopen(self) -> None:
        self._is_reopening = False
        if self._is_left():
            self._resume()

    def _resume(self) -> None:
        if self.is_paused and self.count < self.connections_max:
            self.is_paused = False
            for gate in self._gates:
                gate.resume()
