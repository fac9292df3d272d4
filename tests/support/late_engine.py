"""The embedded engine with answers that come late, out of order between publishers and queues, and fail by a seed.

What a cluster does to its gateways, without a cluster. The ends of a queue are known once it is open, but for those
of queues that were there before the engine. `settle` brings what is on its way a bit nearer: the worlds of the doors'
tests call it once a turn, and go on while `is_busy`.
"""

from __future__ import annotations

import random
from functools import partial

from core.engine import Engine
from core.errors import StoreClosedError
from core.message import AWAY
from core.store.embedded import EmbeddedEngine


class LateEngine(Engine):
    """Everything is kept by the embedded engine `inner`; what is told of it comes later.

    Args:
        inner: The embedded engine.
        seed: Decides what comes when, and what fails.
        failures: The part of appended batches that are told to be lost, though they are in the log all the same, and of
            searches that find nothing out.
        away: The part of reads that find nothing there yet.
        refusals: The part of claims that are refused.
        unknown: The part of queues that cannot be opened when it is asked for.
    """

    places_late = True

    def __init__(self, inner, *, seed=1, failures=0.0, away=0.0, refusals=0.0, unknown=0.0):
        super().__init__(inner.room, inner.message_bytes_max)
        self.inner = inner
        self.durability = inner.durability
        self.store = inner.store
        self.failures = failures
        self.away = away
        self.refusals = refusals
        self.unknown = unknown
        self.opens_late = True
        self.failed = 0  # batches so far
        self._random = random.Random(seed)
        self._tickets = 0
        self._told = 0  # the ticket whose outcome is being told
        self.claimed = []  # keys so far
        self.held = set()  # those that are granted and not released
        self._wanted = set()  # those that are not released
        self._ends = {}  # by ticket: origin, end of the log, whether it fails
        self._places = {}  # by ticket: what is told of each message with the outcome
        self._outcomes = {}  # by origin: those that wait, in order
        self._others = []  # (moment in turns, callback), of what is kept
        self._turn = 0
        self._coming = {}  # by queue and offset: the turn in which a read of it can be met
        self._here = {}  # what came lately, with the turn in which it did
        self._watched = set()
        self._opened = set(range(inner.queue_count()))  # queues whose ends are known
        self._followed = f"{inner.store.settings.parent_topic}/0".encode()  # the queue that has everything
        self._arrived = []  # queues of which something came

    def __getattr__(self, name):
        return getattr(self.inner, name)

    @property
    def wake_preparer(self):
        """What the inner engine calls."""
        return self.inner.wake_preparer

    @wake_preparer.setter
    def wake_preparer(self, wake):
        self.inner.wake_preparer = wake

    @property
    def is_busy(self):
        """Whether something is on its way."""
        return (
            bool(self._others)
            or bool(self._arrived)
            or bool(self._coming)
            or any(waiting[0][1] is not None for waiting in self._outcomes.values())
        )

    def _late(self):
        return self._turn + self._random.randrange(4)

    # Write

    def append_batch(self, batch, now_ms):
        try:
            self.inner.append_batch(batch, now_ms)
        finally:
            self._tickets += 1
            fails = self._random.random() < self.failures
            self.failed += fails
            self._ends[self._tickets] = (bytes(batch.origin), batch.ticket, fails)
            batch.ticket = self._tickets
            self._hide_places(batch)

    def keep_together(self, on):
        self.inner.keep_together(on)

    def _hide_places(self, batch):
        self._places[batch.ticket] = places = {}
        for i in range(batch.appended):
            if batch.physical_offset[i] >= 0:
                places[i] = batch.physical_offset[i], batch.queue_offset[i]
                batch.physical_offset[i] = batch.queue_offset[i] = -1

    def tell_places(self, ticket, batch):
        assert ticket == self._told
        for i, (place, offset) in self._places.pop(ticket).items():
            if i < batch.count:
                batch.physical_offset[i], batch.queue_offset[i] = place, offset

    def copy_record(self, batch, i):
        place, _ = self._places[batch.ticket].get(i, (-1, -1))
        return self.inner._copy_at(place)

    def when_stored(self, ticket, then):
        origin, end, fails = self._ends.get(ticket, (b"", 0, False))
        waiting = self._outcomes.setdefault(origin, [])
        waiting.append([self._late(), None, fails, then, ticket])
        self.inner.when_stored(end, lambda error, entry=waiting[-1]: self._note(entry, error))

    def _note(self, entry, error):
        entry[1] = error if error is not None else False
        self.request_turn()

    def when_kept(self, then):
        self.inner.when_kept(lambda error: self._tell_later(then, error))

    def when_durable(self, then):
        self.inner.when_durable(lambda error: self._tell_later(then, error))

    def _tell_later(self, then, error):
        at = self._turn + 1 + max((len(waiting) for waiting in self._outcomes.values()), default=0) * 4
        self._others.append((at, then, error))
        self.request_turn()

    def find_offset(self, queue_ref, at_ms, then, *, upper=False):
        fails = self._random.random() < self.failures
        self._others.append(
            (self._late(), then, -1 if fails else self.store.offset_at_time(queue_ref, at_ms, upper=upper))
        )
        self.request_turn()

    def claim(self, key, then):
        self.claimed.append(key)
        self._wanted.add(key)
        is_refused = self._random.random() < self.refusals
        error = StoreClosedError("another gateway has it") if is_refused else None
        self._others.append((self._late(), partial(self._note_claim, key, then), error))
        self.request_turn()

    def _note_claim(self, key, then, error):
        if error is None and key in self._wanted:
            self.held.add(key)
        then(error)

    def release(self, key):
        self.held.discard(key)
        self._wanted.discard(key)

    def find_record(self, place, then):
        self.inner.find_record(place, lambda record: self._others.append((self._late(), then, record)))
        self.request_turn()

    def find_dispatch(self, record, then):
        self.inner.find_dispatch(record, lambda found: self._others.append((self._late(), then, found)))
        self.request_turn()

    def find_version(self, version, then):
        self.inner.find_version(version, lambda record: self._others.append((self._late(), then, record)))
        self.request_turn()

    # Turns

    def step(self, now_ms):
        self.settle()
        return self.inner.step(now_ms) or self.is_busy

    def settle(self):
        """Let a turn go by: some of what is on its way arrives."""
        self._turn += 1
        for key in [key for key, turn in self._coming.items() if turn <= self._turn]:
            del self._coming[key]
            self._here[key] = self._turn
            self._arrived.append(key[0])
        self._here = {key: turn for key, turn in self._here.items() if turn > self._turn - 4}
        origins = list(self._outcomes)
        self._random.shuffle(origins)
        for origin in origins:
            waiting = self._outcomes[origin]
            while waiting and waiting[0][0] <= self._turn and waiting[0][1] is not None:
                _, error, fails, then, self._told = waiting.pop(0)
                lost = StoreClosedError("the broker that had it is gone") if fails else None
                then(error or lost)
            if not waiting:
                self._outcomes.pop(origin, None)
        due = [each for each in self._others if each[0] <= self._turn]
        self._others = [each for each in self._others if each[0] > self._turn]
        for _, then, told in due:
            then(told)

    def open_queue(self, queue_ref, then):
        if self._is_known(queue_ref):
            then(None)
            return
        fails = self._random.random() < self.unknown
        error = StoreClosedError("nobody can tell where it ends") if fails else None
        self._others.append((self._late() + 1, partial(self._note_opened, queue_ref, then), error))
        self.request_turn()

    def open_all(self):
        """Let the ends of all queues be known that there are."""
        self._opened.update(range(self.inner.queue_count()))

    def forget_opened(self):
        """Know the ends of no queue any more, as an engine that has just started."""
        self._opened.clear()

    def _note_opened(self, queue_ref, then, error):
        if error is None:
            self._opened.add(queue_ref)
        then(error)

    def _is_known(self, queue_ref):
        key = self.inner.queue_key(queue_ref)
        if not self.opens_late:
            return True
        return queue_ref in self._opened or key == self._followed

    # What is asked of the engine without waiting

    def min_offset(self, queue_ref):
        return self.inner.min_offset(queue_ref) if self._is_known(queue_ref) else 0

    def max_offset(self, queue_ref):
        return self.inner.max_offset(queue_ref) if self._is_known(queue_ref) else 0

    def next_offsets(self, start, out):
        size = max(min(len(out), self.queue_count() - start), 0)
        for number in range(size):
            out[number] = self.max_offset(start + number)
        return size

    def first_offsets(self, start, out):
        size = max(min(len(out), self.queue_count() - start), 0)
        for number in range(size):
            out[number] = self.min_offset(start + number)
        return size

    def read(self, queue_ref, offset, into, count_max, bytes_max):
        if self._is_away(queue_ref, offset):
            into.clear()
            into.next_offset = offset
            return AWAY
        return self.inner.read(queue_ref, offset, into, count_max, bytes_max)

    def read_offsets(self, queue_ref, offsets, count, into):
        if count and self._is_away(queue_ref, offsets[0]):
            into.clear()
            return AWAY
        return self.inner.read_offsets(queue_ref, offsets, count, into)

    def find_keyed(self, search):
        return self.inner.find_keyed(search)

    def _is_away(self, queue_ref, offset):
        key = queue_ref, offset
        if offset >= self.inner.max_offset(queue_ref):
            return False
        if key in self._here:
            return False
        if key not in self._coming:
            if self._random.random() >= self.away:
                return False
            self._coming[key] = self._late() + 1
            self.request_turn()
        return True

    def watch(self, queue_ref, on):
        (self._watched.add if on else self._watched.discard)(queue_ref)
        self.inner.watch(queue_ref, on=on)

    def take_grown(self, into):
        self.inner.take_grown(into)
        into += [queue_ref for queue_ref in set(self._arrived) if queue_ref in self._watched and queue_ref not in into]
        self._arrived = []
        return len(into)


def make_late(store, *, is_sync, **options):
    """Return a late engine over a store."""
    return LateEngine(EmbeddedEngine(store, is_sync=is_sync), **options)


def _passed_on(name):
    def call(self, *args, **named):
        return getattr(self.inner, name)(*args, **named)

    return call


PASSED_ON = (
    *("intern_queue", "find_queue", "queue_key", "queue_lines", "queue_count", "make_route", "set_store_host"),
    *("read_record", "record_version", "bytes_since", "replay_uncovered", "replay_from"),
    *("table", "check_room", "check_commits", "places", "journal", "hold", "retire", "figures"),
)
for _name in PASSED_ON:
    setattr(LateEngine, _name, _passed_on(_name))
for _name in ("store_host", "named_address", "end_place", "sure_place", "waits_for_disk", "next_version", "is_failed"):
    setattr(LateEngine, _name, property(lambda self, name=_name: getattr(self.inner, name)))
