"""What is known of one file of the log without reading it."""

from __future__ import annotations

from typing import NamedTuple

NAME_DIGITS = 20


class LogFile(NamedTuple):
    """A segment. Moments are None where they are not known."""

    base: int  # the place of its first byte
    size: int
    disk_bytes: int  # less than `size` where some of its room was given back
    first_ms: int | None  # when its first message was stored
    last_ms: int | None  # about when the last one was
    is_newest: bool  # messages are still written to it
    is_due: bool  # past its time, or over the size: it goes when nobody needs it
    needed: int | None = None  # entries of queues in it that a reader needs, where they were counted

    @property
    def name(self) -> str:
        """The file's name."""
        return f"{self.base:0{NAME_DIGITS}d}"

    @property
    def is_held(self) -> bool:
        """Whether its time is over, and it stays all the same: a reader needs it, or it is damaged."""
        return self.is_due and self.needed != 0
