"""One light queue as one group shares it: what is taken, hidden, done, and shown again."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Protocol

from core.errors import ReceiptError
from core.message import AWAY, StoredBatch
from core.parted import PartedMap, mix_number
from core.pop.acknowledgers import Acknowledgers
from core.pop.ending_codes import code_of
from core.pop.endings import PURGED, PURGED_OR_DONE, Endings, runs_of
from core.pop.inflight import InFlight
from core.pop.journal import PopJournal
from core.pop.receipt import Receipt
from core.pop.timer_wheel import TimerWheel
from core.stage import Stage

AGAIN_COUNT_MAX = 1024  # messages looked up in one go for redelivery: as many as one batch of columns has
SHOW_COUNT_MAX = 8_192  # invisible times that end in one go: about a millisecond
_TIMERS_KEPT_MIN = 64  # fewer that are out of date are not worth making the wheel anew
Shown = Callable[[int], None]
Wake = Callable[[], None]


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


class PopDesk:
    """What all pop queues of a data folder work with.

    Args:
        store: Where the messages are.
        journal: Where changes are written.
        on_shown: Told the light queue when messages that were taken can be taken again.
        request_timer: Called when the earliest deadline of all has become earlier.
        by: Where it is kept which consumer acknowledged what.
    """

    __slots__ = (
        "acknowledgers", "endings", "journal", "offsets", "on_shown", "queues", "request_timer", "store", "timers",
    )  # fmt: skip

    def __init__(
        self, store: QueueStore, journal: PopJournal, on_shown: Shown, request_timer: Wake, by: Acknowledgers
    ) -> None:
        self.store = store
        self.journal = journal
        self.on_shown = on_shown
        self.request_timer = request_timer
        self.timers = TimerWheel()  # by number
        self.endings = Endings()
        self.acknowledgers = by
        self.queues: PartedMap[int, PopQueue] = PartedMap({}, mix_number)  # open ones, by number
        self.offsets = array("q", bytes(8 * AGAIN_COUNT_MAX))

    def arm(self, deadline_ms: int, number: int) -> None:
        """Let a pop queue be called at its deadline."""
        before = self.timers.next_deadline_ms()
        self.timers.add(deadline_ms, number, number + 1)
        if before is None or deadline_ms < before:
            self.request_timer()


class PopQueue:
    """One light queue as one group shares it. Made by `PopService.open`.

    A consumer that nobody else can take a message from, because it has it until it gives it back or is gone, settles it
    by its queue offset. One that has it until a moment needs a receipt: later the same offset may be another's.
    """

    __slots__ = ("_armed_ms", "_desk", "_store", "_timers", "fresh_from", "group", "queue", "queue_ref", "state")

    def __init__(self, desk: PopDesk, queue: bytes, group: bytes, state: InFlight) -> None:
        self.queue = queue
        self.group = group
        self.queue_ref = desk.store.intern_queue(queue)
        self._desk = desk
        self._store = desk.store
        self.state = state
        self.fresh_from = state.window.next_offset  # from here on nothing had been taken when it was opened
        self._timers: TimerWheel | None = None  # only where messages are hidden until a moment
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
    def again_count(self) -> int:
        """How many times messages were given that had been given before, since it was opened."""
        return self.state.again_count

    @property
    def floor(self) -> int:
        """The first offset that is not acknowledged: what lies before is not needed any more."""
        return self.state.window.floor()

    @property
    def next_offset(self) -> int:
        """The first offset that was never taken."""
        return self.state.window.next_offset

    def is_hidden(self, queue_offset: int) -> bool:
        """Return whether a message is hidden: a consumer has it, or it waits for the time to be shown again."""
        return self.state.window.code(queue_offset) & 1 == 1

    def attempt(self, queue_offset: int) -> int:
        """Return how often a message that is not acknowledged was taken, or 0."""
        return self.state.attempt(queue_offset)

    def identify(self, queue_offset: int) -> tuple[int, int]:
        """Return what `PopService.finish` knows a message by in a later process."""
        return self.state.number, queue_offset

    def stage(self, queue_offset: int) -> Stage:
        """Return how far a message is."""
        if queue_offset >= self.next_offset:
            return Stage.WAITS
        return self.state.stage(queue_offset)

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
            self._show_due(now_ms, SHOW_COUNT_MAX)
        count_max = min(count_max, into.capacity)
        into.clear()
        taken = self._take_again(into, count_max, bytes_max, until_ms) if count_max > 0 else 0
        if taken == AWAY:
            self._desk.journal.write()
            return AWAY
        if count_max > 0 and not taken:
            into.next_offset = self.state.window.next_offset
            if self._store.read(self.queue_ref, into.next_offset, into, count_max, bytes_max) == AWAY:
                self._desk.journal.write()
                return AWAY
            self.state.take_new(into, until_ms)
            if until_ms and into.count:
                self._hide_until(until_ms, into.queue_offset, into.count)
        self._desk.journal.write()
        return into.count

    def peek(self, into: StoredBatch, count_max: int) -> int:
        """Fill `into` with what `take` would give next, not taken; `attempt` says nothing. AWAY: it is on its way."""
        into.clear()
        window = self.state.window
        if window.shown_count:
            offsets = self._desk.offsets
            found = window.find_shown(offsets, min(count_max, AGAIN_COUNT_MAX, into.capacity))
            window.use_found(offsets, 0)
            if self._store.read_offsets(self.queue_ref, offsets, found, into) == AWAY:
                return AWAY
        if not into.count:
            return self._store.read(self.queue_ref, window.next_offset, into, min(count_max, into.capacity), 1 << 40)
        return into.count

    def read_offsets(self, offsets: array[int], count: int, into: StoredBatch) -> int:
        """Fill `into` with messages, the first `count` of these in ascending order, whatever became of them.

        Returns:
            How many of `offsets` are dealt with; those that are gone give no message. AWAY: none can be yet.
        """
        into.clear()
        return self._store.read_offsets(self.queue_ref, offsets, count, into)

    def _take_again(self, into: StoredBatch, count_max: int, bytes_max: int, until_ms: int) -> int:
        offsets = self._desk.offsets
        while self.state.window.shown_count:
            found = self.state.window.find_shown(offsets, min(count_max, AGAIN_COUNT_MAX))
            consumed = self._store.read_offsets(self.queue_ref, offsets, found, into)
            if consumed == AWAY:  # not gone: what was not dealt with is shown still
                self.state.window.use_found(offsets, 0)
                return AWAY
            taken = self.state.take_again(offsets, consumed, into, bytes_max, until_ms)
            if taken:
                if until_ms:
                    self._hide_until(until_ms, into.queue_offset, taken)
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

    def ack_by(self, queue_offsets: array[int], count: int, code: int) -> None:
        """Do what `ack_many` does of messages that the consumer of a code acknowledged; 0: it is not known."""
        changes = self._desk.journal.changes
        changes.ending = code
        wrong = self.state.ack_many(queue_offsets, count)
        changes.ending = 0
        self._desk.acknowledgers.note((self.queue, self.group), queue_offsets, count, code)
        self._check(wrong)

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
            self._hide_until(visible_at_ms, array("q", sorted(queue_offsets[:count])), count)
        elif count:
            self._desk.on_shown(self.queue_ref)
        self._check(wrong)

    def receipt(self, taken: StoredBatch, i: int) -> Receipt:
        """Return the proof that message `i` of what `take` gave is with the consumer that asked for it."""
        return Receipt(self.state.number, taken.queue_offset[i], taken.attempt[i])

    def ack_receipts(self, receipts: Sequence[Receipt]) -> int:
        """Finish messages; return how many receipts are stale: those change nothing."""
        offsets = self._find_current(receipts)
        self.state.ack_many(offsets, len(offsets))
        self._desk.journal.write()
        return len(receipts) - len(offsets)

    def nack_receipts(self, receipts: Sequence[Receipt], visible_at_ms: int = 0) -> int:
        """Show messages again, at once or at a moment, before or after the one that was said when they were taken.

        Their receipts are good until then. Return how many are stale: those change nothing.
        """
        offsets = self._find_current(receipts)
        self.nack_many(offsets, len(offsets), visible_at_ms)
        return len(receipts) - len(offsets)

    def ack_taken(self, queue_offsets: array[int], count: int, until_ms: int, code: int = 0) -> int:
        """Finish those of the first `count` of these messages, ascending, that are hidden until just that moment.

        The moment is the proof of a taking where what a consumer holds has no room for another: a message that is taken
        again is hidden until a later one. `code` is as of `ack_by`.

        Returns:
            How many were.
        """
        state = self.state
        offsets = queue_offsets[:count] if until_ms > 0 else ()  # 0 is said of what is hidden for good
        current = array("q", [offset for offset in offsets if state.until(offset) == until_ms])
        self.ack_by(current, len(current), code)
        return len(current)

    def change_invisible(self, queue_offset: int, until_ms: int, visible_at_ms: int) -> bool:
        """Show a message that is hidden until just that moment at another; 0: at once.

        Return whether it was hidden until then; else nothing changes.
        """
        if until_ms <= 0 or self.state.until(queue_offset) != until_ms:
            return False
        self.nack(queue_offset, visible_at_ms)
        return True

    def _find_current(self, receipts: Sequence[Receipt]) -> array[int]:
        """Return the offsets of messages that are still with the consumers that these receipts were given to."""
        state = self.state
        found: set[int] = set()
        for number, queue_offset, attempt in receipts:
            if number == state.number and state.is_taken(queue_offset, attempt):
                found.add(queue_offset)
        return array("q", sorted(found))

    def purge(self, now_ms: int = 0) -> int:
        """Finish all messages that no consumer has; return how many there were."""
        window, count, reader = self.state.window, self.ready_count, (self.queue, self.group)
        next_offset = max(self._store.max_offset(self.queue_ref), window.next_offset)
        first = self.floor if window.shown_count else window.next_offset  # what was taken is else done, or a consumer's
        self._desk.endings.note_run(reader, first, window.next_offset, PURGED_OR_DONE, now_ms)
        self._desk.endings.note_run(reader, window.next_offset, next_offset, PURGED, now_ms)
        self.state.purge(next_offset, code_of(PURGED, now_ms))
        self._desk.journal.write()
        return count

    def skip_to(self, queue_offset: int) -> None:
        """Take what was never taken below an offset as done; what was taken stays as it is."""
        self.state.skip_to(queue_offset)
        self._desk.journal.write()

    def seek(self, queue_offset: int) -> None:
        """Forget what each consumer has, and go on from an offset; receipts that were given are stale."""
        journal = self._desk.journal
        self._desk.queues.pop(self.state.number)
        before = self.state
        self.state = InFlight(journal.add_name(pop_key(self.queue, self.group)), journal.changes, queue_offset)
        self.state.skipped_count, self.state.again_count = before.skipped_count, before.again_count
        self.state.seek(queue_offset)
        self._desk.queues[self.state.number] = self
        self._timers = None
        self._armed_ms = None
        self._desk.on_shown(self.queue_ref)
        journal.write()

    def on_deadline(self, now_ms: int, count_max: int) -> int:
        """Do what the desk's timer was set for; return how many messages were looked at, at most `count_max`."""
        self._armed_ms = None
        return self._show_due(now_ms, count_max)

    def _show_due(self, now_ms: int, count_max: int) -> int:
        """End the invisible times that are over, and have the timer set for what is left."""
        timers = self._timers
        if timers is None:
            return 0
        shown = looked_at = 0
        while looked_at < count_max:
            due = timers.take_first(now_ms)
            if due is None:
                break
            until_ms, first, end = due
            until = min(end, first + count_max - looked_at)
            if until < end:
                timers.add(until_ms, until, end)
            shown += self.state.show_due(first, until, until_ms)
            looked_at += until - first
        self._arm(timers)
        if shown:
            self._desk.on_shown(self.queue_ref)
        return looked_at

    def _hide_until(self, until_ms: int, offsets: array[int], count: int) -> None:
        """Look at the first `count` of these messages, which are in ascending order, again at a moment."""
        timers = self._timers
        if timers is None:
            timers = self._timers = TimerWheel()
        first, end = offsets[0], offsets[count - 1] + 1
        if end - first == count:
            timers.add(until_ms, first, end)
        else:  # what lies between them may be very much
            for first, end in runs_of(offsets, count):
                timers.add(until_ms, first, end)
        if len(timers) > max(_TIMERS_KEPT_MIN, 4 * self.state.deadline_count()):
            timers.replace(self.state.deadlines())
        self._arm(timers)

    def _arm(self, timers: TimerWheel) -> None:
        deadline_ms = timers.next_deadline_ms()
        if deadline_ms is not None and (self._armed_ms is None or deadline_ms < self._armed_ms):
            self._desk.arm(deadline_ms, self.state.number)
            self._armed_ms = deadline_ms

    def _check(self, wrong: int) -> None:
        self._desk.journal.write()
        if wrong >= 0:
            raise ReceiptError(self.queue.decode(errors="replace"), wrong)


def pop_key(queue: bytes, group: bytes) -> bytes:
    """Return what the journal calls the pop queue of a light queue and a group."""
    return queue + b"\0" + group
