"""Where reading begins, as `--from` says it."""

from __future__ import annotations

from gateway.commands.doors.traffic import Start, StartKind
from gateway.commands.moments import read_moment

WORDS = ("first", "last", "next")


def read_start(text: str) -> Start:
    """Return the start that a text means: a word, an offset, or else a moment."""
    if text in WORDS:
        return Start(StartKind.WORD, word=text)
    if text.isascii() and text.isdigit():
        return Start(StartKind.OFFSET, number=int(text))
    return Start(StartKind.MOMENT, number=read_moment(text))
