"""One durable timer: messages wait in queues of the log, and are handed on when they are due.

What is due in this minute is in memory, 8 bytes a message; the rest lies in the queues of its minute, or of its day,
which is spread over its minutes some hours before. Nothing is handed on early. What was handed on is remembered when
it is as safe as the settings say: a killed process hands on again what it cannot be sure of, and loses nothing.

Source: docs/decisions/0034-one-timer.md.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from core.errors import LmqError
from core.lmq.waiters import Reader
from core.message import AWAY, Route, StoredBatch
from core.schedule.far_days import FarDays
from core.schedule.hand_on import COUNT_MAX, Destination, HandOn
from core.schedule.near_slot import Entry, NearSlot, find_rows, read_texts
from core.schedule.progress import Progress
from core.schedule.slots import (
    FAR_MS,
    NEAR_MS,
    NEAR_SLOTS,
    TIMER_TOPIC,
    day_of,
    find_queues,
    near_queue,
    queue_key,
    queue_of,
    strip_due,
)
from core.schedule.taking_back import TakenBack, Waiting, cancel_prefix, put_cancel
from core.schedule.timer_broker import TimerBroker

LOGGER = logging.getLogger(__name__)

PLACES_GROUP = b"CID_RMQ_SYS_TIMER"  # its offsets in the queues are how far each is needed; no client can commit there
BYTES_MAX = 1 << 20  # of one read of a minute's queue, so that large bodies do not hold the loop
LOOK_AHEAD_MS = 20_000  # the next minute's queue is read so long before it begins
RECALLS_MAX = 100_000  # of one minute or day: some 10 MB in the minute in which they are looked for
AGAIN_MS = 1_000  # how long to wait where nothing can be stored; chosen: room does not come back sooner

Resolver = Callable[[bytes, int], Destination | None]
"""Says where a message goes by its properties, those of its waiting record but the timer's own, and its flag."""


def _nothing(at_ms: int) -> None:
    del at_ms


class Timer(Reader):
    """Takes messages for later and hands them on.

    The runtime sets `wake_at`, which is told the moment at which `ring` is wanted next.
    """

    def __init__(self, broker: TimerBroker) -> None:
        self._broker = broker
        self.wake_at: Callable[[int], None] = _nothing
        self.followers: list[Reader] = []  # those that may ask to be woken, too
        self._resolvers: dict[bytes, Resolver] = {}
        self._progress = Progress(broker.table("timer"), broker.places("timer"))
        self._done: Entry = self._progress.load()  # the first entry that was not handed on
        self._minute = self._done[0] // NEAR_MS  # that is being served
        self._places: dict[int, int] = {}  # first needed offset of each queue that anything waits in
        self._touched: set[int] = set()  # queues that messages are being put into in this turn
        self._opening: set[int] = set()  # queues of `_touched` that the engine is opening
        self._is_taking = False
        self._recalls: dict[int, int] = {}  # admitted to each queue since the start, or since it was empty
        self._slots: dict[int, NearSlot] = {}
        self._chunk: list[Entry] = []  # taken from the slot that is being served, and not handed on
        self._chunk_end: Entry = (0, 0)  # the first entry after it
        self._found = StoredBatch(COUNT_MAX)
        self._hand_on = HandOn(broker)
        self._far = FarDays(self, broker, self._found, self._hand_on)
        self._taken_back = TakenBack()
        self._losses = 0  # batches that were handed on and lost: what was handed on before is so again
        self._last_ticket = 0
        broker.hold(self.positions)
        self._touched.update(find_queues(broker.engine))

    def positions(self) -> Iterator[tuple[int, int]]:
        """Give the queues in which something waits, each with the first offset that retention must leave."""
        self._take_touched()
        for queue_id, offset in list(self._places.items()):
            yield self._broker.find_queue(queue_key(queue_id)), offset

    @property
    def pending_count(self) -> int:
        """About how many messages wait."""
        ends = {queue_id: self._broker.max_offset(self.queue_ref(queue_id)) for queue_id in self._places}
        return sum(end - self._places[queue_id] for queue_id, end in ends.items())

    def queue_ref(self, queue_id: int) -> int:
        """Return the number of one of the timer's queues, which is there."""
        return self._broker.find_queue(queue_key(queue_id))

    def waiting(self) -> list[Waiting]:
        """Return the queues in which something waits, in the order in which their messages are due."""
        found: list[tuple[int, Waiting]] = []
        for queue_id, first in self._places.items():
            queue_ref = self.queue_ref(queue_id)
            due_ms = day_of(queue_id, self._done[0]) * FAR_MS
            if queue_id < NEAR_SLOTS:
                due_ms = (self._minute + (queue_id - self._minute) % NEAR_SLOTS) * NEAR_MS
            found.append((due_ms, Waiting(queue_id, queue_ref, first, self._broker.max_offset(queue_ref))))
        return [waiting for _, waiting in sorted(found)]

    def is_waiting(self, due_ms: int, found: StoredBatch, i: int) -> bool:
        """Return whether a message of one of these queues is still to be handed on, as far as is known here."""
        return (due_ms, found.queue_offset[i]) >= self._done and not self._taken_back.has(found, i)

    def take_back(self, identity: bytes, due_ms: int, now_ms: int) -> int:
        """Have nobody get a waiting message; return the ticket that this is safe with, -1 where it cannot be."""
        due_ms, queue_id = self.admit(due_ms, now_ms)
        if not self.admit_recall(queue_id):
            return -1
        self._taken_back.add(identity, due_ms, now_ms)
        return put_cancel(self._broker, self.route(queue_id, cancel_prefix(identity)), due_ms, now_ms)

    # Messages for later

    def resolve(self, name: bytes, resolver: Resolver) -> None:
        """Ask `resolver` where messages go whose properties begin with the property `name`."""
        self._resolvers[name] = resolver

    def admit(self, due_ms: int, now_ms: int) -> tuple[int, int]:
        """Return when a message will be due, and the queue in which it waits, which it is put into in this turn.

        That is `due_ms`, which is later than now, but for a clock that was set back while the gateway was down.
        """
        if not self._done[0]:
            self._done = (now_ms, 0)
            self._minute = max(self._minute, now_ms // NEAR_MS)
            self._progress.save(*self._done)
        due_ms = max(due_ms, self._done[0] + 1)
        queue_id = queue_of(due_ms, now_ms)
        self._touched.add(queue_id)
        self._broker.request_run(self)
        return due_ms, queue_id

    def admit_recall(self, queue_id: int) -> bool:
        """Return whether one more message may be taken back of a queue that `admit` named."""
        count = self._recalls.get(queue_id, 0) + 1
        if count > RECALLS_MAX:
            return False
        self._recalls[queue_id] = count
        return True

    def route(self, queue_id: int, prefix: bytes) -> Route:
        """Return the route into a queue that `admit` named; its messages' properties begin with `prefix`.

        The first property of `prefix` is the one that a resolver is known by. The messages' own end with `encode_due`.
        """
        return self._broker.route_rocketmq(TIMER_TOPIC, queue_id, (), prefix)

    def _take_touched(self) -> None:
        """Take note of the queues that messages were put into."""
        self._is_taking = True
        for queue_id in list(self._touched - self._opening):
            queue_ref = -1 if queue_id in self._places else self.queue_ref(queue_id)
            if queue_ref < 0:
                self._touched.discard(queue_id)
            else:
                self._opening.add(queue_id)
                self._broker.open_queue(queue_ref, partial(self._note_opened, queue_id, queue_ref))
        self._is_taking = False

    def _note_opened(self, queue_id: int, queue_ref: int, error: LmqError | None) -> None:
        self._opening.discard(queue_id)
        if error is None:
            self._touched.discard(queue_id)
            self._begin(queue_key(queue_id), queue_id, self._broker.max_offset(queue_ref))
        if not self._is_taking:
            self._broker.request_run(self)

    def _begin(self, key: bytes, queue_id: int, end: int) -> None:
        """Note where a queue that was not in use is to be read from."""
        offset = self._broker.consumer_offsets.get(PLACES_GROUP, key)
        if offset is None:  # its row is written down now, so that later a single store moves the place
            offset = 0
            self._broker.consumer_offsets.commit(PLACES_GROUP, key, offset)
        if min(offset, end) < end:
            self._places[queue_id] = min(offset, end)

    # Work

    def ring(self) -> None:
        """Have everything that asked to be woken look what is due, in the next turn."""
        for reader in (self, *self.followers):
            self._broker.request_run(reader)

    def on_ready(self, now_ms: int) -> bool:
        """Do one batch of what is due; ask for the next turn, or to be woken."""
        self._take_touched()
        if self._broker.is_failed:
            return False
        if self._broker.room.is_low or self._touched:  # where those end is not known: nothing may be passed over
            self.wake_at(now_ms + AGAIN_MS)
            return False
        has_more = self._far.step(self._places, self._done[0], now_ms)
        if not self._far.is_late:
            has_more = self._serve(now_ms) or has_more
        if has_more:
            self._broker.request_run(self)
        else:
            self._arm(now_ms)
        return False

    def _arm(self, now_ms: int) -> None:
        """Say when there is work again."""
        if not self._places:
            return
        if self._chunk or self._far.is_late:
            self.wake_at(now_ms + AGAIN_MS)  # what could not be stored
            return
        slot = self._slots.get(self._minute)
        end_ms = (self._minute + 1) * NEAR_MS
        wake_ms = end_ms if slot is None else slot.next_due_ms()
        ahead_ms = end_ms - LOOK_AHEAD_MS
        self.wake_at(min(wake_ms, ahead_ms) if ahead_ms > now_ms else wake_ms)

    def _serve(self, now_ms: int) -> bool:
        """Go on with the minutes; return whether there is more to do at once."""
        if not self._places:
            self._minute = max(self._minute, now_ms // NEAR_MS)
        elif not self._done[0]:  # nothing is known: each queue of the ring is gone through
            self._minute = max(self._minute, now_ms // NEAR_MS - NEAR_SLOTS + 1)
        while True:
            slot = self._open(self._minute)
            if slot is not None:
                if not self._scan(slot) or self._deliver(slot, now_ms):
                    return True
                if self._chunk:
                    return False
            if (self._minute + 1) * NEAR_MS > now_ms:
                break
            if slot is not None:
                self._finish(slot)
            self._minute += 1
        if self._minute * NEAR_MS - self._done[0] > FAR_MS:  # days are counted from there
            self._note_done((self._minute * NEAR_MS, 0))
        ahead = self._minute + 1
        if now_ms < ahead * NEAR_MS - LOOK_AHEAD_MS:
            return False
        slot = self._open(ahead)
        return slot is not None and not self._scan(slot)

    def _open(self, minute: int) -> NearSlot | None:
        """Return the slot of a minute, None where nothing waits in its queue."""
        slot = self._slots.get(minute)
        queue_id = near_queue(minute)
        if slot is None and queue_id in self._places:
            slot = NearSlot(minute, self.queue_ref(queue_id), self._places[queue_id], self._done)
            self._slots[minute] = slot
        return slot

    def _scan(self, slot: NearSlot) -> bool:
        """Read some of a slot's queue; return whether that is all of it."""
        end = self._broker.max_offset(slot.queue_ref)
        if slot.scanned_until < end:
            if self._broker.read(slot.queue_ref, slot.scanned_until, self._found, COUNT_MAX, BYTES_MAX) != AWAY:
                slot.take_in(self._found)
            self._found.clear()
        return slot.scanned_until >= end

    def _deliver(self, slot: NearSlot, now_ms: int) -> bool:
        """Hand on one batch of what is due; return whether there is more to do at once."""
        if not self._chunk:
            self._chunk = slot.take_due(now_ms, COUNT_MAX)
            if not self._chunk:
                return False
            self._chunk_end = (self._chunk[-1][0], self._chunk[-1][1] + 1)
        offsets = array("q", sorted(offset for _, offset in self._chunk))
        done = self._broker.engine.read_offsets(slot.queue_ref, offsets, len(offsets), self._found)
        if done == AWAY:
            return True
        found = self._found
        rows, there = find_rows(found, self._chunk)
        published, tickets = self._hand_on.publish(found, rows, self._placing(slot, found), now_ms)
        for due_ms, _ in there[:published]:
            self._broker.metrics.lateness.add(now_ms - due_ms)
        settled = set(offsets[:done])
        settled.difference_update(offset for _, offset in there[published:])
        found.clear()
        self._chunk = [entry for entry in self._chunk if entry[1] not in settled]
        self._watch(tickets)
        if not self._chunk:
            self._note_done(self._chunk_end)
        return published == len(rows)

    def _placing(self, slot: NearSlot, found: StoredBatch) -> Callable[[StoredBatch, int], Destination | None]:
        """Return what says where a message goes; None where nobody knows, or it was taken back."""
        texts, flags, resolvers = read_texts(found), memoryview(found.flag), self._resolvers

        def place(found: StoredBatch, i: int) -> Destination | None:
            text = strip_due(texts[i])
            resolver = resolvers.get(text[: max(text.find(b"\x01"), 0)])
            if resolver is None:
                LOGGER.warning("a delayed message has no destination, dropping it due_by=%d", slot.end_ms)
            elif not slot.is_cancelled(text) and not slot.is_named(found, i):
                return resolver(text, flags[i])
            return None

        return place

    # What is known for certain

    def _watch(self, tickets: Sequence[int]) -> None:
        """Go back where the messages of a ticket are lost."""
        for ticket in tickets:
            self._last_ticket = ticket
            self._broker.when_stored(ticket, partial(self._note_loss, self._losses))

    def _note_loss(self, losses: int, error: LmqError | None) -> None:
        if error is not None and losses == self._losses:
            self._go_back(error)

    def _note_done(self, entry: Entry) -> None:
        self._done = entry
        self._broker.when_stored(self._last_ticket, partial(self._keep, entry, self._losses))

    def _keep(self, entry: Entry, losses: int, error: LmqError | None) -> None:
        if losses != self._losses:
            return  # it is handed on again, with what was lost before it
        if error is None:
            self._progress.save(*entry)
        else:
            self._go_back(error)

    def _finish(self, slot: NearSlot) -> None:
        """Let go of a slot that is over; its queue is needed no more when all is safe."""
        del self._slots[slot.start_ms // NEAR_MS]
        offset = slot.scanned_until if slot.keep_from < 0 else slot.keep_from
        self._note_done((slot.end_ms, 0))
        self.release(near_queue(slot.start_ms // NEAR_MS), offset, ())

    def release(self, queue_id: int, offset: int, tickets: Sequence[int]) -> None:
        """Need a queue from `offset` on only, once the messages of the tickets, and those before, are safe."""
        self._watch(tickets)
        self._broker.when_stored(self._last_ticket, partial(self._keep_place, queue_id, offset, self._losses))

    def _keep_place(self, queue_id: int, offset: int, losses: int, error: LmqError | None) -> None:
        if losses != self._losses or error is not None:
            self._note_loss(losses, error)
            return
        self._broker.consumer_offsets.commit(PLACES_GROUP, queue_key(queue_id), offset)
        if offset >= self._broker.max_offset(self.queue_ref(queue_id)):
            self._places.pop(queue_id, None)
            self._recalls.pop(queue_id, None)
        else:
            self._places[queue_id] = offset

    def _go_back(self, error: LmqError) -> None:
        """Hand on again what was lost, and what came after it."""
        LOGGER.warning("messages that waited were not stored, they are handed on again cause=%s", error)
        self._losses += 1
        self._done = self._progress.load()
        self._minute = max(self._done[0] // NEAR_MS, self._minute - NEAR_SLOTS + 1)
        self._slots.clear()
        self._chunk.clear()
        self._far.go_back()
        self._broker.request_run(self)
