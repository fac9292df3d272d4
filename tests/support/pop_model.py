"""Random histories of a shared queue beside a model in plain Python, with kills between any two of its records."""

from __future__ import annotations

import random
from array import array
from itertools import count

from core.errors import ReceiptError
from core.message import StoredBatch
from core.pop.pop_service import PopService
from tests.support.stores import MemoryJournal, MemoryQueues

QUEUE, GROUP = b"%LMQ%amqp%|2f%" + b"q" * 40, b"amqp"  # its name takes two records
NO_LIMIT = 1 << 40
SHOWN = None
FOR_GOOD = 0  # hidden until its consumer gives it back or is gone
STEPS_MAX = 40
RECEIPTS_KEPT = 24
OFTEN = (
    "grow",
    "grow",
    "take",
    "take",
    "take",
    "ack",
    "ack",
    "nack",
    "ack_by",
    "ack_by",
    "nack_by",
    "wait",
    "wait",
) + (
    "ack_until",
    "change_until",
)
SELDOM = (
    "restart",
    "restart",
    "rest",
    "rest",
    "skip_to",
    "compact",
    "compact",
    "retire",
    "purge",
    "seek",
    "drop",
    "power_cut",
)
TORN = {
    "take",
    "ack",
    "nack",
    "ack_by",
    "nack_by",
    "ack_until",
    "change_until",
    "purge",
    "seek",
}  # what a kill may come in the middle of


class Entry:
    """A message that was taken and is not done: hidden until when, times given, and which time it was."""

    __slots__ = ("attempt", "taking", "until")

    def __init__(self, until, attempt, taking):
        self.until = until
        self.attempt = attempt
        self.taking = taking  # None: no consumer can prove any more that it had it

    def say(self):
        return self.until, self.attempt


class History:
    """What happens to a queue, chosen by a seed; all that can be seen is compared with the model after each step."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.store = MemoryQueues(segment_count=self.chance.choice((7, 1000)))
        self.journal = MemoryJournal()
        self.batch = StoredBatch(16)
        self.now_ms = 1000
        self.left = {}  # entries by offset
        self.next_offset = 0
        self.receipts = []  # of the last takes: receipt, and which taking it proves
        self.moments = []  # of the last takes: offset, and until when it was hidden
        self.takings = count(1)
        self.wanted = []  # what the timer was asked for
        self.start()
        self.ref = self.queue.queue_ref

    def run(self):
        """Live through it; at the end each message can be had and finished."""
        for _ in range(self.chance.randint(1, STEPS_MAX)):
            self.step()
            self.check()
        self.wait(1000)
        hidden = self.hidden()
        for offset in hidden:
            self.queue.nack(offset)
            self.left[offset].until = SHOWN
        while self.queue.ready_count:
            self.take(16, FOR_GOOD)
        self.check()
        assert set(self.left) == set(self.hidden())

    def step(self):
        action = self.chance.choice(OFTEN if self.chance.random() < 0.85 else SELDOM)
        torn = action in TORN and self.chance.random() < 0.15
        arguments = getattr(self, f"draw_{action}", tuple)()
        if torn and not self.journal.is_compacting:
            self.tear(action, arguments)
        else:
            getattr(self, action)(*arguments)

    # What can happen

    def start(self):
        self.journal.reopen()
        self.service = PopService(self.store, self.journal, lambda _ref: None, lambda: self.wanted.append(self.now_ms))
        self.queue = self.service.open(QUEUE, GROUP)

    def draw_grow(self):
        return self.chance.randint(1, 12), self.chance.random() < 0.2

    def grow(self, number, is_damaged):
        if is_damaged:
            self.store.damaged.add(self.store.max_offset(self.ref))
        self.store.grow(self.ref, number)

    def draw_until(self):
        return self.now_ms + self.chance.choice((5, 7, 20)) if self.chance.random() < 0.5 else FOR_GOOD

    def draw_take(self):
        return self.chance.randint(1, 12), self.draw_until()

    def take(self, number, until_ms):
        self.show_due()
        taken = self.queue.take(self.batch, number, NO_LIMIT, until_ms, self.now_ms)
        offsets = list(self.batch.queue_offset[:taken])
        assert taken == self.batch.count <= number
        shown = [offset for offset in sorted(self.left) if self.left[offset].until is SHOWN]
        kept = [offset for offset in shown if self.is_kept(offset)]
        is_again = bool(kept)
        assert not is_again or (offsets and offsets == kept[: len(offsets)])
        for offset in shown:  # lost ones are met before the last that is given
            if not self.is_kept(offset) and (not is_again or offset < offsets[-1]):
                del self.left[offset]
        if not is_again:
            assert offsets == self.new_offsets(number)
            self.next_offset = max(self.next_offset, self.queue.next_offset)
        for i, offset in enumerate(offsets):
            attempt = self.left[offset].attempt + 1 if offset in self.left else 1
            assert self.batch.attempt[i] == attempt
            taking = next(self.takings)
            self.left[offset] = Entry(until_ms, attempt, taking)
            self.receipts.append((self.queue.receipt(self.batch, i), taking))
            self.moments.append((offset, until_ms))
        del self.receipts[:-RECEIPTS_KEPT], self.moments[:-RECEIPTS_KEPT]

    def new_offsets(self, number):
        size = self.store.segment_count
        first = max(self.next_offset, self.store.min_offset(self.ref))
        end = min(self.store.max_offset(self.ref), (first // size + 1) * size)
        return [offset for offset in range(first, end) if offset not in self.store.damaged][:number]

    def is_kept(self, offset):
        return self.store.min_offset(self.ref) <= offset < self.store.max_offset(self.ref)

    def hidden(self):
        return [offset for offset in sorted(self.left) if self.left[offset].until is not SHOWN]

    def draw_ack(self):
        hidden = self.hidden()
        return (self.chance.sample(hidden, self.chance.randint(1, min(len(hidden), 5))) if hidden else [],)

    def ack(self, offsets):
        for offset in offsets:
            self.queue.ack(offset)
            del self.left[offset]
        for offset in offsets[:1]:
            try:
                self.queue.ack(offset)
            except ReceiptError:
                continue
            raise AssertionError("acknowledged twice")

    def draw_nack(self):
        return *self.draw_ack(), self.draw_until()

    def nack(self, offsets, until_ms):
        for offset in offsets:
            self.queue.nack(offset, until_ms)
            self.left[offset].until = until_ms or SHOWN

    def draw_ack_by(self):
        given = self.chance.sample(self.receipts, min(len(self.receipts), self.chance.randint(1, 6)))
        return (given,)

    def ack_by(self, given):
        good = self.good(given)
        assert self.queue.ack_receipts([receipt for receipt, _ in given]) == len(given) - len(good)
        for offset in good:
            del self.left[offset]

    def draw_nack_by(self):
        return *self.draw_ack_by(), self.draw_until()

    def nack_by(self, given, until_ms):
        good = self.good(given)
        assert self.queue.nack_receipts([receipt for receipt, _ in given], until_ms) == len(given) - len(good)
        for offset in good:
            self.left[offset].until = until_ms or SHOWN

    def draw_ack_until(self):
        until_ms = self.chance.choice([0, *(until_ms for _, until_ms in self.moments)])
        return sorted({offset for offset, _ in self.moments if self.chance.random() < 0.5}), until_ms

    def ack_until(self, offsets, until_ms):
        """Acknowledge by the moment until which messages were hidden, of whichever takes they were."""
        good = [offset for offset in offsets if until_ms and self.is_hidden_until(offset, until_ms)]
        if until_ms:
            assert self.queue.ack_taken(array("q", offsets), len(offsets), until_ms) == len(good)
        for offset in good:
            del self.left[offset]

    def draw_change_until(self):
        return *self.chance.choice([(0, 0), *self.moments]), self.draw_until()

    def change_until(self, offset, until_ms, new_until_ms):
        if until_ms:
            is_good = self.is_hidden_until(offset, until_ms)
            assert self.queue.change_invisible(offset, until_ms, new_until_ms) == is_good
            if is_good:
                self.left[offset].until = new_until_ms or SHOWN
                self.moments.append((offset, new_until_ms))

    def is_hidden_until(self, offset, until_ms):
        return offset in self.left and self.left[offset].until == until_ms

    def good(self, given):
        """Return the messages that are with the holders of these receipts."""
        now = {entry.taking: offset for offset, entry in self.left.items() if entry.until is not SHOWN}
        return [now[taking] for _, taking in given if taking in now]

    def draw_wait(self):
        return (self.chance.randint(1, 15),)

    def wait(self, for_ms):
        self.now_ms += for_ms
        self.show_due()

    def show_due(self):
        ends = [entry.until for entry in self.left.values() if entry.until]
        deadline_ms = self.service.next_deadline_ms()
        assert not ends or (deadline_ms is not None and deadline_ms <= min(ends))
        while not self.service.expire(self.now_ms):
            pass
        for entry in self.left.values():
            if entry.until and entry.until <= self.now_ms:
                entry.until = SHOWN

    def restart(self):
        self.forget_connections(self.left)
        self.start()
        self.show_due()

    @staticmethod
    def forget_connections(left):
        for entry in left.values():
            entry.until = entry.until or SHOWN

    def rest(self):
        """Let the queue go where nothing of it is in flight, and open it again."""
        assert self.service.rest(QUEUE, GROUP) == (not self.left)
        self.queue = self.service.open(QUEUE, GROUP)

    def draw_compact(self):
        return (self.chance.randint(0, 3),)

    def compact(self, parts):
        """Go on with a compaction, or begin one; it may end, or a kill comes before."""
        for _ in range(parts):
            self.service.journal._compact(1)
        if not parts:
            self.restart()

    def draw_retire(self):
        return (self.chance.randint(0, 8),)

    def retire(self, number):
        self.store.retire(self.ref, self.store.min_offset(self.ref) + number)

    def purge(self):
        expected = self.queue.ready_count
        assert self.queue.purge() == expected
        self.left = {offset: entry for offset, entry in self.left.items() if entry.until is not SHOWN}
        self.next_offset = max(self.next_offset, self.store.max_offset(self.ref))

    def draw_seek(self):
        return (self.chance.randint(0, 20),)

    def seek(self, back):
        self.left = {}
        self.next_offset = max(self.store.max_offset(self.ref) - back, 0)
        self.queue.seek(self.next_offset)

    def draw_skip_to(self):
        return (self.chance.randint(0, self.store.max_offset(self.ref)),)

    def skip_to(self, offset):
        self.next_offset = max(self.next_offset, offset)
        self.queue.skip_to(offset)

    def drop(self):
        self.service.drop(QUEUE, GROUP)
        self.queue = self.service.open(QUEUE, GROUP, self.store.max_offset(self.ref))
        self.left, self.next_offset = {}, self.store.max_offset(self.ref)

    def draw_power_cut(self):
        return (self.chance.randint(0, 4),)

    def power_cut(self, lost):
        bounds = self.store.bounds[self.ref]
        bounds[1] = max(bounds[1] - lost, bounds[0])
        self.store.damaged = {offset for offset in self.store.damaged if offset < bounds[1]}
        self.left = {offset: entry for offset, entry in self.left.items() if offset < bounds[1]}
        if bounds[1] < self.next_offset:  # those numbers will be other messages'
            self.next_offset = bounds[1]
            for entry in self.left.values():
                entry.taking = None
        self.restart()

    # A kill within a step

    def tear(self, action, arguments):
        """Do something of which the first records alone reach the journal: a message is as before, or as it is then."""
        written, compactions = len(self.journal.records), self.journal.compactions
        before, before_next = {offset: Entry(*e.say(), e.taking) for offset, e in self.left.items()}, self.next_offset
        receipts = list(self.receipts)
        getattr(self, action)(*arguments)
        after, after_next = self.left, self.next_offset
        self.receipts = receipts  # the process did not live to tell
        if self.journal.compactions == compactions:
            del self.journal.records[self.chance.randint(written, len(self.journal.records)) :]
        self.forget_connections(before)
        self.forget_connections(after)
        self.start()
        while not self.service.expire(self.now_ms):
            pass
        self.next_offset = self.queue.next_offset
        assert self.next_offset in (before_next, after_next) or action == "take"
        assert min(before_next, after_next) <= self.next_offset <= max(before_next, after_next)
        found = self.look([*before, *after])
        if action == "seek":
            assert found in ({o: e.say() for o, e in before.items()}, {})
        self.left = {}
        for offset in {*before, *after}:
            choices = [state.get(offset) for state in (before, after)]
            said = [None if entry is None else (entry.until, entry.attempt) for entry in choices]
            if offset >= self.next_offset:
                assert offset not in found
                continue
            assert found.get(offset) in said, (action, offset, found.get(offset), said)
            if offset in found:
                self.left[offset] = choices[said.index(found[offset])]

    def look(self, offsets):
        """Return until when each message that is not done is hidden, and how often it was given."""
        moments = {}
        for until_ms, first, end in self.queue.state.deadlines():
            moments |= dict.fromkeys(range(first, end), until_ms)
        found = {}
        for offset in offsets:
            code = self.queue.state.window.code(offset)
            if code:
                found[offset] = (moments.get(offset, FOR_GOOD) if code & 1 else SHOWN, self.queue.attempt(offset))
        return found

    def check(self):
        """Compare all that can be seen."""
        queue, left = self.queue, self.left
        assert queue.next_offset == self.next_offset
        assert queue.unacked_count == sum(entry.until is not SHOWN for entry in left.values())
        assert queue.floor == min(left, default=self.next_offset)
        assert dict(self.service.floors(GROUP)) == {QUEUE: queue.floor}
        assert self.look(left) == {offset: entry.say() for offset, entry in left.items()}
