"""Writes which user did what, as lines of JSON in a file: hears the gateway's events, and writes beside the loop."""

from __future__ import annotations

import errno
import json
import os
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from gateway.audit.files import AuditFiles
from gateway.audit.writer import Counts, Writer
from gateway.events import Event, Events
from gateway.runtime.loop import Clock
from gateway.settings.audit import AuditSettings
from gateway.settings.models import SettingsError


class AuditLog:
    """Listens as long as there is a file to write to.

    Args:
        events: What is listened to.
        clock: Tells when things happened.
    """

    def __init__(self, events: Events, clock: Clock) -> None:
        self.counts = Counts()
        self._events = events
        self._clock = clock
        self._left_out: frozenset[str] = frozenset()
        self._writer: Writer | None = None

    @staticmethod
    def check(settings: AuditSettings) -> None:
        """See that the file can be written, or made where it is not there; nothing is made.

        Raises:
            SettingsError: It cannot.
        """
        path = settings.file
        if path is None:
            return
        if path.exists():
            fault = errno.EISDIR if path.is_dir() else 0 if os.access(path, os.W_OK) else errno.EACCES
        elif not path.parent.is_dir():
            fault = errno.ENOENT
        else:
            fault = 0 if os.access(path.parent, os.W_OK | os.X_OK) else errno.EACCES
        if fault:
            raise _refuse(path, os.strerror(fault))

    def use(self, settings: AuditSettings) -> None:
        """Write as the settings say from now on, to the file of that name: something else may have moved the last one.

        Raises:
            SettingsError: The file cannot be opened.
        """
        self.end()
        if settings.file is not None:
            self._writer = Writer(_open(settings.file, settings), self.counts)
            self._left_out = frozenset(settings.leave_out)
            self._events.listen(self.take)

    def take(self, event: Event) -> None:
        """Have an event written soon."""
        if event.kind not in self._left_out and self._writer is not None:
            self._writer.put(partial(make_line, self._clock.now_ms(), event))

    def end(self) -> Writer | None:
        """Listen no more; what was heard is written: `join` what is returned to wait for it."""
        writer, self._writer = self._writer, None
        if writer is not None:
            self._events.ignore(self.take)
            writer.end()
        return writer


def _open(path: Path, settings: AuditSettings) -> AuditFiles:
    try:
        return AuditFiles(path, settings.bytes_max, settings.files_max)
    except OSError as error:
        raise _refuse(path, error.strerror) from error


def _refuse(path: Path, why: str | None) -> SettingsError:
    return SettingsError(f"audit.file: cannot write {path}: {why}")


def make_line(now_ms: int, event: Event) -> bytes:
    """Return an event as a line of JSON."""
    moment = datetime.fromtimestamp(now_ms / 1_000, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
    actor = event.actor
    told = {
        "at": f"{moment}Z",
        "event": event.kind.value,
        "user": actor.user,
        "door": actor.door,
        "conn": actor.conn_id,
        "peer": actor.peer,
        **event.fields,
    }
    return json.dumps(told, ensure_ascii=False, default=str).encode(errors="replace") + b"\n"
