"""Pop queues by light queue and group; what happens to them is in tests/model/test_pop.py."""

from __future__ import annotations

from array import array

import pytest

from core.errors import ReceiptError
from core.message import StoredBatch
from core.metrics import PopCounts
from core.pop.journal import COMPACT_BYTES_MIN
from core.pop.pop_queue import pop_key
from core.pop.pop_service import PopService
from tests.support.stores import FullJournal, MemoryJournal, MemoryQueues

NO_LIMIT = 1 << 40


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


def test_what_happens_to_messages_of_all_queues_is_counted(service, store):
    first, second = service.open(b"%LMQ%q", b"g"), service.open(b"%LMQ%p", b"h")
    store.grow(first.queue_ref, 3)
    store.grow(second.queue_ref, 2)
    batch = StoredBatch(8)
    assert (first.take(batch, 8, NO_LIMIT, 0, 0), second.take(batch, 8, NO_LIMIT, 50, 0)) == (3, 2)
    first.ack(1)
    first.nack(0)
    first.nack(2)
    assert first.take(batch, 8, NO_LIMIT, 0, 0) == 2
    service.expire(50)
    with pytest.raises(ReceiptError):
        first.ack(1)
    assert service.counts() == PopCounts(taken=5, taken_again=2, done=1, given_back=2, timed_out=2)


def test_groups_have_the_same_messages_each(service, store):
    first, second = service.open(b"%LMQ%q", b"g"), service.open(b"%LMQ%q", b"h")
    store.grow(first.queue_ref, 3)
    batch = StoredBatch(8)
    assert first.take(batch, 8, NO_LIMIT, 0, 0) == 3
    assert second.take(batch, 8, NO_LIMIT, 0, 0) == 3
    first.ack(1)
    assert (first.unacked_count, second.unacked_count) == (2, 3)


def test_queue_opened_first_begins_where_it_is_told_or_at_the_first_message_kept(service, store):
    ref = store.intern_queue(b"%LMQ%q")
    store.grow(ref, 10)
    store.retire(ref, 4)
    assert service.open(b"%LMQ%q", b"g").ready_count == 6
    assert service.open(b"%LMQ%q", b"h", 10).ready_count == 0


def test_dropping_an_unknown_queue_is_harmless(service):
    service.drop(b"%LMQ%q", b"g")


def test_very_many_messages_are_shown_again_in_parts(service, store, monkeypatch):
    monkeypatch.setattr("core.pop.pop_service.SHOW_COUNT_MAX", 100)
    queue = service.open(b"%LMQ%q", b"g")
    store.grow(queue.queue_ref, 250)
    queue.take(StoredBatch(250), 250, NO_LIMIT, 500, 0)
    assert service.expire(499)
    calls = 1
    while not service.expire(500):
        assert service.next_deadline_ms() == 500
        assert 0 < queue.ready_count < 250
        calls += 1
    assert calls == 3
    assert (queue.ready_count, service.next_deadline_ms()) == (250, None)


def test_a_deadline_of_a_process_before_is_met_by_the_next(store):
    journal = MemoryJournal()
    queue = PopService(store, journal).open(b"%LMQ%q", b"g")
    store.grow(queue.queue_ref, 3)
    queue.take(StoredBatch(8), 2, NO_LIMIT, 500, 0)
    asked = []
    service = PopService(store, journal, request_timer=lambda: asked.append(service.next_deadline_ms()))
    queue = service.open(b"%LMQ%q", b"g")
    assert (asked, queue.unacked_count) == ([500], 2)
    service.expire(500)
    assert (queue.unacked_count, queue.ready_count) == (0, 3)


def test_the_timer_is_asked_for_when_the_first_deadline_comes_earlier_and_only_then(store):
    asked = []
    service = PopService(store, MemoryJournal(), request_timer=lambda: asked.append(service.next_deadline_ms()))
    first, second = service.open(b"%LMQ%q", b"g"), service.open(b"%LMQ%p", b"g")
    store.grow(first.queue_ref, 9)
    store.grow(second.queue_ref, 9)
    batch = StoredBatch(8)
    for queue, until_ms in ((first, 500), (first, 700), (second, 600), (second, 400), (first, 0)):
        queue.take(batch, 1, NO_LIMIT, until_ms, 0)
    assert asked == [500, 400]


def test_a_queue_of_which_nothing_is_in_flight_can_rest_and_goes_on_where_it_was(service, store):
    queue = service.open(b"%LMQ%q", b"g")
    store.grow(queue.queue_ref, 4)
    batch = StoredBatch(8)
    queue.take(batch, 2, NO_LIMIT, 0, 0)
    assert not service.rest(b"%LMQ%q", b"g")
    queue.ack_many(batch.queue_offset, 2)
    assert service.rest(b"%LMQ%q", b"g")
    assert not service.rest(b"%LMQ%q", b"g")
    assert not service.rest(b"%LMQ%other", b"g")
    again = service.open(b"%LMQ%q", b"g")
    assert again is not queue
    assert again.take(batch, 8, NO_LIMIT, 0, 0) == 2
    assert list(batch.queue_offset[:2]) == [2, 3]
    assert dict(service.floors(b"g")) == {b"%LMQ%q": 2}
    assert service.floor(b"%LMQ%q", b"g", 7) == 2
    assert service.floor(b"%LMQ%other", b"g", 7) == 7


def test_message_is_finished_before_its_queue_is_opened_by_what_an_earlier_process_said_of_it(store):
    journal = MemoryJournal()
    first = PopService(store, journal).open(b"%LMQ%q", b"g")
    store.grow(first.queue_ref, 4)
    first.take(StoredBatch(8), 2, NO_LIMIT, 0, 0)
    taken, never_taken, unknown = (*first.identify(0), 0), (*first.identify(2), 20), (77, 0, 0)
    service = PopService(store, journal)
    assert [service.finish(*one) for one in (taken, never_taken, unknown, taken)] == [True, True, False, False]
    service.write()
    for each in (service, PopService(store, journal)):
        queue, batch = each.open(b"%LMQ%q", b"g"), StoredBatch(8)
        queue.peek(batch, 8)
        assert (list(batch.queue_offset[: batch.count]), queue.ready_count) == ([1], 2)


def test_finished_message_of_a_queue_that_rested_is_done_already(store):
    journal = MemoryJournal()
    queue = PopService(store, journal).open(b"%LMQ%q", b"g")
    store.grow(queue.queue_ref, 1)
    queue.take(StoredBatch(8), 1, NO_LIMIT, 0, 0)
    queue.ack(0)
    service = PopService(store, journal)
    assert not service.finish(*queue.identify(0), 0)


def test_number_that_an_earlier_process_told_is_given_to_no_other_queue(service):
    assert not service.finish(1_000, 0, 0)
    assert service.open(b"%LMQ%other", b"g").identify(5) == (1_001, 5)


def test_message_is_not_finished_where_another_has_its_offset_or_it_is_gone(store):
    journal = MemoryJournal()
    queue = PopService(store, journal).open(b"%LMQ%q", b"g")
    store.grow(queue.queue_ref, 2)
    service = PopService(store, journal)
    assert not service.finish(*queue.identify(0), 7)
    assert not service.finish(*queue.identify(2), 20)
    assert service.open(b"%LMQ%q", b"g").ready_count == 2


@pytest.mark.parametrize("left_hidden", [0, 2])
def test_pop_queue_whose_messages_a_power_cut_took_gives_those_that_have_their_offsets_now(store, left_hidden):
    journal = MemoryJournal()
    before = PopService(store, journal).open(b"%LMQ%q", b"g")
    store.grow(before.queue_ref, 5)
    before.take(StoredBatch(8), 5, NO_LIMIT, 0, 0)
    before.ack_many(array("q", range(left_hidden, 5)), 5 - left_hidden)
    store.bounds[before.queue_ref][1] = 3
    service = PopService(store, journal)
    for key in service.overrun():
        assert service.cut_back(key)
    assert list(service.overrun()) == []
    if left_hidden:  # by the number that it had
        assert service.finish(*before.identify(0), 0)
        service.write()
    store.grow(before.queue_ref, 2)  # before the pop queue is opened
    expected = list(range(1, left_hidden)) + [3, 4]
    for each in (service, PopService(store, journal)):
        assert each.open(b"%LMQ%q", b"g").ready_count == len(expected)


def test_pop_queue_that_is_open_is_not_cut_back(service, store):
    queue = service.open(b"%LMQ%q", b"g")
    store.grow(queue.queue_ref, 1)
    queue.take(StoredBatch(8), 1, NO_LIMIT, 0, 0)
    assert list(service.overrun()) == []
    assert not service.cut_back(pop_key(b"%LMQ%q", b"g"))
    assert not service.cut_back(b"%LMQ%unknown\0g")
    assert queue.unacked_count == 1


def test_what_a_full_disk_holds_up_is_not_called_written(store):
    journal = FullJournal()
    service = PopService(store, journal)
    assert service.is_written
    journal.is_full = True
    service.open(b"%LMQ%q", b"g")
    assert not service.is_written
    journal.is_full = False
    service.write()
    assert service.is_written


def dropped(store, *, begins_at=0, taken=3):
    """Return the service of a later process, after a pop queue was dropped of which all but the second is done."""
    journal = MemoryJournal()
    service = PopService(store, journal)
    queue = service.open(b"%LMQ%q", b"g", begins_at)
    store.grow(queue.queue_ref, begins_at + 4)
    if taken:
        queue.take(StoredBatch(8), taken, NO_LIMIT, 0, 0)
        queue.ack_many(array("q", [begins_at, *range(begins_at + 2, begins_at + taken)]), taken - 1)
    service.drop(b"%LMQ%q", b"g")
    return PopService(store, journal), journal


def test_a_pop_queue_that_was_dropped_too_early_is_restored(store):
    service, journal = dropped(store)
    assert service.has_dropped
    assert service.restore(b"%LMQ%q", b"g", 0)
    service.forget_dropped()
    for again in (service, PopService(store, journal)):
        assert not again.has_dropped
        batch = StoredBatch(8)
        queue = again.open(b"%LMQ%q", b"g", 0)
        assert (queue.floor, queue.next_offset, queue.ready_count) == (1, 3, 2)
    assert queue.take(batch, 8, NO_LIMIT, 0, 0) == 1
    assert (batch.queue_offset[0], batch.attempt[0]) == (1, 2)


class Compacted:
    """A service whose journal is compacted while others take messages, and a pop queue dropped at any moment of it."""

    def __init__(self, store):
        self.store = store
        self.journal = MemoryJournal()
        self.waiting = []
        self.service = PopService(store, self.journal, when_kept=self.waiting.append)
        self.queue = self.service.open(b"%LMQ%q", b"g", 0)
        store.grow(self.queue.queue_ref, 4)
        self.queue.take(StoredBatch(8), 3, NO_LIMIT, 0, 0)
        self.queue.ack_many(array("q", [0, 2]), 2)
        self.busy = [self.service.open(b"%%LMQ%%busy%d" % i, b"g", 0) for i in range(200)]
        self.service.open(b"%LMQ%last", b"g", 0)

    def step(self):
        """Have something written, by which a compaction takes a step."""
        queue = self.busy[0]
        self.store.grow(queue.queue_ref, 1)
        queue.take(StoredBatch(8), 1, NO_LIMIT, 0, 0)
        queue.ack(queue.next_offset - 1)

    def begin(self):
        self.journal.bytes_used += COMPACT_BYTES_MIN
        while not self.journal.is_compacting:
            self.step()

    def finish(self):
        before = self.journal.compactions
        while self.journal.compactions == before:
            self.step()


@pytest.mark.parametrize("when", ["before", "as it begins", "as it ends"])
@pytest.mark.parametrize("rests", [False, True])
def test_a_pop_queue_is_restored_that_was_dropped_before_a_compaction(store, when, rests):
    site = Compacted(store)
    if rests:
        site.queue.ack(1)
        assert site.service.rest(b"%LMQ%q", b"g")
    if when == "before":
        site.service.drop(b"%LMQ%q", b"g")
    site.begin()
    if when == "as it begins":
        site.service.drop(b"%LMQ%q", b"g")
    while when == "as it ends" and not any(b"%LMQ%busy100" in record for record in site.journal.compacted):
        site.step()
    if when == "as it ends":
        site.service.drop(b"%LMQ%q", b"g")
    site.finish()
    again = PopService(store, site.journal)
    assert again.restore(b"%LMQ%q", b"g", 0)
    queue = again.open(b"%LMQ%q", b"g", 0)
    assert (queue.floor, queue.next_offset, queue.ready_count) == ((3, 3, 1) if rests else (1, 3, 2))
    assert again.open(b"%LMQ%busy0", b"g", 0).next_offset == site.busy[0].next_offset


@pytest.mark.parametrize("is_new", [False, True])
def test_a_compaction_has_nothing_of_a_pop_queue_whose_end_is_durable_or_that_began_anew(store, is_new):
    site = Compacted(store)
    site.service.drop(b"%LMQ%q", b"g")
    if is_new:
        site.service.open(b"%LMQ%q", b"g", 3)
    else:
        site.waiting.pop()(None)
    site.begin()
    site.finish()
    again = PopService(store, site.journal)
    assert not again.has_dropped
    assert again.knows(b"%LMQ%q", b"g") == is_new
    assert again.open(b"%LMQ%q", b"g", 3).next_offset == 3


def test_a_compaction_has_nothing_of_a_pop_queue_whose_end_becomes_durable_in_it(store):
    site = Compacted(store)
    for queue in site.busy[1:100]:
        site.service.drop(queue.queue, b"g")
    site.service.drop(b"%LMQ%q", b"g")
    site.begin()
    while not any(pop_key(b"%LMQ%busy1", b"g") in record for record in site.journal.compacted):
        site.step()  # it is about to copy those that were dropped, the newest one last
    for tell in site.waiting:
        tell(None)
    later = site.service.open(b"%LMQ%q", b"g", 3)
    later.take(StoredBatch(8), 1, NO_LIMIT, 0, 0)
    later.ack(3)
    site.service.drop(b"%LMQ%q", b"g")
    site.finish()
    again = PopService(store, site.journal)
    assert again.restore(b"%LMQ%q", b"g", 3)
    assert again.open(b"%LMQ%q", b"g", 3).floor == 4


@pytest.mark.parametrize(("begins_at", "taken", "first"), [(0, 3, 3), (5, 0, 5), (0, 3, 9)])
def test_a_pop_queue_that_took_nothing_of_a_later_one_is_not_restored(store, begins_at, taken, first):
    service, _ = dropped(store, begins_at=begins_at, taken=taken)
    assert not service.restore(b"%LMQ%q", b"g", first)
    assert not service.knows(b"%LMQ%q", b"g")
    assert service.open(b"%LMQ%q", b"g", first).next_offset == first


def test_what_was_dropped_is_forgotten_where_nobody_wants_it(store):
    service, _ = dropped(store)
    service.forget_dropped()
    assert not service.restore(b"%LMQ%q", b"g", 0)
    assert not service.restore(b"%LMQ%unknown", b"g", 0)
    assert service.open(b"%LMQ%q", b"g", 0).ready_count == 4
