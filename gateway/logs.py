"""Logging set-up: one line a record on stderr, as text with key=value or as a JSON object.

A connection has three lines, so that these have to be cheap: `tell` makes a line without a record, and the lines of
one turn of the loop are written together.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
import time
from collections import deque
from contextlib import suppress
from functools import lru_cache
from typing import Protocol, TextIO

SAID_BYTES_MAX = 128  # of what a peer says of itself; chosen: a line of the log stays one
CHATTY = ("asyncio", "uvicorn.error", "uvicorn.access")  # loggers of others, of which warnings are enough

_FIELD = re.compile(r"\s*(\w+)=(%[sdrx]|%\.\d+f)")
_PLACE = re.compile(r"%(?=[sdrx.])")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
RECENT_MAX = 1_000  # lines that are kept for operators: some hundred kilobytes
_LINES_MAX = 64  # that wait for the end of a turn; chosen: more are written at once
_FORMATS_MAX = 512  # formats of lines whose fields are remembered: more than the sources have


class LineMaker(Protocol):
    """A formatter that makes lines without records, too."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line."""

    def line(self, moment_s: float, level: str, name: str, text: object, args: object) -> str:
        """Return one line that says `text` with `args` in it."""


def set_up_logs(level: str, style: str) -> None:
    """Send all log records of at least `level` to stderr; `style` is `text` or `json`."""
    handler = LineHandler(sys.stderr, JsonFormatter() if style == "json" else TextFormatter())
    root = logging.getLogger()
    for former in root.handlers:
        former.flush()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for chatty in CHATTY:
        logging.getLogger(chatty).setLevel(max(logging.WARNING, root.level))


def change_level(name: str, level: str) -> None:
    """Have a logger, all of them where the name is empty, say at least `level`; `default`: as the one above it."""
    logging.getLogger(name).setLevel(logging.NOTSET if level == "default" else level.upper())
    if not name:
        for chatty in CHATTY:
            logging.getLogger(chatty).setLevel(max(logging.WARNING, logging.root.level))


def told_levels() -> tuple[str, dict[str, str]]:
    """Return how much the log says, and of which loggers it says more or less."""
    root = logging.root
    others = {
        name: logging.getLevelName(logger.level).lower()
        for name, logger in sorted(root.manager.loggerDict.items())
        if isinstance(logger, logging.Logger) and name.startswith("gateway") and logger.level not in {0, root.level}
    }
    return logging.getLevelName(root.level).lower(), others


def recent_lines() -> tuple[list[str], int]:
    """Return the last lines that were written, and how many were in all."""
    for handler in logging.root.handlers:
        if isinstance(handler, LineHandler):
            handler.flush()
            return list(handler.recent), handler.written
    return [], 0


def tell(logger: logging.Logger, text: str, *args: object) -> None:
    """Do what `logger.info` does, for what is said of each connection: at a fifth of the cost where lines go to stderr.

    Where others listen to the log, they are given a record.
    """
    if logger.isEnabledFor(logging.INFO):
        handlers = logging.root.handlers
        handler = handlers[0] if len(handlers) == 1 else None
        if isinstance(handler, LineHandler):
            handler.tell(logger.name, text, args)
        else:
            logger.info(text, *args)


def said(text: bytes | str) -> str:
    """Return what a peer says of itself as the log takes it: the first SAID_BYTES_MAX bytes."""
    raw = text.encode(errors="replace") if isinstance(text, str) else text
    if len(raw) <= SAID_BYTES_MAX:
        return raw.decode(errors="replace")
    return raw[:SAID_BYTES_MAX].decode(errors="ignore") + "..."


class LineHandler(logging.Handler):
    """Writes lines: those of one turn of the loop together at its end; a warning, and what stands before it, at once.

    Without a loop a line is written at once, too. The last ones are kept: `recent`, of `written` in all.
    """

    def __init__(self, stream: TextIO, maker: LineMaker) -> None:
        super().__init__()
        self._stream = stream
        self._maker = maker
        self.recent: deque[str] = deque(maxlen=RECENT_MAX)
        self.written = 0
        self._lines: list[str] = []
        self._is_called = False  # a loop will call `_write_turn`
        assert self.lock is not None
        self._guard = self.lock

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, now or at the end of the turn; called with the lock."""
        try:
            self._lines.append(self._maker.format(record))
        except (TypeError, ValueError):  # its text does not fit what is to stand in it
            self.handleError(record)
        self._write_soon(is_urgent=record.levelno >= logging.WARNING)

    def tell(self, name: str, text: str, args: tuple[object, ...]) -> None:
        """Write a line of the level info, now or at the end of the turn."""
        line = self._maker.line(time.time(), "info", name, text, args)
        with self._guard:
            self._lines.append(line)
            if not self._is_called or len(self._lines) >= _LINES_MAX:
                self._write_soon(is_urgent=False)

    def flush(self) -> None:
        """Write what waits."""
        with self._guard:
            self._write()

    def _write_soon(self, *, is_urgent: bool) -> None:
        if is_urgent or len(self._lines) >= _LINES_MAX:
            self._write()
        elif not self._is_called:
            loop = _find_loop()
            if loop is None:
                self._write()
            else:
                self._is_called = True
                loop.call_soon(self._write_turn)

    def _write_turn(self) -> None:
        self._is_called = False
        self.flush()

    def _write(self) -> None:
        if self._lines:
            lines, self._lines = self._lines, []
            self.recent.extend(lines)
            self.written += len(lines)
            with suppress(OSError, ValueError):  # nobody reads
                self._stream.write("\n".join([*lines, ""]))
                self._stream.flush()


def _find_loop() -> asyncio.AbstractEventLoop | None:
    """Return the loop that runs in this thread, if any."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


@lru_cache(maxsize=1)
def _moment(ms: int) -> str:
    return f"{_second(ms // 1000)}.{ms % 1000:03}Z"


@lru_cache(maxsize=1)
def _second(whole_s: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole_s))


def _one_line(text: str) -> str:
    """Return `text` with control characters escaped, so that a peer's bytes cannot forge a line."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def _fill(text: object, args: object) -> str:
    return str(text) % args if args else str(text)


class TextFormatter(logging.Formatter):
    """`2026-01-31T12:00:00.000Z warning gateway.net closing connection conn=7`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line, and a traceback's lines after it."""
        line = self.line(record.created, record.levelname.lower(), record.name, record.msg, record.args)
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line

    @staticmethod
    def line(moment_s: float, level: str, name: str, text: object, args: object) -> str:
        """Return one line that says `text` with `args` in it."""
        filled = _fill(text, args)
        one_line = filled if filled.isprintable() else _one_line(filled)
        return f"{_moment(int(moment_s * 1000))} {level} {name} {one_line}"


class JsonFormatter(logging.Formatter):
    """One JSON object a line; each `key=%s` of the message's format is a key of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a JSON object."""
        entry = _entry(record.created, record.levelname.lower(), record.name, record.msg, record.args)
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)

    @staticmethod
    def line(moment_s: float, level: str, name: str, text: object, args: object) -> str:
        """Return one line that says `text` with `args` in it."""
        return json.dumps(_entry(moment_s, level, name, text, args), default=str)


def _entry(moment_s: float, level: str, name: str, text: object, args: object) -> dict[str, object]:
    entry: dict[str, object] = {"time": _moment(int(moment_s * 1000)), "level": level, "logger": name}
    bare, names = _parse_format(text) if isinstance(text, str) and isinstance(args, tuple) else ("", [])
    if not names or not isinstance(args, tuple) or len(names) != len(args):
        entry["message"] = _fill(text, args)
        return entry
    pairs = list(zip(names, args, strict=True))
    entry["message"] = bare % tuple(value for field, value in pairs if not field)
    for field, value in pairs:
        if field:
            entry.setdefault(field, value)
    return entry


@lru_cache(maxsize=_FORMATS_MAX)
def _parse_format(text: str) -> tuple[str, list[str]]:
    """Return a format without its fields, and for each place in it the name of its field, empty where it is of none."""
    names_at = {match.start(2): match[1] for match in _FIELD.finditer(text)}
    if not names_at:
        return text, []
    return _FIELD.sub("", text), [names_at.get(match.start(), "") for match in _PLACE.finditer(text)]
