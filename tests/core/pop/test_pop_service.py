"""Shared consumption is at least once: against a model, with a crash between any two steps."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from core.errors import ReceiptError
from core.message import StoredBatch
from core.pop.pop_service import PopService
from tests.support.stores import MemoryJournal, MemoryQueues

QUEUE, GROUP = b"%LMQ%amqp%|2f%q", b"amqp"
NO_LIMIT = 1 << 40

picks = st.lists(st.integers(0, 30), min_size=1, max_size=5)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("grow"), st.integers(1, 12), st.booleans()),
        st.tuples(st.just("take"), st.integers(1, 12), st.sampled_from([0, 0, 5, 20])),
        st.tuples(st.just("take"), st.integers(1, 12), st.just(0)),
        st.tuples(st.just("ack"), picks),
        st.tuples(st.just("nack"), picks, st.sampled_from([0, 0, 7])),
        st.tuples(st.just("wait"), st.integers(1, 30)),
        st.tuples(st.just("restart")),
        st.tuples(st.just("compact"), st.integers(0, 3)),
        st.tuples(st.just("retire"), st.integers(0, 8)),
        st.tuples(st.just("purge")),
        st.tuples(st.just("seek"), st.integers(0, 20)),
        st.tuples(st.just("drop")),
        st.tuples(st.just("power cut"), st.integers(0, 4)),
    ),
    max_size=60,
)


class Model:
    """What one entry a message says: `left` has those taken and not done: hidden until when, times given."""

    def __init__(self):
        self.left = {}  # offset -> [None shown, 0 hidden for good, else the moment; times given]
        self.next_offset = 0

    def expire(self, now_ms):
        for entry in self.left.values():
            if entry[0] and entry[0] <= now_ms:
                entry[0] = None


class Rig:
    """A service over queues in memory, next to the model."""

    def __init__(self):
        self.store, self.journal = MemoryQueues(segment_count=7), MemoryJournal()
        self.model, self.batch, self.now_ms = Model(), StoredBatch(16), 1000
        self.start()
        self.ref = self.queue.queue_ref

    def start(self):
        self.journal.reopen()
        self.service = PopService(self.store, self.journal)
        self.queue = self.service.open(QUEUE, GROUP)

    def do(self, action, *arguments):
        getattr(self, action.replace(" ", "_"))(*arguments)
        self.check()

    def grow(self, count, is_damaged):
        if is_damaged:
            self.store.damaged.add(self.store.max_offset(self.ref))
        self.store.grow(self.ref, count)

    def take(self, count, for_ms):
        until_ms = for_ms and self.now_ms + for_ms
        self.model.expire(self.now_ms)
        taken = self.queue.take(self.batch, count, NO_LIMIT, until_ms, self.now_ms)
        offsets = list(self.batch.queue_offset[:taken])
        assert taken == self.batch.count <= count
        shown = sorted(offset for offset, entry in self.model.left.items() if entry[0] is None)
        kept = [offset for offset in shown if self.is_kept(offset)]
        if kept:
            assert offsets == kept[: len(offsets)]
            assert offsets
        if offsets and offsets[0] < self.model.next_offset:
            for offset in shown:
                if offset < offsets[-1] and not self.is_kept(offset):
                    del self.model.left[offset]
            for i, offset in enumerate(offsets):
                self.model.left[offset] = [until_ms, self.model.left[offset][1] + 1]
                assert self.batch.attempt[i] == self.model.left[offset][1]
            return
        for offset in shown:
            assert not self.is_kept(offset)
            del self.model.left[offset]
        self.take_new(offsets, until_ms, count)

    def take_new(self, offsets, until_ms, count):
        first = max(self.model.next_offset, self.store.min_offset(self.ref))
        end = min(self.store.max_offset(self.ref), (first // 7 + 1) * 7)
        expected = [offset for offset in range(first, end) if offset not in self.store.damaged][:count]
        assert offsets == expected
        assert list(self.batch.attempt[: len(offsets)]) == [1] * len(offsets)
        self.model.left |= {offset: [until_ms, 1] for offset in offsets}
        self.model.next_offset = max(self.model.next_offset, self.queue.next_offset)

    def is_kept(self, offset):
        return self.store.min_offset(self.ref) <= offset < self.store.max_offset(self.ref)

    def hidden(self, chosen):
        hidden = sorted(offset for offset, entry in self.model.left.items() if entry[0] is not None)
        return sorted({hidden[pick % len(hidden)] for pick in chosen}) if hidden else []

    def ack(self, chosen):
        for offset in self.hidden(chosen):
            self.queue.ack(offset)
            del self.model.left[offset]
            with pytest.raises(ReceiptError):
                self.queue.ack(offset)

    def nack(self, chosen, for_ms):
        for offset in self.hidden(chosen):
            self.queue.nack(offset, for_ms and self.now_ms + for_ms)
            self.model.left[offset][0] = self.now_ms + for_ms if for_ms else None

    def wait(self, for_ms):
        self.now_ms += for_ms
        before = self.queue.ready_count
        shown = self.service.expire(self.now_ms)
        self.model.expire(self.now_ms)
        assert (self.queue in shown) == (self.queue.ready_count > before)

    def restart(self):
        for entry in self.model.left.values():
            entry[0] = entry[0] or None
        self.model.expire(self.now_ms)
        self.start()
        self.service.expire(self.now_ms)

    def compact(self, parts):
        """Go on with a compaction, or begin one; it may end, or a crash comes before."""
        for _ in range(parts):
            self.service.journal._compact(1)
        if not parts:
            self.restart()

    def retire(self, count):
        self.store.retire(self.ref, self.store.min_offset(self.ref) + count)

    def purge(self):
        expected = self.queue.ready_count
        assert self.queue.purge() == expected
        self.model.left = {offset: entry for offset, entry in self.model.left.items() if entry[0] is not None}
        self.model.next_offset = max(self.model.next_offset, self.store.max_offset(self.ref))

    def seek(self, back):
        self.model.left = {}
        self.model.next_offset = max(self.store.max_offset(self.ref) - back, 0)
        self.queue.seek(self.model.next_offset)

    def drop(self):
        self.service.drop(QUEUE, GROUP)
        self.queue = self.service.open(QUEUE, GROUP, self.store.max_offset(self.ref))
        self.model.left, self.model.next_offset = {}, self.store.max_offset(self.ref)

    def power_cut(self, lost):
        bounds = self.store.bounds[self.ref]
        bounds[1] = max(bounds[1] - lost, bounds[0])
        self.store.damaged = {offset for offset in self.store.damaged if offset < bounds[1]}
        self.model.left = {offset: entry for offset, entry in self.model.left.items() if offset < bounds[1]}
        self.model.next_offset = min(self.model.next_offset, bounds[1])
        self.restart()

    def check(self):
        model, queue = self.model, self.queue
        assert queue.next_offset == model.next_offset
        assert queue.unacked_count == sum(entry[0] is not None for entry in model.left.values())
        assert queue.floor == min(model.left, default=model.next_offset)
        assert dict(self.service.floors(GROUP)) == {QUEUE: queue.floor}
        assert {offset: queue.attempt(offset) for offset in model.left} == {
            offset: entry[1] for offset, entry in model.left.items()
        }


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr("core.pop.snapshot.PART_MESSAGES", 2)
    monkeypatch.setattr("core.pop.journal.WORK_PER_RECORD", 1)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps)
def test_every_message_is_done_once_or_available_whatever_happens(small_parts, actions):
    rig = Rig()
    for action in actions:
        rig.do(*action)
    rig.do("wait", 1000)
    rig.do("nack", list(range(100)), 0)
    for _ in range(200):
        rig.do("take", 16, 0)
    assert rig.queue.ready_count == 0
    rig.do("ack", list(range(1000)))


@pytest.fixture
def store():
    return MemoryQueues()


@pytest.fixture
def service(store):
    return PopService(store, MemoryJournal())


def test_one_object_for_each_queue_and_group(service):
    queue = service.open(b"%LMQ%q", b"g")
    assert service.open(b"%LMQ%q", b"g") is queue
    assert service.open(b"%LMQ%q", b"h") is not queue
    assert service.open(b"%LMQ%p", b"g") is not queue


def test_groups_have_the_same_messages_each(service, store):
    first, second = service.open(b"%LMQ%q", b"g"), service.open(b"%LMQ%q", b"h")
    store.grow(first.queue_ref, 3)
    batch = StoredBatch(8)
    assert first.take(batch, 8, NO_LIMIT, 0, 0) == 3
    assert second.take(batch, 8, NO_LIMIT, 0, 0) == 3
    first.ack(1)
    assert (first.unacked_count, second.unacked_count) == (2, 3)


def test_redelivery_stops_at_the_bytes_allowed(service, store):
    queue = service.open(b"%LMQ%q", b"g")
    store.grow(queue.queue_ref, 6)
    batch = StoredBatch(8)
    queue.take(batch, 6, NO_LIMIT, 0, 0)
    queue.nack_many(batch.queue_offset, 6)
    assert queue.take(batch, 6, 25, 0, 0) == 2
    assert queue.take(batch, 6, 1, 0, 0) == 1
    assert queue.take(batch, 6, NO_LIMIT, 0, 0) == 3
    assert batch.queue_offset[0] == 3


def test_a_peek_shows_what_a_take_gives_and_takes_nothing(service, store):
    queue = service.open(b"%LMQ%q", b"g")
    store.grow(queue.queue_ref, 6)
    batch = StoredBatch(8)
    queue.take(batch, 4, NO_LIMIT, 0, 0)
    for shown in (array("q"), array("q", [0, 2])):
        if shown:
            queue.nack_many(shown, 2)
        for count in (1, 2, 2):
            seen = queue.peek(batch, count)
            assert (seen, queue.ready_count) == (count, 2 + len(shown))
            assert list(batch.queue_offset[:seen]) == (list(shown) or [4, 5])[:count]
    assert [queue.take(batch, 9, NO_LIMIT, 0, 0), queue.attempt(2), queue.attempt(4)] == [2, 2, 0]
    assert queue.peek(batch, 9) == 2
    queue.take(batch, 9, NO_LIMIT, 0, 0)
    assert queue.peek(batch, 9) == 0


def test_a_peek_shows_again_what_stayed_long_after_others_were_done(service, store):
    queue = service.open(b"%LMQ%q", b"g")
    store.grow(queue.queue_ref, 20_000)
    batch = StoredBatch(20_000)
    queue.take(batch, 20_000, 1 << 40, 0, 0)
    done = array("q", [offset for offset in range(20_000) if offset not in {3, 7}])
    queue.ack_many(done, len(done))
    queue.nack_many(array("q", [3, 7]), 2)
    for _ in range(3):
        assert (queue.peek(batch, 1), batch.queue_offset[0]) == (1, 3)
    assert queue.take(batch, 9, NO_LIMIT, 0, 0) == 2


def test_queue_opened_first_begins_where_it_is_told_or_at_the_first_message_kept(service, store):
    ref = store.intern_queue(b"%LMQ%q")
    store.grow(ref, 10)
    store.retire(ref, 4)
    assert service.open(b"%LMQ%q", b"g").ready_count == 6
    assert service.open(b"%LMQ%q", b"h", 10).ready_count == 0


def test_invisible_time_can_be_changed(service, store):
    queue = service.open(b"%LMQ%q", b"g")
    store.grow(queue.queue_ref, 1)
    batch = StoredBatch(8)
    queue.take(batch, 1, NO_LIMIT, 100, 0)
    queue.change_invisible(0, 500)
    assert service.expire(100) == []
    assert queue.take(batch, 1, NO_LIMIT, 100, 499) == 0
    assert service.next_deadline_ms() == 500
    assert service.expire(500) == [queue]
    assert queue.take(batch, 1, NO_LIMIT, 600, 500) == 1
    assert batch.attempt[0] == 2


def test_timers_of_acknowledged_messages_do_not_pile_up(service, store):
    queue = service.open(b"%LMQ%q", b"g")
    batch = StoredBatch(1)
    for number in range(5000):
        store.grow(queue.queue_ref, 1)
        queue.take(batch, 1, NO_LIMIT, 1_000_000 + number, number)
        queue.ack(number)
    assert len(queue._timers) <= 65
    assert len(service.timers) < 200


def test_whoever_waits_is_told_of_messages_that_can_be_taken_again(store):
    shown = []
    service = PopService(store, MemoryJournal(), shown.append)
    queue = service.open(b"%LMQ%q", b"g")
    store.grow(queue.queue_ref, 4)
    batch = StoredBatch(8)
    queue.take(batch, 4, NO_LIMIT, 0, 0)
    queue.ack(0)
    queue.nack(1, 500)
    assert shown == []
    queue.nack(2)
    assert shown == [queue.queue_ref]
    with pytest.raises(ReceiptError):
        queue.nack_many(array("q", (0, 3)), 2)  # one was acknowledged; the other is shown
    assert len(shown) == 2
    service.expire(499)
    assert len(shown) == 2
    service.expire(500)
    assert len(shown) == 3
    queue.seek(0)
    assert shown == 4 * [queue.queue_ref]


def test_dropping_an_unknown_queue_is_harmless(service):
    service.drop(b"%LMQ%q", b"g")
