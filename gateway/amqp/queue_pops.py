"""What is taken and done in the queues of a virtual host, opened as each queue's terms ask for it."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from core.broker import Broker
from core.errors import LmqError
from core.lmq.lifetimes import KEPT
from core.lmq.queue_name import amqp_level_name, amqp_refused_name
from core.message import StoredBatch
from core.queues.levelled_queue import CountedLevel, LevelledQueue
from core.queues.terms import QueueTerms
from gateway.amqp.queue_ties import Shared

GROUP = b"amqp"
BYTES_TABLE = "amqp_bytes"
LEVELS_TABLE = "amqp_levels"  # where in the log a queue with priorities begins
_PLACE_BYTES = 8  # of a place in the log: 64 bits
COUNTED_AT_ONCE = 1_024  # messages: as many as one batch of columns has


class QueuePops:
    """Opens and drops the pop queues of the AMQP queues of a virtual host.

    Args:
        broker: Where they are.
        note_opened: Is told each queue that is opened, or begins anew.
    """

    def __init__(self, broker: Broker, note_opened: Callable[[Any], None] | None = None) -> None:
        self._broker = broker
        self._bytes = broker.table(BYTES_TABLE)
        self._first_places = broker.table(LEVELS_TABLE)
        self._counting: StoredBatch | None = None  # made when bytes are counted
        self.note_opened = note_opened or _note_nothing

    def open(self, light_name: bytes, terms: QueueTerms, start_offset: int | None = None) -> Shared:
        """Return what is taken and done in a light queue; a new one begins at `start_offset`."""
        if terms.bytes_max < 0:
            return self._broker.pop.open(light_name, GROUP, start_offset)
        if self._counting is None:
            self._counting = StoredBatch(COUNTED_AT_ONCE)
        return self._broker.pop.open_counted(light_name, GROUP, start_offset, self._counting, self._bytes)

    def knows(self, light_name: bytes) -> bool:
        """Return whether it was opened since the queue was declared: else all that came to the queue is there."""
        return self._broker.pop.knows(light_name, GROUP)

    def floor(self, light_name: bytes, default: int) -> int:
        """Return the first offset that is not acknowledged; `default` where it was never opened."""
        return self._broker.pop.floor(light_name, GROUP, default)

    def resting_at(self, light_name: bytes, default: int) -> int:
        """Return the first offset that was never taken, where nothing before it is in flight.

        `default` where it was never opened, -1 where it is open or something is in flight.
        """
        return self._broker.pop.resting_at(light_name, GROUP, default)

    def is_untouched(self, light_name: bytes, terms: QueueTerms, first_offset: int) -> bool:
        """Return whether nothing ever came to a queue that begins at `first_offset`; False where it has levels."""
        broker = self._broker
        return terms.priority_max == 0 and broker.max_offset(broker.intern_queue(light_name)) <= first_offset

    def rest(self, light_name: bytes, terms: QueueTerms) -> bool:
        """Keep no more than the place of a queue without levels, where nothing is in flight; return whether so."""
        return terms.bytes_max < 0 and self._broker.pop.rest(light_name, GROUP)

    def light_names(self, light_name: bytes, terms: QueueTerms) -> list[bytes]:
        """Return the light queue of a queue, and those of its levels that are in use."""
        return [light_name, *(_name_level(light_name, level) for level in self._used(light_name, terms))]

    def _used(self, light_name: bytes, terms: QueueTerms) -> list[int]:
        levels = range(1, terms.priority_max + 1)
        return [level for level in levels if self._broker.find_queue(amqp_level_name(light_name, level)) >= 0]

    def open_levels(
        self, light_name: bytes, terms: QueueTerms, on_opened: Callable[[int], None], *, is_new: bool = False
    ) -> LevelledQueue:
        """Return the same for a queue with priorities; a new one begins empty, whatever its light queues hold.

        `on_opened` is told the number of a light queue that a level has from now on.
        """
        broker = self._broker
        used = self._used(light_name, terms)
        if is_new:
            self._first_places.put(light_name, broker.end_place.to_bytes(_PLACE_BYTES))
            for name in (light_name, *(amqp_level_name(light_name, level) for level in used)):
                self.open(name, terms, broker.max_offset(broker.intern_queue(name)))
        return LevelledQueue(
            terms.priority_max,
            partial(self._open_level, light_name, terms, on_opened),
            partial(_name_level, light_name),
            used=used,
            max_offset=broker.max_offset,
            on_opened=on_opened,
            first_place=int.from_bytes(self._first_places.get(light_name) or b""),
        )

    def _open_level(
        self, light_name: bytes, terms: QueueTerms, on_opened: Callable[[int], None], level: int
    ) -> CountedLevel:
        name = _name_level(light_name, level)
        is_new = not self.knows(name)
        found = cast("CountedLevel", self.open(name, terms))
        if is_new:  # a dead letter names it: it is to be on the disk before a message of it is confirmed
            self._broker.keep_first()
        self._broker.open_queue(found.queue_ref, partial(_tell_opened, on_opened, found.queue_ref))
        return found

    def note_ended(
        self, light_name: bytes, offsets: Sequence[int], count: int, reason: bytes, now_ms: int, *, is_lost: bool
    ) -> None:
        """Note why the first `count` of these messages end; `is_lost`: they have no dead letters."""
        self._broker.pop.endings.note((light_name, GROUP), offsets, count, reason.decode(), now_ms)
        if is_lost:
            self._broker.metrics.door("amqp").drop(reason.decode(), count)

    def finish(self, pop: Shared, offsets: array[int], count: int, reason: bytes, now_ms: int) -> None:
        """Finish the first `count` of these messages, that no consumer has, for a reason that outlives the process."""
        with self._broker.pop.ending_as(reason.decode(), now_ms):
            pop.ack_many(offsets, count)

    def tell_lifetime(self, light_name: bytes, terms: QueueTerms, *, is_kept: bool) -> None:
        """Tell readers of other doors how long messages live in a queue; `is_kept`: for ever, whatever they say."""
        for level in range(terms.priority_max + 1):
            limit_ms = KEPT if is_kept else terms.message_ttl_ms
            self._broker.lifetimes.put(_name_level(light_name, level), limit_ms)

    def restore(self, light_name: bytes, priority_max: int, first_offset: int) -> bool:
        """Have a queue again that is still written down: the process ended before its deletion was.

        Return whether anything was forgotten of it.
        """
        if priority_max > 0:  # it is opened when it is declared: one of the same name since then would be known
            first_offset = 0
        found = self._broker.pop.restore(light_name, GROUP, first_offset)
        for name in (amqp_refused_name(light_name), *(_name_level(light_name, k) for k in range(1, priority_max + 1))):
            found |= self._broker.pop.restore(name, GROUP, 0)
        return found

    def drop(self, light_name: bytes, priority_max: int = 0) -> None:
        """Forget it, with all its levels; harmless where there is nothing.

        A commit may begin as the first is dropped, so all rows go before that.
        """
        if priority_max > 0:
            self._first_places.delete(light_name)
        names = [_name_level(light_name, level) for level in range(priority_max + 1)]
        for name in names:
            self._bytes.delete(name)
        for name in names:
            self._broker.lifetimes.drop(name)
            self._broker.pop.drop(name, GROUP)


def _note_nothing(_queue: object) -> None:
    """Nobody keeps what is known of queues."""


def _tell_opened(on_opened: Callable[[int], None], queue_ref: int, error: LmqError | None) -> None:
    if error is None:
        on_opened(queue_ref)


def _name_level(light_name: bytes, level: int) -> bytes:
    return amqp_level_name(light_name, level) if level else light_name
