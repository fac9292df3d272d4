"""The settings of retention that are in force, for all that may show or change them."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from typing import Protocol

from core.log_file import LogFile
from core.settings import RetentionSettings

SECOND_MS = 1_000


class SegmentRetention(Protocol):
    """What the store's retention is told."""

    is_by_age: bool

    def reload(self, settings: RetentionSettings) -> None:
        """Keep what nobody needs for as long, and for as much, as these settings say."""


class LogFiles(Protocol):
    """What the store's retention tells of the log's files."""

    def tell(self) -> Iterator[LogFile]:
        """Give what is known of each, the oldest first; nothing of the log is read."""

    def holders_of(self, base: int) -> Iterator[int | None]:
        """Give the queues that need something of one; None stands for a look at some that need nothing of it."""


class Retention:
    """The settings of retention that are in force."""

    def __init__(self, segments: SegmentRetention, settings: RetentionSettings) -> None:
        self._segments = segments
        self.settings = settings

    def use(self, settings: RetentionSettings) -> None:
        """Go by other settings, until the next ones."""
        self.settings = settings
        self._segments.reload(settings)

    def look(self, now_ms: int, *, is_low: bool) -> None:
        """Let segments go by their age if it is the hour for it, or the disk is low on room."""
        self._segments.is_by_age = is_low or is_hour_of(self.settings.delete_hours, now_ms)


def is_hour_of(hours: Collection[int], now_ms: int) -> bool:
    """Return whether it is one of these hours where this machine is, as by `deleteWhen`; of none: it always is."""
    return not hours or time.localtime(now_ms / SECOND_MS).tm_hour in hours
