"""Shared consumption: many consumers of one light queue, each message to one of them until it is acknowledged."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from typing import Protocol

from core.errors import ReceiptError
from core.message import AWAY, StoredBatch
from core.pop.changes import DROP, FLOOR, ChangeLog
from core.pop.inflight import InFlight
from core.pop.journal import PopJournal
from core.pop.snapshot import snapshot_parts
from core.pop.timer_wheel import TimerWheel
from core.record_journal import RecordJournal

AGAIN_COUNT_MAX = 1024  # messages looked up in one go for redelivery
_TIMERS_KEPT_MIN = 64


class QueueStore(Protocol):
    """What shared consumption needs of the message store."""

    def intern_queue(self, key: bytes) -> int:
        """Return the number of a queue, made on first use."""

    def min_offset(self, queue_ref: int) -> int:
        """Return the first offset that is kept."""

    def max_offset(self, queue_ref: int) -> int:
        """Return the next offset to be given."""

    def read(self, queue_ref: int, offset: int, into: StoredBatch, count_max: int, bytes_max: int) -> int:
        """Read on in a queue."""

    def read_offsets(self, queue_ref: int, offsets: array[int], count: int, into: StoredBatch) -> int:
        """Read chosen offsets; return how many of them were dealt with."""


class PopQueue:
    """One light queue as one group shares it. Made by `PopService.open`."""

    __slots__ = ("_armed_ms", "_service", "_store", "_timers", "group", "queue", "queue_ref", "state")

    def __init__(self, service: PopService, queue: bytes, group: bytes, state: InFlight) -> None:
        self.queue = queue
        self.group = group
        self.queue_ref = service.store.intern_queue(queue)
        self._service = service
        self._store = service.store
        self.state = state
        self._timers: TimerWheel | None = None  # only where somebody hides messages until a moment
        self._armed_ms: int | None = None
        if state.deadline_count():
            self._timers = TimerWheel()
            self._timers.replace(state.deadlines())
            self._arm(self._timers)

    @property
    def ready_count(self) -> int:
        """How many messages could be taken now."""
        window = self.state.window
        first = window.next_offset
        end = self._store.max_offset(self.queue_ref)
        if first < end:
            first = max(first, self._store.min_offset(self.queue_ref))
        return window.shown_count + max(end - first, 0)

    @property
    def unacked_count(self) -> int:
        """How many messages are hidden: consumers have them, or they wait for the time to be shown again."""
        return self.state.window.hidden_count

    @property
    def skipped_count(self) -> int:
        """How many messages were lost to retention or damage before anybody acknowledged them, since the start."""
        return self.state.skipped_count

    @property
    def floor(self) -> int:
        """The first offset that is not acknowledged: what lies before is not needed any more."""
        return self.state.window.floor()

    @property
    def next_offset(self) -> int:
        """The first offset that was never taken."""
        return self.state.window.next_offset

    def attempt(self, queue_offset: int) -> int:
        """Return how often a message that is not acknowledged was taken, or 0."""
        return self.state.attempt(queue_offset)

    def take(self, into: StoredBatch, count_max: int, bytes_max: int, until_ms: int, now_ms: int) -> int:
        """Fill `into` with messages, and hide them.

        First those that were given before (`attempt` above 1), by offset, then new ones; never both in one call, so a
        caller that wants more calls again until 0.

        Returns:
            How many. AWAY: there are some, and they are on their way; nothing was taken.

        Args:
            into: Where they go; valid until it is filled again.
            count_max: At most so many.
            bytes_max: About so many bytes of records; one message is given in any case.
            until_ms: When those not acknowledged are shown again; 0 for never: the consumer's end is told by `nack`.
            now_ms: The time.
        """
        if self._timers is not None:
            self.expire(now_ms)
        count_max = min(count_max, into.capacity)
        into.clear()
        taken = self._take_again(into, count_max, bytes_max, until_ms) if count_max > 0 else 0
        if taken == AWAY:
            self._service.journal.write()
            return AWAY
        if count_max > 0 and not taken:
            into.next_offset = self.state.window.next_offset
            if self._store.read(self.queue_ref, into.next_offset, into, count_max, bytes_max) == AWAY:
                self._service.journal.write()
                return AWAY
            self.state.take_new(into, until_ms)
            if until_ms and into.count:
                self._hide_until(until_ms, into.queue_offset[0], into.queue_offset[into.count - 1] + 1)
        self._service.journal.write()
        return into.count

    def peek(self, into: StoredBatch, count_max: int) -> int:
        """Fill `into` with what `take` would give next, without taking it; `attempt` says nothing.

        Nothing while that is on its way.
        """
        into.clear()
        window = self.state.window
        if window.shown_count:
            offsets = self._service.offsets
            found = window.find_shown(offsets, min(count_max, AGAIN_COUNT_MAX, into.capacity))
            window.use_found(offsets, 0)
            self._store.read_offsets(self.queue_ref, offsets, found, into)
        if not into.count:
            self._store.read(self.queue_ref, window.next_offset, into, min(count_max, into.capacity), 1 << 40)
        return into.count

    def _take_again(self, into: StoredBatch, count_max: int, bytes_max: int, until_ms: int) -> int:
        offsets = self._service.offsets
        while self.state.window.shown_count:
            found = self.state.window.find_shown(offsets, min(count_max, AGAIN_COUNT_MAX))
            consumed = self._store.read_offsets(self.queue_ref, offsets, found, into)
            if consumed == AWAY:  # not gone: what was not dealt with is shown still
                self.state.window.use_found(offsets, 0)
                return AWAY
            taken = self.state.take_again(offsets, consumed, into, bytes_max, until_ms)
            if taken:
                if until_ms:
                    self._hide_until(until_ms, into.queue_offset[0], into.queue_offset[taken - 1] + 1)
                return taken
            if not consumed:
                return 0
        return 0

    def ack(self, queue_offset: int) -> None:
        """Finish a message that was taken.

        Raises:
            ReceiptError: It is not hidden now.
        """
        self.ack_many(array("q", (queue_offset,)), 1)

    def ack_many(self, queue_offsets: array[int], count: int) -> None:
        """Finish the first `count` of these messages.

        Raises:
            ReceiptError: One of them is not hidden now; the others are done.
        """
        self._check(self.state.ack_many(queue_offsets, count))

    def nack(self, queue_offset: int, visible_at_ms: int = 0) -> None:
        """Show a message that was taken again, at once or at a moment.

        Raises:
            ReceiptError: It is not hidden now.
        """
        self.nack_many(array("q", (queue_offset,)), 1, visible_at_ms)

    def nack_many(self, queue_offsets: array[int], count: int, visible_at_ms: int = 0) -> None:
        """Show the first `count` of these messages again, at once or at a moment.

        Raises:
            ReceiptError: One of them is not hidden now; the others are shown.
        """
        wrong = self.state.hide_many(queue_offsets, count, visible_at_ms)
        if visible_at_ms and count:
            first, end = min(queue_offsets[:count]), max(queue_offsets[:count]) + 1
            self._hide_until(visible_at_ms, first, end)
        elif count:
            self._service.on_shown(self.queue_ref)
        self._check(wrong)

    def change_invisible(self, queue_offset: int, until_ms: int) -> None:
        """Hide a message that was taken for longer or shorter than was said before.

        Raises:
            ReceiptError: It is not hidden now.
        """
        self.nack(queue_offset, until_ms)

    def purge(self) -> int:
        """Finish all messages that no consumer has; return how many there were."""
        next_offset = max(self._store.max_offset(self.queue_ref), self.state.window.next_offset)
        count = self.ready_count
        self.state.purge(next_offset)
        self._service.journal.write()
        return count

    def seek(self, queue_offset: int) -> None:
        """Forget what each consumer has, and go on from an offset."""
        self.state.seek(queue_offset)
        self._timers = None
        self._service.on_shown(self.queue_ref)
        self._service.journal.write()

    def next_deadline_ms(self) -> int | None:
        """Return when `expire` may have something to do."""
        return None if self._timers is None else self._timers.next_deadline_ms()

    def expire(self, now_ms: int) -> int:
        """Show messages again whose time is over; return how many."""
        if self._timers is None:
            return 0
        shown = 0
        for until_ms, first, end in self._timers.take_due(now_ms):
            shown += self.state.show_due(first, end, until_ms)
        self._arm(self._timers)
        if shown:
            self._service.on_shown(self.queue_ref)
        return shown

    def _hide_until(self, until_ms: int, first: int, end: int) -> None:
        timers = self._timers
        if timers is None:
            timers = self._timers = TimerWheel()
        timers.add(until_ms, first, end)
        if len(timers) > max(_TIMERS_KEPT_MIN, 4 * self.state.deadline_count()):
            timers.replace(self.state.deadlines())
        self._arm(timers)

    def _arm(self, timers: TimerWheel) -> None:
        deadline_ms = timers.next_deadline_ms()
        if deadline_ms is not None and (self._armed_ms is None or deadline_ms < self._armed_ms):
            self._service.timers.add(deadline_ms, self.state.number, self.state.number + 1)
            self._armed_ms = deadline_ms

    def on_deadline(self, now_ms: int) -> int:
        """Do what the service's timer was set for; return how many messages are shown again."""
        self._armed_ms = None
        return self.expire(now_ms)

    def _check(self, wrong: int) -> None:
        self._service.journal.write()
        if wrong >= 0:
            raise ReceiptError(self.queue.decode(errors="replace"), wrong)


class PopService:
    """All pop queues of a data folder; what their consumers did outlives a killed process.

    Args:
        store: Where the messages are.
        journal: Where changes are written, and read from here.
        on_shown: Told the light queue when messages that were taken can be taken again: a reader that waits there is to
            be woken.
    """

    def __init__(
        self, store: QueueStore, journal: RecordJournal, on_shown: Callable[[int], None] = lambda _queue_ref: None
    ) -> None:
        self.store = store
        self.on_shown = on_shown
        self.timers = TimerWheel()
        self.offsets = array("q", bytes(8 * AGAIN_COUNT_MAX))
        self.journal = PopJournal(journal, self._write_snapshots)
        self._queues: dict[int, PopQueue] = {}  # open ones, by number
        self._states: dict[int, InFlight] = {}  # of others where something is in flight
        self._resting: dict[int, int] = {}  # the next offset of the rest
        self.journal.replay(self._apply)
        named = set(self.journal.names.values())
        for number in [*self._states, *self._resting]:
            state = self._states.get(number)
            if number not in named:  # a crash came before its name
                self._states.pop(number, None)
                self._resting.pop(number, None)
            elif state is not None and state.window.is_empty():
                self._resting[number] = self._states.pop(number).window.next_offset

    def open(self, queue: bytes, group: bytes, start_offset: int | None = None) -> PopQueue:
        """Return the pop queue of a light queue and a group, the same object each time.

        Args:
            queue: The light queue's name.
            group: Who shares it.
            start_offset: Where one that was never opened, or was dropped, begins; else at the first message kept.
        """
        key = queue + b"\0" + group
        found = self._queues.get(self.journal.names.get(key, -1))
        if found is None:
            state = self._take_state(key, queue, start_offset)
            found = self._queues[state.number] = PopQueue(self, queue, group, state)
            self.journal.write()
        return found

    def drop(self, queue: bytes, group: bytes) -> None:
        """Forget a pop queue; harmless where there is none."""
        key = queue + b"\0" + group
        number = self.journal.names.get(key)
        if number is None:
            return
        self._queues.pop(number, None)
        self._states.pop(number, None)
        self._resting.pop(number, None)
        self.journal.drop_name(key)
        self.journal.write()

    def floors(self, group: bytes) -> Iterator[tuple[bytes, int]]:
        """Give light queue and first offset that is not acknowledged of each pop queue of a group, open or not.

        Pop queues may come and go between two of them.
        """
        for key, number in list(self.journal.names.items()):
            queue, _, owner = key.partition(b"\0")
            if owner == group and self.journal.names.get(key) == number:
                yield queue, self._floor_of(number)

    def _floor_of(self, number: int) -> int:
        if number in self._queues:
            return self._queues[number].floor
        return self._states[number].window.floor() if number in self._states else self._resting[number]

    def next_deadline_ms(self) -> int | None:
        """Return when `expire` may have something to do."""
        return self.timers.next_deadline_ms()

    def expire(self, now_ms: int) -> list[PopQueue]:
        """Show messages again whose time is over; return the pop queues where there were such."""
        shown: list[PopQueue] = []
        for _, number, _ in self.timers.take_due(now_ms):
            queue = self._queues.get(number)
            if queue is not None and queue.on_deadline(now_ms):
                shown.append(queue)
        return shown

    def _take_state(self, key: bytes, queue: bytes, start_offset: int | None) -> InFlight:
        """Return the state of a pop queue that is being opened."""
        queue_ref = self.store.intern_queue(queue)
        number = self.journal.names.get(key)
        if number is None:
            first = self.store.min_offset(queue_ref) if start_offset is None else start_offset
            state = InFlight(self.journal.add_name(key), self.journal.changes, first)
            state.seek(first)
            return state
        found = self._states.pop(number, None)
        state = InFlight(number, self.journal.changes, self._resting.pop(number)) if found is None else found
        if state.window.next_offset > self.store.max_offset(queue_ref):
            state.trim(self.store.max_offset(queue_ref))
        return state

    def _apply(self, number: int, kind: int, first: int, count: int, value: int) -> None:
        if kind == DROP:
            self._states.pop(number, None)
            self._resting.pop(number, None)
        elif kind == FLOOR and first == value:
            self._states.pop(number, None)
            self._resting[number] = value
        else:
            state = self._states.get(number)
            if state is None:
                state = self._states[number] = InFlight(number, self.journal.changes, self._resting.pop(number, 0))
            state.apply(kind, first, count, value)

    def _write_snapshots(self, log: ChangeLog) -> Iterator[tuple[int, bytes | None, int]]:
        """Give the parts that a compaction copies; between two of them anything may happen."""
        for key in list(self.journal.names):
            number = self.journal.names.get(key, -1)
            if number in self._resting:
                log.put(number, FLOOR, self._resting[number], 0, self._resting[number])
                yield number, key, 0
            elif number >= 0:
                state = self._queues[number].state if number in self._queues else self._states[number]
                name: bytes | None = key
                for looked_at in snapshot_parts(state, log):
                    yield number, name, looked_at
                    name = None
                    if self.journal.names.get(key) != number:
                        break  # it was dropped, and nothing of it may come after that
