"""What is taken, hidden, done and shown again; against a model: tests/model/test_pop.py."""

from __future__ import annotations

import sys
from array import array

import pytest

from core.errors import ReceiptError
from core.message import StoredBatch
from core.pop.pop_service import PopService
from tests.support.stores import MemoryJournal, MemoryQueues

NO_LIMIT = 1 << 40


@pytest.fixture
def store():
    return MemoryQueues()


@pytest.fixture
def service(store):
    return PopService(store, MemoryJournal())


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


def test_hidden_is_what_was_taken_and_neither_done_nor_shown(service, store):
    queue = service.open(b"%LMQ%q", b"g")
    store.grow(queue.queue_ref, 4)
    queue.take(StoredBatch(8), 3, NO_LIMIT, 0, 0)
    queue.ack(0)
    queue.nack(1)
    assert [queue.is_hidden(offset) for offset in range(5)] == [False, False, True, False, False]


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


def test_timers_of_acknowledged_messages_do_not_pile_up(service, store):
    queue = service.open(b"%LMQ%q", b"g")
    batch = StoredBatch(1)
    for number in range(5000):
        store.grow(queue.queue_ref, 1)
        queue.take(batch, 1, NO_LIMIT, 1_000_000 + number, number)
        queue.ack(number)
    assert len(queue._timers) <= 65
    assert len(service._desk.timers) < 200


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


def test_who_has_a_receipt_can_have_a_message_hidden_longer_or_shorter(service, store):
    queue = service.open(b"%LMQ%q", b"g")
    store.grow(queue.queue_ref, 1)
    batch = StoredBatch(8)
    queue.take(batch, 1, NO_LIMIT, 100, 0)
    receipt = queue.receipt(batch, 0)
    assert queue.nack_receipts([receipt], 500) == 0
    service.expire(100)
    assert queue.take(batch, 1, NO_LIMIT, 100, 499) == 0
    assert queue.nack_receipts([receipt], 300) == 0
    assert service.next_deadline_ms() <= 300
    service.expire(300)
    assert queue.take(batch, 1, NO_LIMIT, 600, 300) == 1
    assert batch.attempt[0] == 2


def test_a_late_acknowledgement_does_not_finish_what_another_has_now(service, store):
    queue = service.open(b"%LMQ%q", b"g")
    store.grow(queue.queue_ref, 3)
    batch = StoredBatch(8)
    queue.take(batch, 3, NO_LIMIT, 100, 0)
    slow = [queue.receipt(batch, i) for i in range(3)]
    assert queue.ack_receipts([slow[1], slow[1]]) == 1  # the second is for nothing
    service.expire(100)
    assert queue.ack_receipts(slow) == 3  # it can be had again, and nobody has it
    queue.take(batch, 1, NO_LIMIT, 300, 100)
    quick = queue.receipt(batch, 0)
    assert queue.ack_receipts(slow) == 3
    assert queue.nack_receipts(slow) == 3
    assert (queue.unacked_count, queue.attempt(0)) == (1, 2)
    assert queue.ack_receipts([quick]) == 0


def test_receipts_from_before_a_queue_went_on_elsewhere_are_stale(service, store):
    queue = service.open(b"%LMQ%q", b"g")
    store.grow(queue.queue_ref, 3)
    batch = StoredBatch(8)
    for is_dropped in (False, True):
        queue.take(batch, 3, NO_LIMIT, 1000, 0)
        before = queue.receipt(batch, 0)
        if is_dropped:
            service.drop(b"%LMQ%q", b"g")
        else:
            queue.seek(0)
        queue = service.open(b"%LMQ%q", b"g")
        queue.take(batch, 3, NO_LIMIT, 1000, 0)
        assert queue.receipt(batch, 0)[1:] == before[1:]
        assert queue.ack_receipts([before]) == 1
        assert queue.unacked_count == 3


def test_of_messages_far_apart_that_are_hidden_longer_only_they_are_looked_at(service, store):
    queue = service.open(b"%LMQ%q", b"g")
    store.grow(queue.queue_ref, 9_000)
    batch = StoredBatch(9_000)
    queue.take(batch, 9_000, NO_LIMIT, 0, 0)
    queue.nack_many(array("q", [8_999, 0, 5_000, 5_001]), 4, 500)
    assert service.expire(500)
    assert (queue.ready_count, service.next_deadline_ms()) == (4, None)


def test_the_moment_until_which_a_message_is_hidden_proves_that_it_was_taken_then(service, store):
    queue = service.open(b"%LMQ%q", b"g")
    store.grow(queue.queue_ref, 4)
    batch = StoredBatch(8)
    queue.take(batch, 4, NO_LIMIT, 100, 0)
    assert queue.ack_taken(array("q", [0, 1]), 1, 100) == 1
    assert queue.ack_taken(array("q", [0, 1, 99]), 3, 101) == 0
    assert queue.change_invisible(2, 100, 300)
    assert not queue.change_invisible(2, 100, 400)
    assert queue.take(batch, 4, NO_LIMIT, 200, 100) == 2  # the other two
    assert list(batch.queue_offset[:2]) == [1, 3]
    assert queue.ack_taken(array("q", [1, 2, 3]), 3, 100) == 0
    assert queue.ack_taken(array("q", [1, 2, 3]), 3, 200) == 2
    assert queue.change_invisible(2, 300, 0)
    assert not queue.change_invisible(2, 300, 0)
    assert (queue.ready_count, queue.unacked_count) == (1, 0)


def test_a_queue_that_is_hidden_for_good_is_proven_by_no_moment(service, store):
    queue = service.open(b"%LMQ%q", b"g")
    store.grow(queue.queue_ref, 1)
    queue.take(StoredBatch(8), 1, NO_LIMIT, 0, 0)
    for until_ms in (0, 1, -1):
        assert queue.ack_taken(array("q", [0]), 1, until_ms) == 0
        assert not queue.change_invisible(0, until_ms, 0)
    assert queue.unacked_count == 1


@pytest.mark.slow
@pytest.mark.parametrize("until_ms", [0, 10**12])
def test_ten_million_that_are_ready_and_a_hundred_thousand_in_flight_cost_what_an_empty_queue_does(store, until_ms):
    """The lines that are run are counted, where there are lines."""
    service = PopService(store, MemoryJournal())
    batch = StoredBatch(1_000)

    def work(queue) -> int:
        lines = 0

        def count(_frame, event, _argument):
            nonlocal lines
            lines += event == "line"
            return count

        before = sys.gettrace()
        sys.settrace(count)
        try:
            for number in range(64):
                assert queue.take(batch, 4, NO_LIMIT, until_ms and until_ms + number, 0) == 4
                queue.ack_many(batch.queue_offset, 4)
        finally:
            sys.settrace(before)
        return lines

    def fill(name: bytes, count: int, taken: int):
        queue = service.open(name, b"g")
        store.grow(queue.queue_ref, count)
        for start in range(0, taken, 1_000):
            assert queue.take(batch, 1_000, NO_LIMIT, until_ms and until_ms - start, 0) == 1_000
        return queue

    small = work(fill(b"%LMQ%small", 300, 0))
    large = work(fill(b"%LMQ%large", 10_000_000, 100_000))
    assert large <= 1.5 * small


def test_a_queue_that_is_only_looked_at_notes_nothing(store):
    journal = MemoryJournal()
    service = PopService(store, journal)
    queue = service.open(b"%LMQ%q", b"g")
    store.grow(queue.queue_ref, 3)
    before = len(journal.records)
    assert queue.ready_count == 3
    assert service.find(b"%LMQ%q", b"g") is queue
    assert service.find(b"%LMQ%q", b"h") is None
    assert len(journal.records) == before


def test_what_is_given_once_more_is_counted_also_over_a_seek(service, store):
    queue = service.open(b"%LMQ%q", b"g")
    store.grow(queue.queue_ref, 3)
    batch = StoredBatch(8)
    queue.take(batch, 3, NO_LIMIT, 0, 0)
    assert queue.again_count == 0
    for _ in range(2):
        queue.nack_many(array("q", (1, 2)), 2)
        queue.take(batch, 8, NO_LIMIT, 0, 0)
    assert queue.again_count == 4
    queue.seek(0)
    queue.take(batch, 8, NO_LIMIT, 0, 0)
    assert queue.again_count == 4
