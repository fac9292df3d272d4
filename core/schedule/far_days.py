"""Days that are near: their messages are put into the queues of their minutes, where what is due soon waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

from core.message import AWAY, Route, StoredBatch
from core.schedule.hand_on import COUNT_MAX, Destination, HandOn
from core.schedule.slots import (
    FAR_MS,
    NEAR_SLOTS,
    ROLL_AHEAD_MS,
    TIMER_TOPIC,
    day_of,
    encode_due,
    queue_key,
    read_due,
    strip_crc,
    strip_due,
)

BYTES_MAX = 1 << 20  # of one read of a day's queue, so that large bodies do not hold the loop
LOOK_INTERVAL_MS = 10_000  # a day is spread 8 hours ahead, so a look within minutes would be in time


class Keeper(Protocol):
    """What days are spread by: the timer."""

    def admit(self, due_ms: int, now_ms: int) -> tuple[int, int]:
        """Return when a message will be due, and the queue in which it waits."""

    def release(self, queue_id: int, offset: int, tickets: Sequence[int]) -> None:
        """Need a queue from `offset` on only, once the messages of the tickets are safe."""


class Queues(Protocol):
    """What days are read by: the broker."""

    def find_queue(self, key: bytes) -> int:
        """Return the number of a queue."""

    def max_offset(self, queue_ref: int) -> int:
        """Return the next offset to be given."""

    def read(self, queue_ref: int, offset: int, into: StoredBatch, count_max: int, bytes_max: int) -> int:
        """Read on in one queue."""

    def route_rocketmq(self, topic: bytes, queue_id: int, dispatch: Sequence[bytes], prefix: bytes = b"") -> Route:
        """Return a route."""


class FarDays:
    """Spreads days over their minutes, a batch at a time.

    `is_late`: a day that has begun is not spread yet, so nothing may be handed on.
    """

    def __init__(self, keeper: Keeper, queues: Queues, found: StoredBatch, hand_on: HandOn) -> None:
        self.is_late = False
        self._keeper = keeper
        self._queues = queues
        self._found = found
        self._hand_on = hand_on
        self._spread_until: dict[int, int] = {}  # by queue; what is kept of it may be less
        self._look_at_ms = 0

    def step(self, places: Mapping[int, int], since_ms: int, now_ms: int) -> bool:
        """Spread one batch of a day that is near; return whether there is more to do at once.

        Args:
            places: The first needed offset of each queue in which something waits.
            since_ms: All that was due before was handed on.
            now_ms: The present moment.
        """
        if now_ms < self._look_at_ms:
            return False
        self.is_late = False
        days = sorted((day_of(queue_id, since_ms), queue_id) for queue_id in places if queue_id >= NEAR_SLOTS)
        for day, queue_id in days:
            if day * FAR_MS - now_ms > ROLL_AHEAD_MS:
                break
            queue_ref = self._queues.find_queue(queue_key(queue_id))
            offset = max(self._spread_until.get(queue_id, 0), places[queue_id])
            if offset < self._queues.max_offset(queue_ref):
                self.is_late = day * FAR_MS <= now_ms
                return self._spread(queue_id, queue_ref, offset, now_ms)
        self._look_at_ms = now_ms + LOOK_INTERVAL_MS
        return False

    def _spread(self, queue_id: int, queue_ref: int, offset: int, now_ms: int) -> bool:
        found = self._found
        count = self._queues.read(queue_ref, offset, found, COUNT_MAX, BYTES_MAX)
        if count == AWAY:
            return True
        done, tickets = self._hand_on.publish(found, range(count), partial(self._place, now_ms), now_ms)
        until = found.next_offset if done == count else found.queue_offset[done]
        found.clear()
        self._spread_until[queue_id] = until
        self._keeper.release(queue_id, until, tickets)
        return done == count

    def _place(self, now_ms: int, found: StoredBatch, i: int) -> Destination | None:
        text = strip_crc(bytes(found.buf[found.properties_start[i] : found.properties_end[i]]))
        said_ms = read_due(text)
        if said_ms < 0:
            return None
        due_ms, queue_id = self._keeper.admit(said_ms, now_ms)
        if due_ms != said_ms:
            text = strip_due(text) + encode_due(due_ms)
        return Destination(self._queues.route_rocketmq(TIMER_TOPIC, queue_id, ()), TIMER_TOPIC, text, found.flag[i])

    def go_back(self) -> None:
        """Spread again what is not kept."""
        self._spread_until.clear()
        self._look_at_ms = 0
