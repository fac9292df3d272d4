"""A shared queue with priorities: pop queues by level, the highest that has messages first.

A queue offset has the level in its upper bits, so that consumers and what they acknowledge need not know of levels.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from typing import Protocol

from core.errors import LmqError
from core.message import AWAY, StoredBatch
from core.stage import Stage

LEVEL_SHIFT = 48  # an offset has the lower 48 bits, its level those above
_OFFSET_MASK = (1 << LEVEL_SHIFT) - 1


class OneLevel(Protocol):
    """The pop queue of one level."""

    @property
    def queue_ref(self) -> int:
        """The light queue."""

    @property
    def ready_count(self) -> int:
        """How many messages could be taken now."""

    @property
    def unacked_count(self) -> int:
        """How many messages consumers have."""

    @property
    def again_count(self) -> int:
        """How many times messages were given that had been given before, since it was opened."""

    def take(self, into: StoredBatch, count_max: int, bytes_max: int, until_ms: int, now_ms: int) -> int:
        """Fill `into` with messages, and hide them."""

    def peek(self, into: StoredBatch, count_max: int) -> int:
        """Fill `into` with what `take` would give next, without taking it."""

    def ack_many(self, queue_offsets: array[int], count: int) -> None:
        """Finish messages."""

    def nack_many(self, queue_offsets: array[int], count: int, visible_at_ms: int = 0) -> None:
        """Show messages again."""

    def read_offsets(self, offsets: array[int], count: int, into: StoredBatch) -> int:
        """Fill `into` with messages; return how many of these are dealt with."""

    def purge(self, now_ms: int = 0) -> int:
        """Finish all messages that nobody has."""

    def attempt(self, queue_offset: int) -> int:
        """Return how often a message was taken."""

    def identify(self, queue_offset: int) -> tuple[int, int]:
        """Return what the service of pop queues knows a message by."""

    def stage(self, queue_offset: int) -> Stage:
        """Return how far a message is."""


class CountedLevel(OneLevel, Protocol):
    """One that knows the bytes of what is ready."""

    @property
    def ready_bytes(self) -> int:
        """How many bytes the bodies of ready messages have."""

    def count_on(self) -> bool:
        """Count what came."""


class LevelledQueue:
    """All levels of one queue; those above the lowest are there once a message came for them.

    Args:
        highest: The highest level.
        open_level: Opens the pop queue of a level.
        name_level: Says the light queue of a level.
        used: The levels besides the lowest that have light queues already.
        max_offset: Says where a light queue ends.
        on_opened: Told the number of a light queue that a level has from now on.
        first_place: What its light queues have before this place of the log was another queue's of this name.
    """

    def __init__(
        self,
        highest: int,
        open_level: Callable[[int], CountedLevel],
        name_level: Callable[[int], bytes],
        *,
        used: Iterable[int],
        max_offset: Callable[[int], int],
        on_opened: Callable[[int], None],
        first_place: int = 0,
    ) -> None:
        self._highest = highest
        self._open_level = open_level
        self._name_level = name_level
        self._max_offset = max_offset
        self._on_opened = on_opened
        self._watchers: list[Callable[[int], None]] = []
        self.first_place = first_place
        self._levels = {level: open_level(level) for level in sorted({0, *used}, reverse=True)}
        self._seen: dict[int, int] = {}  # by level: what lies before was there in an earlier turn

    @property
    def queue_ref(self) -> int:
        """The light queue of the lowest level."""
        return self._levels[0].queue_ref

    @property
    def refs(self) -> list[int]:
        """The light queues of all levels in use."""
        return [one.queue_ref for one in self._levels.values()]

    def use_level(self, level: int) -> bytes:
        """Return the light queue of a level, at most that of the highest; it is read from now on.

        Raises:
            QueueLimitError: There is no room for another light queue.
        """
        level = min(level, self._highest)
        if level not in self._levels:
            opened = self._open_level(level)
            self._levels = dict(sorted({**self._levels, level: opened}.items(), reverse=True))
            for tell in (self._on_opened, *self._watchers):
                tell(opened.queue_ref)
        return self._name_level(level)

    def watch(self, on_opened: Callable[[int], None]) -> None:
        """Tell one more listener which light queues levels have from now on."""
        self._watchers.append(on_opened)

    def unwatch(self, on_opened: Callable[[int], None]) -> None:
        """Tell it no more; harmless where it is not told."""
        if on_opened in self._watchers:
            self._watchers.remove(on_opened)

    @property
    def ready_count(self) -> int:
        """How many messages could be taken now."""
        return sum(one.ready_count for one in self._levels.values())

    @property
    def ready_bytes(self) -> int:
        """How many bytes the bodies of those have."""
        return sum(one.ready_bytes for one in self._levels.values())

    @property
    def unacked_count(self) -> int:
        """How many messages consumers have."""
        return sum(one.unacked_count for one in self._levels.values())

    @property
    def again_count(self) -> int:
        """How many times messages were given that had been given before, since it was opened."""
        return sum(one.again_count for one in self._levels.values())

    def count_on(self) -> bool:
        """Count the bytes of what came; return False where there is more to count."""
        left = [level for level, one in self._levels.items() if not one.count_on()]  # each has its turn
        return not left

    def note_seen(self) -> None:
        """Say that what is there now was there in an earlier turn."""
        self._seen = {level: self._max_offset(one.queue_ref) for level, one in self._levels.items()}

    def fresh_from(self, queue_offset: int) -> int:
        """Return from where on the messages of the level of one came in just now."""
        level = queue_offset >> LEVEL_SHIFT
        return level << LEVEL_SHIFT | self._seen.get(level, 0)

    def take(self, into: StoredBatch, count_max: int, bytes_max: int, until_ms: int, now_ms: int) -> int:
        """Fill `into` with messages of the highest level that has any, and hide them."""
        into.clear()
        for level, one in self._levels.items():
            if one.ready_count > 0:
                count = one.take(into, count_max, bytes_max, until_ms, now_ms)
                if count > 0:
                    _lift(into, level)
                if count or count_max <= 0:
                    return count
        return 0

    def peek(self, into: StoredBatch, count_max: int) -> int:
        """Fill `into` with what `take` would give next, without taking it."""
        into.clear()
        for level, one in self._levels.items():
            if one.ready_count > 0:
                count = one.peek(into, count_max)
                if count > 0:
                    _lift(into, level)
                if count:
                    return count
        return 0

    def ack_many(self, queue_offsets: array[int], count: int) -> None:
        """Finish messages.

        Raises:
            ReceiptError: One of them is not hidden now; the others are done.
        """
        self._each(queue_offsets, count, lambda one, offsets: one.ack_many(offsets, len(offsets)))

    def nack_many(self, queue_offsets: array[int], count: int, visible_at_ms: int = 0) -> None:
        """Show messages again, each in its place in its level.

        Raises:
            ReceiptError: One of them is not hidden now; the others are shown.
        """
        self._each(queue_offsets, count, lambda one, offsets: one.nack_many(offsets, len(offsets), visible_at_ms))

    def read_offsets(self, offsets: array[int], count: int, into: StoredBatch) -> int:
        """Fill `into` with the first of these messages, which are ascending; return how many are dealt with."""
        into.clear()
        if not count:
            return 0
        level = offsets[0] >> LEVEL_SHIFT
        same = array("q", [one & _OFFSET_MASK for one in offsets[:count] if one >> LEVEL_SHIFT == level])
        one = self._levels.get(level)
        if one is None:
            return len(same)
        used = one.read_offsets(same, len(same), into)
        if used != AWAY:
            _lift(into, level)
        return used

    def purge(self, now_ms: int = 0) -> int:
        """Finish all messages that nobody has."""
        return sum(one.purge(now_ms) for one in self._levels.values())

    def identify(self, queue_offset: int) -> tuple[int, int]:
        """Return what the service of pop queues knows a message by, of a level in use."""
        return self._levels[queue_offset >> LEVEL_SHIFT].identify(queue_offset & _OFFSET_MASK)

    def stage(self, queue_offset: int) -> Stage:
        """Return how far a message is, of a level in use."""
        return self._levels[queue_offset >> LEVEL_SHIFT].stage(queue_offset & _OFFSET_MASK)

    def attempt(self, queue_offset: int) -> int:
        """Return how often a message was taken."""
        one = self._levels.get(queue_offset >> LEVEL_SHIFT)
        return 0 if one is None else one.attempt(queue_offset & _OFFSET_MASK)

    def _each(self, queue_offsets: array[int], count: int, settle: Callable[[CountedLevel, array[int]], None]) -> None:
        """Settle messages level by level; an error of one comes when all had their turn."""
        by_level: dict[int, array[int]] = {}
        for offset in queue_offsets[:count]:
            by_level.setdefault(offset >> LEVEL_SHIFT, array("q")).append(offset & _OFFSET_MASK)
        fault: LmqError | None = None
        for level, offsets in by_level.items():
            try:
                settle(self._levels[level], offsets)
            except LmqError as error:
                fault = error
        if fault is not None:
            raise fault


def _lift(into: StoredBatch, level: int) -> None:
    """Put the level into the offsets of what was read."""
    if level:
        for i in range(into.count):
            into.queue_offset[i] |= level << LEVEL_SHIFT
