"""What the gateway does again and again: retention, the room on the disk, what doors look after."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from core.broker import Broker
from core.room import DISK_LOW
from core.settings import RetentionSettings
from gateway.door import Door
from gateway.retention import Retention, SegmentRetention

LOGGER = logging.getLogger(__name__)

TEND_INTERVAL_MS = 10_000  # as often as official brokers look for old segments
DEPARTED_INTERVAL_MS = 2_000  # held publishers that left keep their descriptors for so long at most


class Every:
    """Calls `work(now_ms)` at an interval, on the coarse timer."""

    def __init__(self, interval_ms: int, work: Callable[[int], None], now_ms: int) -> None:
        self._interval_ms = interval_ms
        self._work = work
        self._at_ms = now_ms + interval_ms
        self.timer_slot = -1

    def next_deadline_ms(self) -> int | None:
        """Return when the work is due again."""
        return self._at_ms

    def change_interval(self, interval_ms: int, now_ms: int) -> None:
        """Work at another interval, counted from now on; the timer is to watch anew."""
        self._interval_ms = interval_ms
        self._at_ms = now_ms + interval_ms

    def on_deadline(self, now_ms: int) -> None:
        """Work, and wait for the next time."""
        self._at_ms = now_ms + self._interval_ms
        self._work(now_ms)


class Store(Protocol):
    """What is looked after of the store."""

    @property
    def damaged_count(self) -> int:
        """Damaged records that were met."""

    @property
    def retention(self) -> SegmentRetention:
        """What lets segments go."""


class Upkeep:
    """Looks after the log and the doors.

    Args:
        broker: The broker.
        store: Its store.
        doors: All doors by name; they may be added later.
        retention: The settings of retention to begin with.
        data_dir: The data folder, for the log.
    """

    def __init__(
        self, broker: Broker, store: Store, doors: Mapping[str, Door], retention: RetentionSettings, data_dir: Path
    ) -> None:
        self._broker = broker
        self._store = store
        self._doors = doors
        self._data_dir = data_dir
        self.retention = Retention(store.retention, retention)
        self._damaged_told = store.damaged_count  # recovery has said what it met
        self._low_since_ms = 0
        self._holds_before = 0  # of all doors, when the disk got low

    def tend(self, now_ms: int) -> None:
        """Let go of what nobody needs."""
        for door in self._doors.values():
            door.tend(now_ms)
        self._tell_damage()
        self.retention.look(now_ms, is_low=self._broker.room.is_disk_low)
        count = self._broker.retire(now_ms)
        if count:
            LOGGER.info("retired segments count=%d", count)

    def note_room(self, free_bytes: int, now_ms: int, *, is_full: bool) -> None:
        """Hold publishers back where the disk is low on room, let them go on where it is not, and say so."""
        room = self._broker.room
        holds = self._broker.metrics.holds()
        if not room.note(free_bytes, is_full=is_full, now_ms=now_ms):
            return
        if not room.is_disk_low:
            LOGGER.info(
                "the disk has room again: publishers go on free_bytes=%d low_ms=%d publishers_held=%d",
                free_bytes,
                now_ms - self._low_since_ms,
                holds - self._holds_before,
            )
            return
        self._low_since_ms = now_ms
        self._holds_before = holds
        LOGGER.warning(
            "%s: publishers are held back free_bytes=%d disk_free_bytes_min=%d data_dir=%s",
            "the disk is full" if is_full else DISK_LOW,
            free_bytes,
            room.free_bytes_min,
            self._data_dir,
        )
        self.tend(now_ms)

    def read_departed(self, now_ms: int) -> None:
        """While publishers are held back, see which of them have gone."""
        del now_ms
        if self._broker.room.is_low:
            for door in self._doors.values():
                door.read_departed()

    def _tell_damage(self) -> None:
        count = self._store.damaged_count - self._damaged_told
        if count:
            self._damaged_told += count
            LOGGER.warning("readers met damaged records, which are not served count=%d", count)
