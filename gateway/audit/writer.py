"""A thread that writes lines to the files of the audit log, so that no slow disk holds anybody up."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

from gateway.audit.files import AuditFiles

LOGGER = logging.getLogger(__name__)

WAITING_MAX = 8_192  # lines: some megabytes
STOP_S = 1.0  # what the last lines get to be written, of the 5 s in which the gateway stops


class Counts:
    """How many lines were written, and how many lost."""

    __slots__ = ("lost", "written")

    def __init__(self) -> None:
        self.lost = 0
        self.written = 0


class Writer:
    """Writes what it is given, in order; what comes while too much waits, or the disk refuses, is counted and lost.

    Args:
        files: Where to; they are the writer's own.
        counts: What became of the lines.
    """

    def __init__(self, files: AuditFiles, counts: Counts) -> None:
        self._files = files
        self._counts = counts
        self._waiting: deque[Callable[[], bytes]] = deque()
        self._is_wanted = threading.Event()
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
        self._thread.start()

    def put(self, make_line: Callable[[], bytes]) -> None:
        """Have a line made and written soon, on the thread."""
        if len(self._waiting) >= WAITING_MAX:
            self._counts.lost += 1
            return
        self._waiting.append(make_line)
        self._is_wanted.set()

    def end(self) -> None:
        """Take nothing more: what waits is written, then the files are closed."""
        self._is_over = True
        self._is_wanted.set()

    def join(self) -> None:
        """Wait for that, for a second at most."""
        self._thread.join(STOP_S)

    def _run(self) -> None:
        is_over = False
        while not is_over:
            self._is_wanted.wait()
            self._is_wanted.clear()
            is_over = self._is_over  # before the look: what came before the end is written
            self._write_waiting()
        self._files.close()

    def _write_waiting(self) -> None:
        count = 0
        try:
            while self._waiting:
                count += 1
                self._files.append(self._waiting.popleft()())
            self._files.flush()
            self._counts.written += count
        except OSError as error:
            self._counts.lost += count
            LOGGER.error("the audit log cannot be written lost=%d error=%s", self._counts.lost, error)  # noqa: TRY400 - one line
