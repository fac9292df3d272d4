"""Ends connections to a database that take too long, or send too much, for one question.

A library that waits for an answer, or takes a long one in, does so in C and looks at nothing else.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator

LOOK_S = 0.01  # how often those under way are looked at; chosen: what a bound in time may be passed by
REST_S = 1.0  # how long the thread waits for another question before it ends; chosen: a login seldom comes alone
_RECEIVED = struct.Struct("=Q")
_RECEIVED_AT = 128  # tcpi_bytes_received of Linux's struct tcp_info


class Watched:
    """One question; `why` says how it was ended, empty: it was not."""

    def __init__(self, connection: socket.socket, ends_at_s: float, bytes_max: int) -> None:
        self.why = ""
        self._connection = connection
        self._ends_at_s = ends_at_s
        self._bytes_max = bytes_max
        self._before = find_received(connection)

    def look(self, now_s: float) -> None:
        """End the connection where that is due."""
        received = find_received(self._connection)
        if not self.why and now_s >= self._ends_at_s:
            self.why = "it takes too long"
        elif not self.why and received - self._before > self._bytes_max:
            self.why = f"it sends more than {self._bytes_max} bytes"
        if self.why:
            with contextlib.suppress(OSError):  # it is closed
                self._connection.shutdown(socket.SHUT_RDWR)  # what comes from now on has the kernel reset it


class AnswerWatch:
    """Looks at the questions to one database that are under way, on a thread of its own.

    Args:
        timeout_ms: For one question.
        bytes_max: Of one answer, as they come in; of a Unix socket they are not known.
    """

    def __init__(self, timeout_ms: int, bytes_max: int) -> None:
        self._timeout_s = timeout_ms / 1000
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._under_way: set[Watched] = set()
        self._is_running = False
        self._wanted = threading.Event()
        self._pause = threading.Event()  # never set

    @contextlib.contextmanager
    def watch(self, descriptor: int) -> Iterator[Watched]:
        """Watch the connection of a descriptor as long as the context lasts; it is the caller's to close."""
        with socket.socket(fileno=os.dup(descriptor)) as connection:
            watched = Watched(connection, time.monotonic() + self._timeout_s, self._bytes_max)
            with self._lock:
                self._under_way.add(watched)
                if not self._is_running:
                    self._is_running = True
                    threading.Thread(target=self._run, name="lmq-answers", daemon=True).start()
            self._wanted.set()
            try:
                yield watched
            finally:
                with self._lock:  # nobody looks at it any more
                    self._under_way.discard(watched)

    def _run(self) -> None:
        while True:
            self._wanted.clear()
            with self._lock:
                now_s = time.monotonic()
                for watched in self._under_way:
                    watched.look(now_s)
                is_idle = not self._under_way
            if not is_idle:
                self._pause.wait(LOOK_S)
            elif not self._wanted.wait(REST_S):
                with self._lock:
                    if not self._under_way:
                        self._is_running = False
                        return


def find_received(connection: socket.socket) -> int:
    """Return how many bytes came by a connection so far, 0 where that is not known."""
    try:
        said = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RECEIVED_AT + _RECEIVED.size)
    except OSError:
        return 0
    return int(_RECEIVED.unpack_from(said, _RECEIVED_AT)[0]) if len(said) >= _RECEIVED_AT + _RECEIVED.size else 0
