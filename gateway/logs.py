"""Logging set-up: one line a record on stderr, as text with key=value or as a JSON object."""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime

SAID_BYTES_MAX = 128  # of what a peer says of itself

_FIELD = re.compile(r"\s*(\w+)=(%[sdrx]|%\.\d+f)")
_PLACE = re.compile(r"%(?=[sdrx.])")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]")


def set_up_logs(level: str, style: str) -> None:
    """Send all log records of at least `level` to stderr; `style` is `text` or `json`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if style == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for chatty in ("asyncio", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(chatty).setLevel(max(logging.WARNING, root.level))


def said(text: bytes | str) -> str:
    """Return what a peer says of itself as the log takes it: the first SAID_BYTES_MAX bytes."""
    raw = text.encode(errors="replace") if isinstance(text, str) else text
    cut = raw[:SAID_BYTES_MAX].decode(errors="ignore" if len(raw) > SAID_BYTES_MAX else "replace")
    return cut if len(raw) <= SAID_BYTES_MAX else f"{cut}..."


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _one_line(text: str) -> str:
    """Return `text` with control characters escaped, so that a peer's bytes cannot forge a line."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


class TextFormatter(logging.Formatter):
    """`2026-01-31T12:00:00.000Z warning gateway.net closing connection conn=7`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line, and a traceback's lines after it."""
        line = f"{_moment(record)} {record.levelname.lower()} {record.name} {_one_line(record.getMessage())}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """One JSON object a line; each `key=%s` of the message's format is a key of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a JSON object."""
        entry: dict[str, object] = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields = _fields(record)
        if fields:
            text, values = fields
            entry["message"] = text
            entry.update({name: value for name, value in values.items() if name not in entry})
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def _fields(record: logging.LogRecord) -> tuple[str, dict[str, object]] | None:
    """Return the message without its fields, and the fields; None where the format has none."""
    if not isinstance(record.args, tuple) or not isinstance(record.msg, str):
        return None
    names_at = {match.start(2): match[1] for match in _FIELD.finditer(record.msg)}
    names = [names_at.get(match.start()) for match in _PLACE.finditer(record.msg)]
    if not names_at or len(names) != len(record.args):
        return None
    pairs = list(zip(names, record.args, strict=True))
    text = _FIELD.sub("", record.msg) % tuple(value for name, value in pairs if name is None)
    return text, {name: value for name, value in pairs if name is not None}
