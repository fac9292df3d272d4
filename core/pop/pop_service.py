"""Shared consumption: many consumers of one light queue, each message to one of them until it is acknowledged."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from operator import itemgetter

from core.errors import LmqError
from core.message import AWAY, StoredBatch
from core.metrics import PopCounts
from core.pop.acknowledgers import Acknowledgers, NoRows, Rows
from core.pop.byte_sums import ByteRows, ByteSums
from core.pop.changes import ACK, DROP, FLOOR, JUMP, ChangeLog
from core.pop.counted_queue import CountedQueue
from core.pop.ending_codes import LETTER, code_of
from core.pop.inflight import InFlight
from core.pop.journal import PopJournal
from core.pop.pop_queue import SHOW_COUNT_MAX, PopDesk, PopQueue, QueueStore, pop_key
from core.pop.snapshot import snapshot_parts
from core.pop.told_endings import ToldEndings, is_all_done
from core.record_journal import RecordJournal

_QUEUE_LOOKS = 16  # what a pop queue with a deadline costs, in messages that are looked at


def _nothing() -> None:
    return


def _at_once(then: Callable[[LmqError | None], None]) -> None:
    then(None)


class PopService:
    """All pop queues of a data folder; what their consumers did outlives a killed process.

    Args:
        store: Where the messages are.
        journal: Where changes are written, and read from here.
        on_shown: Told the light queue when messages that were taken can be taken again: its readers are to be woken.
        request_timer: Called when `expire` is wanted earlier than was known.
        when_kept: Calls back when deletions so far are durable. Until then a killed process has dropped ones again.
        consumers: Where the names of consumers are kept, by the codes that the journal has of them.
    """

    def __init__(
        self,
        store: QueueStore,
        journal: RecordJournal,
        on_shown: Callable[[int], None] = lambda _queue_ref: None,
        request_timer: Callable[[], None] = _nothing,
        when_kept: Callable[[Callable[[LmqError | None], None]], None] = _at_once,
        *,
        consumers: Rows | None = None,
    ) -> None:
        self.journal = PopJournal(journal, self._write_snapshots)
        self._store = store
        self.acknowledgers = Acknowledgers(NoRows() if consumers is None else consumers)
        self._desk = PopDesk(store, self.journal, on_shown, request_timer, self.acknowledgers)
        self._queues = self._desk.queues
        self.endings = self._desk.endings
        self._states: dict[int, InFlight] = {}  # of others where something is in flight
        self._resting: dict[int, int] = {}  # the next offset of the rest
        self._when_kept = when_kept
        self._dropped: dict[int, tuple[bytes, InFlight]] = {}  # by number, with its key, until that is durable
        self._keys: dict[int, bytes] = {}  # by number, while messages are finished that letters are of
        self._renumbered: dict[int, int] = {}  # since the start: the numbers that others were before
        self._told = ToldEndings(self.endings, self.acknowledgers, self.journal.changes)
        self.journal.replay(self._apply)
        self._told.settle(self.journal.names.items())
        named = {*map(itemgetter(1), self.journal.names.items()), *self.journal.dropped.values()}
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
            group: The consumers that share it.
            start_offset: Where one that was never opened, or was dropped, begins; else at the first message kept.
        """
        key = pop_key(queue, group)
        found = self._queues.get(self.journal.names.get(key, -1))
        if found is None:
            state = self._take_state(key, queue, start_offset)
            found = self._queues[state.number] = PopQueue(self._desk, queue, group, state)
            self.journal.write()
        return found

    def open_counted(
        self, queue: bytes, group: bytes, start_offset: int | None, stored: StoredBatch, table: ByteRows
    ) -> CountedQueue:
        """Return the pop queue of a light queue and a group, so that it knows the bytes of what is ready.

        Args:
            queue: The light queue's name.
            group: The consumers that share it.
            start_offset: As of `open`; where it is said, what is known from before is forgotten.
            stored: A batch to read into.
            table: Where what a restart needs is kept, by the light queue's name.
        """
        inner = self.open(queue, group, start_offset)
        row = table.get(queue) if start_offset is None else None
        sums = ByteSums(inner.next_offset) if row is None else ByteSums.load(row)
        counted = CountedQueue(inner, self._store, stored, sums, partial(table.put, queue))
        table.put(queue, sums.dump())
        return counted

    def find(self, queue: bytes, group: bytes) -> PopQueue | None:
        """Return the pop queue of a light queue and a group, None where there is none."""
        return self.open(queue, group) if self.knows(queue, group) else None

    def knows(self, queue: bytes, group: bytes) -> bool:
        """Return whether a pop queue was ever opened, and not dropped since."""
        return pop_key(queue, group) in self.journal.names

    def resting_at(self, queue: bytes, group: bytes, default: int) -> int:
        """Return the first offset that was never taken of a pop queue that rests: nothing before it is in flight.

        `default` where it was never opened, -1 where it is open or something is in flight.
        """
        number = self.journal.names.get(pop_key(queue, group))
        return default if number is None else self._resting.get(number, -1)

    def rest(self, queue: bytes, group: bytes) -> bool:
        """Keep no more of a pop queue than its place, if nothing of it is in flight; return whether it was so and open.

        `open` gives another object then.
        """
        found = self._queues.get(self.journal.names.get(pop_key(queue, group), -1))
        if found is None or not found.state.window.is_empty():
            return False
        self._queues.pop(found.state.number)
        self._resting[found.state.number] = found.next_offset
        return True

    def drop(self, queue: bytes, group: bytes) -> None:
        """Forget a pop queue; harmless where there is none."""
        key = pop_key(queue, group)
        number = self.journal.names.get(key)
        if number is None:
            return
        opened = self._queues.pop(number)
        state = self._states.pop(number, None) if opened is None else opened.state
        place = self._resting.pop(number, 0)
        self.acknowledgers.forget((queue, group))
        self._dropped[number] = key, state or InFlight(number, self.journal.changes, place)
        self._when_kept(partial(self._note_kept, number))
        self.journal.drop_name(key)
        self.journal.write()

    def _note_kept(self, number: int, error: LmqError | None) -> None:
        if error is None:
            del self._dropped[number]

    @property
    def has_dropped(self) -> bool:
        """Whether there are pop queues to be restored."""
        return bool(self.journal.dropped)

    def restore(self, queue: bytes, group: bytes, first_offset: int) -> bool:
        """Have a pop queue again that was dropped before the start, with what its consumers did.

        It was dropped because its queue was deleted, and the process ended before the deletion was durable. One that
        took nothing at or after `first_offset` stays dropped: it belonged to an older queue of that name.

        Return whether it is there again.
        """
        key = pop_key(queue, group)
        number = self.journal.dropped.pop(key, -1)
        if number not in self._states and number not in self._resting:
            return False
        state = self._states.pop(number, None) or InFlight(number, self.journal.changes, self._resting.pop(number))
        if state.window.next_offset <= first_offset:
            return False
        self._renumber(key, state)
        self._states[state.number] = state
        self.journal.write()
        return True

    def forget_dropped(self) -> None:
        """Know no more of those that were dropped before the start."""
        for number in self.journal.dropped.values():
            self._states.pop(number, None)
            self._resting.pop(number, None)
        self.journal.dropped = {}

    def overrun(self) -> Iterator[bytes]:
        """Give the keys of pop queues that are, as far as is known, further than their light queues go; none is open.

        A power cut took messages from the log and left what consumers did with them.
        """
        for key, number in list(self.journal.names.items()):
            state = self._states.get(number)
            place = self._resting.get(number, 0) if state is None else state.window.next_offset
            if place and place > self._store.max_offset(self._store.intern_queue(key.partition(b"\0")[0])):
                yield key

    def cut_back(self, key: bytes) -> bool:
        """Forget what a pop queue that is not open knows of messages that are not there any more.

        The end of its light queue is known. Return whether there was anything to forget.
        """
        number = self.journal.names.get(key, -1)
        if number not in self._states and number not in self._resting:
            return False
        state = self._take_state(key, key.partition(b"\0")[0], None)
        self._states[state.number] = state
        self.journal.write()
        return state.number != number

    def finish(self, number: int, queue_offset: int, place: int) -> bool:
        """Finish a message of a pop queue that was not opened since the start, by what `PopQueue.identify` said of it.

        A number that is not known is given to no other pop queue from now on. `write` has to follow.

        Args:
            number: The pop queue.
            queue_offset: The message in its light queue.
            place: Its physical offset; after a power cut the queue offset may be another's.

        Returns:
            Whether it is there and was not done yet.
        """
        self.journal.next_number = max(self.journal.next_number, number + 1)
        number = self._renumbered.get(number, number)
        state = self._states.get(number)
        if state is None and self._resting.get(number, queue_offset + 1) > queue_offset:
            return False
        if not self._is_at(number, queue_offset, place):
            return False
        if state is None:
            state = self._states[number] = InFlight(number, self.journal.changes, self._resting.pop(number))
        with self.ending_as(LETTER, 0):
            is_finished = state.finish(queue_offset)
        if is_finished:
            queue, _, group = self._keys[number].partition(b"\0")
            self.endings.note_run((queue, group), queue_offset, queue_offset + 1, LETTER, 0)
        return is_finished

    @contextmanager
    def ending_as(self, reason: str, now_ms: int) -> Iterator[None]:
        """Have the journal say why messages end that are finished meanwhile, and that nobody acknowledged them."""
        changes = self.journal.changes
        changes.ending = code_of(reason, now_ms)
        try:
            yield
        finally:
            changes.ending = 0

    def tell_ends(self, queue: bytes, group: bytes, offsets: Sequence[int], reason: str, now_ms: int) -> None:
        """Say of messages, ascending, that are done for the group why they ended; harmless without a pop queue."""
        number = self.journal.names.get(pop_key(queue, group))
        if number is not None:
            self._told.tell((queue, group), number, offsets, reason, now_ms)
            self.journal.write()

    def tells_endings(self, queue: bytes, group: bytes, *, is_of_subscribers: bool = False) -> bool:
        """Return whether it is known of all messages that a pop queue finished how, also before the start.

        What was forgotten of it `endings.is_kept` says. Groups of subscribers tell since a later version.
        """
        number = self.journal.names.get(pop_key(queue, group), -1)
        return self._told.is_told(number, is_of_subscribers=is_of_subscribers)

    def _is_at(self, number: int, queue_offset: int, place: int) -> bool:
        """Return whether a message of a pop queue lies there in the log, as far as that can be told."""
        if not self._keys:
            self._keys = {each: key for key, each in self.journal.names.items()}
        queue = self._keys[number].partition(b"\0")[0]
        one = StoredBatch(1)
        found = self._store.read_offsets(self._store.intern_queue(queue), array("q", (queue_offset,)), 1, one)
        return found == AWAY or (one.count == 1 and one.physical_offset[0] == place)

    def write(self) -> None:
        """Write down what `finish` changed."""
        self._keys = {}
        self.journal.write()

    @property
    def is_written(self) -> bool:
        """Whether all that consumers did is in the journal: on a full disk it waits for room."""
        return self.journal.is_written

    def floors(self, group: bytes) -> Iterator[tuple[bytes, int]]:
        """Give light queue and first offset that is not acknowledged of each pop queue of a group, open or not.

        Pop queues may come and go between two of them.
        """
        for key in self.journal.names.list_keys():  # pairs would be a hundred thousand objects made in one step
            queue, _, owner = key.partition(b"\0")
            number = self.journal.names.get(key)
            if owner == group and number is not None:
                yield queue, self._floor_of(number)

    def floor(self, queue: bytes, group: bytes, default: int) -> int:
        """Return the first offset that is not acknowledged of a pop queue; `default` where there is none."""
        number = self.journal.names.get(pop_key(queue, group))
        return default if number is None else self._floor_of(number)

    def _floor_of(self, number: int) -> int:
        if (queue := self._queues.get(number)) is not None:
            return queue.floor
        return self._states[number].window.floor() if number in self._states else self._resting[number]

    def counts(self) -> PopCounts:
        """Return what happened to messages since the start."""
        log = self.journal.changes
        return PopCounts(log.taken, log.taken_again, log.done, log.given_back, log.timed_out)

    def next_deadline_ms(self) -> int | None:
        """Return when `expire` may have something to do."""
        return self._desk.timers.next_deadline_ms()

    def expire(self, now_ms: int) -> bool:
        """End the invisible times that are over: their messages are ready again.

        Returns:
            Whether that is all. Where there are very many, it is not: this takes about a millisecond, and the caller is
            to come again when others had their turn.
        """
        timers = self._desk.timers
        left = SHOW_COUNT_MAX
        while left > 0:
            due = timers.take_first(now_ms)
            if due is None:
                return True
            queue = self._queues.get(due[1])
            left -= _QUEUE_LOOKS
            if queue is not None:
                left -= queue.on_deadline(now_ms, max(left, _QUEUE_LOOKS))
        deadline_ms = timers.next_deadline_ms()
        return deadline_ms is None or deadline_ms > now_ms

    def _take_state(self, key: bytes, queue: bytes, start_offset: int | None) -> InFlight:
        """Return the state of a pop queue that is being opened."""
        queue_ref = self._store.intern_queue(queue)
        number = self.journal.names.get(key)
        if number is None:
            first = self._store.min_offset(queue_ref) if start_offset is None else start_offset
            self._told.begin(self.journal.next_number)
            state = InFlight(self.journal.add_name(key), self.journal.changes, first)
            state.seek(first)
            return state
        found = self._states.pop(number, None)
        state = InFlight(number, self.journal.changes, self._resting.pop(number)) if found is None else found
        if state.window.next_offset > self._store.max_offset(queue_ref):
            state.trim(self._store.max_offset(queue_ref))
            self._renumber(key, state)
        return state

    def _renumber(self, key: bytes, state: InFlight) -> None:
        """Make receipts stale: their queue offsets may become those of other messages."""
        before, state.number = state.number, self.journal.add_name(key)
        self._renumbered[before] = state.number
        self._told.renumber(key, state.number, state.window.next_offset)
        self._keys = {}
        for _ in snapshot_parts(state, self.journal.changes):
            pass

    def _apply(self, number: int, kind: int, first: int, count: int, value: int) -> None:
        if kind == DROP:
            self._states.pop(number, None)
            self._resting.pop(number, None)
        elif kind == FLOOR and first == value:
            self._states.pop(number, None)
            self._resting[number] = value
        else:
            state = self._states.get(number)
            next_offset = self._resting.get(number, 0) if state is None else state.window.next_offset
            if kind == ACK and value:
                self._told.read(number, first, first + count, value)
                if state is None or first >= next_offset or is_all_done(state.window, first + count):
                    return  # a copy by a compaction, of messages that are done
            elif kind == JUMP and first and next_offset < value and (next_offset or number in self._resting):
                self._told.read(number, next_offset, value, first)  # else it came before its queue's part of a copy
            if state is None:
                state = self._states[number] = InFlight(number, self.journal.changes, self._resting.pop(number, 0))
            state.apply(kind, first, count, value)

    def _write_snapshots(self, log: ChangeLog) -> Iterator[tuple[int, bytes | None, int]]:
        """Give the parts that a compaction copies; between two of them anything may happen."""
        for key in self.journal.names.list_keys():
            number = self.journal.names.get(key, -1)
            if number in self._resting:
                records = self._told.put(key, number, log)
                log.put(number, FLOOR, self._resting[number], 0, self._resting[number])
                yield number, key, records
            elif number >= 0:
                queue = self._queues.get(number)
                state = self._states[number] if queue is None else queue.state
                name: bytes | None = key
                self._told.put(key, number, log)
                for looked_at in snapshot_parts(state, log):
                    yield number, name, looked_at
                    name = None
                    if self.journal.names.get(key) != number:
                        break  # it was dropped, and nothing of it may come after that
        for number in list(self._dropped):
            found = self._dropped.get(number)
            if found is None or found[0] in self.journal.names:
                continue  # its end is durable by now, or another has its queue and its end means nothing
            key, state = found  # how its messages ended is left out: `restore` renumbers, and keeps nothing of that
            yield number, key, 0  # the name first: it voids what the copy may have of it from before
            for looked_at in snapshot_parts(state, log):
                yield number, None, looked_at
            log.put(number, DROP, 0, 0, 0)
            yield number, None, 0
        if self._told.put_mark(log):  # last, so that it tells of all copied ones whether others were forgotten
            yield self._told.mark, None, 0
